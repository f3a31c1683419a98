"""A model that scans images: the score of every window, and the best of those that lie over one another."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap._validation import check_positive
from chimap.features.rounded import check_not_rounded
from chimap.images.descriptors.base import check_image, opencv
from chimap.images.detection.block_scan import BlockScan
from chimap.images.detection.overlap import Box, Detection, best_of
from chimap.images.detection.pixel_scan import PixelScan
from chimap.images.detection.scans import Layout, Scan
from chimap.images.detection.word_scan import WordScan
from chimap.images.histograms import ImageHistograms
from chimap.tables import BinFunctions

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


SCANS: tuple[type[Scan], ...] = (WordScan, BlockScan, PixelScan)
"""Kinds of descriptors that can be scanned: the first that takes one serves."""


class WindowDetector:
    """Scores of all windows of one size in an image, of a classifier that was fitted on images of that size.

    f(window) = b + sum_i g_i(x_i), with the functions g_i of single bins that a linear model on additive features is
    the sum of. The image is described once, and what windows share is not counted again: words at the points of grids
    are looked up in tables as they enter and leave the window (``WordScan``); features of blocks of gradients are
    multiplied by the weights of all places at once (``BlockScan``); cells of edges are differences of sums over
    rectangles (``PixelScan``).

    Scores are those of ``model.decision_function`` on the histograms of the window cut out: always for ``HOGBlocks``
    and colours; for ``HOG`` with ``border=1``; for ``PHOG`` with a ``border`` as wide as its edges reach; for the
    others up to the pixels around the window, which the descriptors of the scene see and those of the cut do not.

    Parameters
    ----------
    model : a fitted ``HistogramClassifier`` with an additive kernel (or several as blocks), ``normalize=None``.
    histograms : what made its rows, one region: of SIFT (any colours), ``HOG``, ``ColourHistogram``, ``LBP``,
        ``HOGBlocks`` and ``PHOG``, one or several; learned words by hard coding.
    window : (height, width) of the images it was fitted on; of ``HOGBlocks``, its size.
    target : the class whose score counts; None is the second of two.
    step : pixels from a window to the next, a multiple of the step of each descriptor (of ``HOGBlocks`` and ``HOG`` the
        least common multiple of the cells; of ``PHOG``, ``LBP`` and colours a pixel); None is the least.

    Raises
    ------
    ValueError
        For other models and histograms, and windows that are too small for a point.

    Examples
    --------
    >>> from chimap import HistogramClassifier
    >>> from chimap.images import LBP, ImageHistograms
    >>> y, x = np.mgrid[:40, :40]
    >>> pictures = [(127 + 100 * np.sin((x if i % 2 else y) / 2 + i)).astype(np.uint8) for i in range(8)]
    >>> images = [np.repeat(picture[:, :, None], 3, axis=2) for picture in pictures]
    >>> histograms = ImageHistograms(LBP()).fit(images)
    >>> model = HistogramClassifier("chi2", alpha=0.1).fit(histograms.transform(images), np.arange(8) % 2)
    >>> scene = np.hstack([images[0], images[1]])
    >>> best = WindowDetector(model, histograms, window=(40, 40)).detect(scene, threshold=-5)[0]
    >>> best.box[0] > 20  # the right half
    True
    """

    def __init__(
        self,
        model: BaseEstimator,
        histograms: ImageHistograms,
        window: tuple[int, int],
        target: object = None,
        step: int | None = None,
    ):
        self.histograms, self.window = histograms, (int(window[0]), int(window[1]))
        kinds = _scans_of(histograms)
        self.step = _step(histograms, step)
        if model.normalize_ is not None:
            raise ValueError(
                f"the model must have normalize=None; got {model.normalize_!r}. Levels sum to 1 already."
            )
        check_not_rounded(model, "WindowDetector")
        output, sign = _output(model, target)
        self.intercept = sign * float(model.intercept_[output])
        functions = BinFunctions(model.features_, sign * model.coef_.T[:, [output]])
        levels, n_levels = list(histograms.levels_.values()), len(histograms.grids)
        self._scans = [
            kind(
                Layout(
                    histograms,
                    number,
                    self.window,
                    self.step,
                    list(zip(histograms.grids, levels[number * n_levels :], strict=False)),
                ),
                functions,
            )
            for number, kind in enumerate(kinds)
        ]

    def scores(self, image: np.ndarray) -> np.ndarray:
        """Scores (rows, columns) float64 of the windows whose corners are ``step`` pixels apart in y and x.

        None, (0, 0), of an image (H, W, 3) uint8 that is smaller than the window.
        """
        image = check_image(image)
        rows, columns = (
            (side - own) // self.step + 1 for side, own in zip(image.shape[:2], self.window, strict=True)
        )
        if rows < 1 or columns < 1:
            return np.zeros((0, 0))
        scores = np.full((rows, columns), self.intercept)
        for scan in self._scans:
            scan.add(image, scores)
        return scores

    def detect(
        self,
        image: np.ndarray,
        threshold: float = 0.0,
        *,
        scale_step: float = 1.2,
        largest: float | None = None,
        overlap: float = 0.3,
    ) -> list[Detection]:
        """Windows of several sizes with scores above the threshold, best first, none much over another.

        The image is made smaller by powers of scale_step, until the window fills it or is ``largest`` times as large in
        it. Of two windows whose intersection is more than ``overlap`` of their union the better stays.
        """
        step = self.step
        detections: list[Detection] = []
        for scale, scores in self.scan(image, scale_step=scale_step, largest=largest):
            for i, j in zip(*np.nonzero(scores > threshold), strict=True):
                left, top = scale * step * j, scale * step * i
                box = (left, top, left + scale * self.window[1], top + scale * self.window[0])
                detections.append(Detection(tuple(map(float, box)), float(scores[i, j])))  # type: ignore[arg-type]
        return best_of(detections, overlap)

    def scan(
        self, image: np.ndarray, *, scale_step: float = 1.2, largest: float | None = None
    ) -> Iterator[tuple[float, np.ndarray]]:
        """Each of ``scales`` with the ``scores`` of the image made so much smaller."""
        check_positive(scale_step - 1, "scale_step - 1")
        image = check_image(image)
        for scale in self.scales(image.shape, scale_step, largest):
            yield scale, self.scores(_smaller(image, scale))

    def scales(
        self, shape: tuple[int, ...], scale_step: float = 1.2, largest: float | None = None
    ) -> list[float]:
        """How many pixels of the image a pixel of the window stands for, 1 and up."""
        most = min(side / own for side, own in zip(shape[:2], self.window, strict=True))
        scales = [1.0]
        while scales[-1] * scale_step <= min(most, largest or np.inf):
            scales.append(scales[-1] * scale_step)
        return scales

    def cut(self, image: np.ndarray, box: Box) -> np.ndarray:
        """A window of ``detect`` as it was scored: pixels (height, width, 3) of the image at the scale of the box."""
        scale = (box[2] - box[0]) / self.window[1]
        left, top = round(box[0] / scale), round(box[1] / scale)
        scene = _smaller(check_image(image), scale)
        return scene[top : top + self.window[0], left : left + self.window[1]].copy()


def _scans_of(histograms: ImageHistograms) -> list[type[Scan]]:
    """What scans each descriptor."""
    scans = []
    for name, descriptor in zip(histograms.names_, histograms.descriptors_, strict=True):
        kind = next((scan for scan in SCANS if scan.takes(descriptor)), None)
        if kind is None:
            raise ValueError(
                f"windows are scanned for SIFT, HOG, ColourHistogram, LBP, HOGBlocks and PHOG; {name!r} is "
                f"{descriptor}. Fit histograms and model without it."
            )
        scans.append(kind)
    if histograms.n_regions != 1:
        raise ValueError(f"windows are scanned for n_regions=1 only; the histograms have {histograms!r}.")
    return scans


def _step(histograms: ImageHistograms, step: int | None) -> int:
    """Pixels from a window to the next, which the points of all descriptors share."""
    descriptors: list[Any] = histograms.descriptors_
    least = lcm(*(descriptor.step for descriptor in descriptors))
    if step is None:
        return least
    check_positive(step, "step", integer=True)
    if step % least:
        raise ValueError(
            f"step must be a multiple of {least}, at which the points of the descriptors meet; got {step}."
        )
    return step


def _output(model: BaseEstimator, target: object) -> tuple[int, float]:
    """Which output of the model is the score of the target, and its sign."""
    classes = model.classes_.tolist()
    if target is None:
        if len(classes) != 2:
            raise ValueError(
                f"target must be one of the {len(classes)} classes, such as {classes[0]!r}; got None."
            )
        target = classes[1]
    if target not in classes:
        raise ValueError(f"target must be one of {', '.join(map(str, classes[:5]))}, ..; got {target!r}.")
    if len(classes) == 2:
        return 0, 1.0 if target == classes[1] else -1.0
    return classes.index(target), 1.0


def _smaller(image: np.ndarray, scale: float) -> np.ndarray:
    if scale == 1:
        return image
    cv2 = opencv()
    height, width = (max(1, round(side / scale)) for side in image.shape[:2])
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
