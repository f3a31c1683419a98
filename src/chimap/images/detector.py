"""A model that scans images: the score of every window, by tables."""

from __future__ import annotations

from itertools import product
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from chimap import _loops, _threads
from chimap._validation import check_positive
from chimap.features.rounded import check_not_rounded
from chimap.images.coding import HardCoding
from chimap.images.descriptors import OnGrids
from chimap.images.descriptors.base import check_image, opencv
from chimap.images.histograms import ImageHistograms
from chimap.images.pyramid import cells_of
from chimap.tables import BinFunctions


class Detection(NamedTuple):
    """A window: left, top, right, bottom in pixels of the image (right and bottom excluded), and its score.

    Examples
    --------
    >>> Detection((60.0, 30.0, 140.0, 90.0), score=0.8).box
    (60.0, 30.0, 140.0, 90.0)
    """

    box: tuple[float, float, float, float]
    score: float


class _Cell(NamedTuple):
    """A cell of the window: number of its descriptor, points of that between two windows, places (rectangles, 5), see
    ``scan_windows``, and table (words, most + 1, 1) float64."""

    descriptor: int
    stride: int
    places: np.ndarray
    table: np.ndarray


class WindowDetector:
    """Scores of all windows of one size in an image, of a classifier that was fitted on images of that size.

    f(window) = b + sum_i g_i(count_i / n), with the functions g_i of single bins that a linear model on additive
    features is the sum of. The window holds n points, always, so that count_i is one of 0, .., n: each g_i is a table,
    without rounding. Windows lie ``step`` pixels apart, a step of the descriptor, or of several the least that is a
    multiple of the step of each; from one to the next only the points of some columns change: each costs two look-ups.
    The number of features does not matter: they are in the tables.

    model : a fitted ``HistogramClassifier`` with an additive kernel (or several as blocks), ``normalize=None``.
    histograms : what made its rows, one region: of SIFT (any colours), ``ColourHistogram`` and ``LBP``, one or several;
        words by hard coding. Points of the others lie on no common grid (HOG, soft edges of PHOG) or are shared among
        words, so that what a window holds are no counts.
    window : (height, width) of the images it was fitted on.
    target : the class whose score counts; None is the second of two.
    Scores are those of ``model.decision_function`` on the histograms of the window cut out, up to the pixels around it,
    which the descriptors of the scene see and those of the cut do not.

    Raises ValueError for other models and histograms, and windows that are too small for a point.

    Source: Maji, Berg and Malik, Classification using intersection kernel support vector machines is efficient, 2008
    (tables); the windows' counts as they change, after Huang, Yang and Tang, A fast two-dimensional median filtering
    algorithm, 1979.

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

    def __init__(self, model: Any, histograms: ImageHistograms, window: tuple[int, int], target: Any = None):
        self._descriptors = _on_grids(histograms)
        self.step = lcm(*(descriptor.step for descriptor in self._descriptors))
        self.histograms, self.window = histograms, (int(window[0]), int(window[1]))
        if model.normalize_ is not None:
            raise ValueError(
                f"the model must have normalize=None; got {model.normalize_!r}. Levels sum to 1 already."
            )
        check_not_rounded(model, "WindowDetector")
        output, self._sign = _output(model, target)
        self.intercept = self._sign * float(model.intercept_[output])
        functions = BinFunctions(model.features_, model.coef_.T)
        self._cells: list[_Cell] = []
        levels = product(enumerate(self._descriptors), histograms.grids)
        for ((number, descriptor), grid), level in zip(levels, histograms.levels_.values(), strict=True):
            cells = self._cells_of(descriptor, grid)
            n_points = sum(int((places[:, 3] * places[:, 4]).sum()) for places in cells)
            if not n_points:
                raise ValueError(f"window {self.window} holds no points of {descriptor}; take a larger one.")
            n_words = (level.stop - level.start) // len(cells)
            for cell, places in enumerate(cells):
                bins = np.arange(level.start + cell * n_words, level.start + (cell + 1) * n_words)
                counts = np.arange(int((places[:, 3] * places[:, 4]).sum()) + 1) / n_points
                values = functions(np.repeat(counts[:, None], n_words, axis=1), bins)[:, :, [output]]
                table = np.ascontiguousarray(self._sign * values.transpose(1, 0, 2))
                self._cells.append(_Cell(number, self.step // descriptor.step, places, table))

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
        words = [self._words(image, number) for number in range(len(self._descriptors))]
        scores = np.full((rows, columns, 1), self.intercept)

        def scan(part: slice) -> None:
            for cell in self._cells:
                _loops.scan_windows(
                    words[cell.descriptor], cell.places, cell.table, part.start, cell.stride, scores[part]
                )

        _threads.over_rows(rows, columns * sum(int(cell.places[:, 3].sum()) for cell in self._cells), scan)
        return scores[:, :, 0]

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
        check_positive(scale_step - 1, "scale_step - 1")
        image, step = check_image(image), self.step
        found: list[Detection] = []
        for scale in self.scales(image.shape, scale_step, largest):
            scores = self.scores(_smaller(image, scale))
            for i, j in zip(*np.nonzero(scores > threshold), strict=True):
                left, top = scale * step * j, scale * step * i
                box = (left, top, left + scale * self.window[1], top + scale * self.window[0])
                found.append(Detection(tuple(map(float, box)), float(scores[i, j])))  # type: ignore[arg-type]
        return best_of(found, overlap)

    def scales(
        self, shape: tuple[int, ...], scale_step: float = 1.2, largest: float | None = None
    ) -> list[float]:
        """How many pixels of the image a pixel of the window stands for, 1 and up."""
        most = min(side / own for side, own in zip(shape[:2], self.window, strict=True))
        scales = [1.0]
        while scales[-1] * scale_step <= min(most, largest or np.inf):
            scales.append(scales[-1] * scale_step)
        return scales

    def _cells_of(self, descriptor: OnGrids, grid: tuple[int, int]) -> list[np.ndarray]:
        """The points of each cell of the window: a rectangle of each layer that has some."""
        layers = descriptor.grids(self.window)
        row_of = [cells_of(y, 0, self.window[0], grid[0]) for _, y in layers]
        column_of = [cells_of(x, 0, self.window[1], grid[1]) for x, _ in layers]
        cells = []
        for row, column in product(range(grid[0]), range(grid[1])):
            places = []
            for layer in range(len(layers)):
                inside_y = np.flatnonzero(row_of[layer] == row)
                inside_x = np.flatnonzero(column_of[layer] == column)
                if inside_y.size and inside_x.size:
                    places.append([layer, inside_y[0], inside_x[0], inside_y.size, inside_x.size])
            cells.append(np.array(places, np.int64).reshape(-1, 5))
        return cells

    def _words(self, image: np.ndarray, number: int) -> np.ndarray:
        """(layers, H, W) int32: the word at each point of the layers of a descriptor, -1 beyond its grid."""
        histograms, descriptor = self.histograms, self._descriptors[number]
        coded, _ = histograms.coded(image, histograms.descriptors_[number], histograms.vocabularies_[number])
        grids = descriptor.grids(image.shape)
        words = np.full(
            (len(grids), max(y.size for _, y in grids), max(x.size for x, _ in grids)), -1, np.int32
        )
        start = 0
        for layer, (x, y) in enumerate(grids):
            stop = start + y.size * x.size
            words[layer, : y.size, : x.size] = coded.words[start:stop, 0].reshape(y.size, x.size)
            start = stop
        return words


def best_of(found: list[Detection], overlap: float) -> list[Detection]:
    """Those that no better one overlaps by more than this share of their union, best first."""
    ordered = sorted(found, key=lambda one: -one.score)
    boxes = np.array([one.box for one in ordered]).reshape(-1, 4)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = np.ones(len(ordered), bool)
    kept = []
    for i, one in enumerate(ordered):
        if not left[i]:
            continue
        kept.append(one)
        low, high = np.maximum(boxes[i, :2], boxes[:, :2]), np.minimum(boxes[i, 2:], boxes[:, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        left &= common <= overlap * (areas + areas[i] - common)
    return kept


def _on_grids(histograms: ImageHistograms) -> list[OnGrids]:
    """The descriptors, of histograms whose windows can be counted."""
    found: list[OnGrids] = []
    for name, descriptor in zip(histograms.names_, histograms.descriptors_, strict=True):
        if not isinstance(descriptor, OnGrids):
            raise ValueError(
                f"windows are counted for descriptors whose points lie on one grid and count once: SIFT, "
                f"ColourHistogram and LBP; {name!r} is {descriptor}. Fit histograms and model without it."
            )
        found.append(descriptor)
    has_words = any(vocabulary is not None for vocabulary in histograms.vocabularies_)
    for is_so, what in (
        (not has_words or isinstance(histograms.coder, HardCoding), "coding='hard'"),
        (histograms.n_regions == 1, "n_regions=1"),
    ):
        if not is_so:
            raise ValueError(f"windows are counted for {what} only; the histograms have {histograms!r}.")
    return found


def _output(model: Any, target: Any) -> tuple[int, float]:
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
