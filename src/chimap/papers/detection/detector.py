"""Scan images with a model: the score of every window, and the best of overlapping windows."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import ParameterError, check_positive
from chimap.images.descriptors.base import check_image, opencv
from chimap.images.histograms import ImageHistograms
from chimap.papers.detection.scans import SCANS, Layout, Scan
from chimap.tables import BinFunctions

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


Box = tuple[float, float, float, float]


class Detection(NamedTuple):
    """A detected window.

    Parameters
    ----------
    box : tuple of float
        (left, top, right, bottom) in pixels of the image; right and bottom are excluded.
    score : float
        Score of the window.

    Examples
    --------
    >>> Detection((60.0, 30.0, 140.0, 90.0), score=0.8).box
    (60.0, 30.0, 140.0, 90.0)
    """

    box: Box
    score: float


def shared_areas(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the intersection over union (n,) of a box (4,) with each of the others (n, 4)."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.prod(np.maximum(sides, 0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return common / (areas - common)


def best_of(detections: list[Detection], overlap: float) -> list[Detection]:
    """Return the detections that no better one overlaps by more than ``overlap`` of their union, best first."""
    ordered = sorted(detections, key=lambda detection: -detection.score)
    boxes = np.array([detection.box for detection in ordered]).reshape(-1, 4)
    remaining = np.ones(len(ordered), bool)
    kept = []
    for i, detection in enumerate(ordered):
        if remaining[i]:
            kept.append(detection)
            remaining &= shared_areas(boxes[i], boxes) <= overlap
    return kept


class WindowDetector:
    """Scores of all windows of one size in an image, by a classifier that was fitted on images of that size.

    A linear model on additive features is a sum of functions g_i of single bins,

        f(window) = b + sum_i g_i(x_i).

    The image is described once, and windows share work: words at the points of grids are looked up in tables as they
    enter and leave the window (``WordScan``); features of blocks of gradients are multiplied by the weights of all
    places at once (``BlockScan``); cells of edges are differences of sums over rectangles (``PixelScan``).

    Scores equal those of ``model.decision_function`` on the histograms of the window cut out: always for ``HOGBlocks``
    and colours; for ``HOG`` with ``border=1``; for ``PHOG`` with a ``border`` as wide as the reach of its edges. For
    the others they differ by the pixels around the window, which descriptors of the scene see and those of the cut-out
    do not.

    Parameters
    ----------
    model : HistogramClassifier
        Fitted classifier with an additive kernel (or several as blocks) and ``normalize=None``.
    histograms : ImageHistograms
        Histograms that made its rows, with ``n_regions=1``. Descriptors are SIFT (any colours), ``HOG``,
        ``ColourHistogram``, ``LBP``, ``HOGBlocks`` and ``PHOG``, one or several; learned words need hard coding.
    window : tuple of int
        (height, width) of the images that the model was fitted on; for ``HOGBlocks``, its size.
    target : object, default=None
        Class whose score is returned; None is the second of two classes.
    step : int or None, default=None
        Distance between neighbouring windows in pixels, a multiple of the step of each descriptor: for ``HOGBlocks``
        and ``HOG`` the least common multiple of the cells; for ``PHOG``, ``LBP`` and colours one pixel. None is the
        smallest.

    Raises
    ------
    ValueError
        If the model or the histograms are of another kind, or the window is too small to hold a point.

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
        if (given := model.normalize_) is not None:
            raise InputError(Message("the model must have {normalize=None}; got {!r}. Levels sum to 1 already.", given))
        output, sign = _output(model, target)
        self.intercept = sign * float(model.intercept_[output])
        functions = BinFunctions(model.features_, sign * model.feature_coef_.T[:, [output]])
        self._scans = [
            kind(Layout(histograms, number, self.window, self.step), functions) for number, kind in enumerate(kinds)
        ]

    def scores(self, image: np.ndarray) -> np.ndarray:
        """Return the scores of the windows whose corners are ``step`` pixels apart in y and x.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image.

        Returns
        -------
        ndarray of shape (rows, columns), float64
            The scores; of shape (0, 0) if the image is smaller than the window.
        """
        image = check_image(image)
        rows, columns = (
            (side - size) // self.step + 1 for side, size in zip(image.shape[:2], self.window, strict=True)
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
        """Return windows of several sizes with scores above the threshold, best first.

        The image is scaled down by powers of ``scale_step``. Of two windows whose intersection is more than ``overlap``
        of their union, only the better one stays.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image.
        threshold : float, default=0.0
            Score that windows must exceed.
        scale_step : float, default=1.2
            Ratio of successive scales.
        largest : float or None, default=None
            Largest scale; None goes on until the window fills the image.
        overlap : float, default=0.3
            Largest intersection over union of two detections.

        Returns
        -------
        list of Detection
            The windows that stay.
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
        """Yield each scale with the scores of the image scaled down by it.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image.
        scale_step : float, default=1.2
            Ratio of successive scales.
        largest : float or None, default=None
            Largest scale; None goes on until the window fills the image.

        Yields
        ------
        scale : float
            One of ``scales``.
        scores : ndarray of shape (rows, columns), float64
            The ``scores`` of the image at this scale.
        """
        image = check_image(image)
        for scale in self.scales(image.shape, scale_step, largest):
            yield scale, self.scores(_smaller(image, scale))

    def scales(self, shape: tuple[int, ...], scale_step: float = 1.2, largest: float | None = None) -> list[float]:
        """Return the scales of a scan: pixels of the image for each pixel of the window, from 1 upwards.

        Parameters
        ----------
        shape : tuple of int
            Shape of the image; its first two entries are the height and the width in pixels.
        scale_step : float, default=1.2
            Ratio of successive scales.
        largest : float or None, default=None
            Largest scale; None goes on until the window fills the image.
        """
        check_positive(scale_step - 1, "scale_step - 1")
        largest_scale = min(side / size for side, size in zip(shape[:2], self.window, strict=True))
        scales = [1.0]
        while scales[-1] * scale_step <= min(largest_scale, largest or np.inf):
            scales.append(scales[-1] * scale_step)
        return scales

    def cut(self, image: np.ndarray, box: Box) -> np.ndarray:
        """Return a window of ``detect`` as it was scored, scaled down.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image.
        box : tuple of float
            (left, top, right, bottom) of a detection in pixels.

        Returns
        -------
        ndarray of shape (height, width, 3), uint8
            Pixels of the window.
        """
        scale = (box[2] - box[0]) / self.window[1]
        left, top = round(box[0] / scale), round(box[1] / scale)
        scene = _smaller(check_image(image), scale)
        return scene[top : top + self.window[0], left : left + self.window[1]].copy()


def _scans_of(histograms: ImageHistograms) -> list[type[Scan]]:
    """Return the class of scan for each descriptor."""
    scans = []
    for name, descriptor in zip(histograms.names_, histograms.descriptors_, strict=True):
        kind = next((scan for taken, scan in SCANS.items() if isinstance(descriptor, taken)), None)
        if kind is None:
            raise InputError(
                f"windows can be scanned with SIFT, HOG, ColourHistogram, LBP, HOGBlocks and PHOG; {name!r} is "
                f"{descriptor}. Fit histograms and model without it."
            )
        scans.append(kind)
    if histograms.n_regions != 1:
        raise InputError(f"windows can be scanned with n_regions=1 only; the histograms are {histograms!r}.")
    return scans


def _step(histograms: ImageHistograms, step: int | None) -> int:
    """Return the distance between neighbouring windows in pixels, at which the points of all descriptors coincide."""
    descriptors: list[Any] = histograms.descriptors_
    least = lcm(*(descriptor.step for descriptor in descriptors))
    if step is None:
        return least
    check_positive(step, "step", integer=True)
    if step % least:
        wanted = f"a multiple of {least}, at which the points of the descriptors coincide"
        raise ParameterError("step", step, wanted)
    return step


def _output(model: BaseEstimator, target: object) -> tuple[int, float]:
    """Return which output of the model is the score of the target, and its sign."""
    classes = model.classes_.tolist()
    if target is None:
        if len(classes) != 2:
            raise InputError(f"target must be one of the {len(classes)} classes, such as {classes[0]!r}; got None.")
        target = classes[1]
    if target not in classes:
        raise InputError(f"target must be one of {', '.join(map(str, classes[:5]))}, ..; got {target!r}.")
    if len(classes) == 2:
        return 0, 1.0 if target == classes[1] else -1.0
    return classes.index(target), 1.0


def _smaller(image: np.ndarray, scale: float) -> np.ndarray:
    if scale == 1:
        return image
    cv2 = opencv()
    height, width = (max(1, round(side / scale)) for side in image.shape[:2])
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
