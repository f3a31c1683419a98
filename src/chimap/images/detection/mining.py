"""Windows of images without objects that a model takes for objects: what it has to learn next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from chimap._validation import DataError, check_positive
from chimap.images.detection.detector import WindowDetector
from chimap.images.histograms import ImageHistograms

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def hard_negatives(
    detector: WindowDetector,
    scenes: Iterable[np.ndarray],
    *,
    most: int = 20,
    threshold: float = 0.0,
    **scan: float,
) -> list[np.ndarray]:
    """Windows (height, width, 3) with scores above the threshold, up to ``most`` a scene, the worst mistakes first.

    scenes : images in which there is nothing to be found. scan : as in ``WindowDetector.detect``.

    Examples
    --------
    >>> from chimap import HistogramClassifier
    >>> from chimap.images import HOGBlocks, ImageHistograms
    >>> y, x = np.mgrid[:32, :32]
    >>> stripes = lambda z, i: np.repeat((127 + 100 * np.sin(z / 2 + i)).astype(np.uint8)[:, :, None], 3, axis=2)
    >>> windows = [stripes(x if i % 2 else y, i) for i in range(8)]
    >>> histograms = ImageHistograms(HOGBlocks((32, 32)), grids=((1, 1),)).fit(windows)
    >>> model = HistogramClassifier("chi2", alpha=0.1).fit(histograms.transform(windows), np.arange(8) % 2)
    >>> detector = WindowDetector(model, histograms, window=(32, 32))
    >>> [window.shape for window in hard_negatives(detector, [np.hstack(windows[:4])], most=2)]
    [(32, 32, 3), (32, 32, 3)]
    """
    return [
        detector.cut(scene, detection.box)
        for scene in scenes
        for detection in detector.detect(scene, threshold, **scan)[:most]
    ]


def mined_detector(
    model: BaseEstimator,
    histograms: ImageHistograms,
    objects: Sequence[np.ndarray],
    others: Sequence[np.ndarray],
    scenes: Sequence[np.ndarray],
    *,
    rounds: int = 2,
    step: int | None = None,
    **mining: Any,
) -> tuple[WindowDetector, BaseEstimator]:
    """A detector, and its model, fitted on windows and then on its own mistakes, round by round.

    Each round scans the scenes, adds what is found there to the windows without objects, and fits anew; it ends early
    where nothing is found.

    Parameters
    ----------
    model : unfitted ``HistogramClassifier`` with an additive kernel; clones are fitted, on labels True and False.
    histograms : fitted.
    objects, others : windows of one size with and without objects.
    scenes : images without objects.
    rounds : of mining.
    step : of ``WindowDetector``.
    mining : as in ``hard_negatives``.

    Source: Dalal and Triggs, Histograms of oriented gradients for human detection, 2005 (one round).

    Examples
    --------
    >>> from chimap import HistogramClassifier
    >>> from chimap.images import HOGBlocks, ImageHistograms
    >>> y, x = np.mgrid[:32, :32]
    >>> stripes = lambda z, i: np.repeat((127 + 100 * np.sin(z / 2 + i)).astype(np.uint8)[:, :, None], 3, axis=2)
    >>> upright, level = [stripes(x, i) for i in range(6)], [stripes(y, i) for i in range(6)]
    >>> histograms = ImageHistograms(HOGBlocks((32, 32)), grids=((1, 1),)).fit(upright)
    >>> scene = np.hstack([stripes(x + y, 0), level[0]])  # slanting stripes are not to be found
    >>> detector, model = mined_detector(
    ...     HistogramClassifier("chi2", alpha=0.1), histograms, upright, level, [scene], threshold=-0.5
    ... )
    >>> bool(detector.scores(scene).max() < detector.scores(upright[3]).max())
    True
    """
    check_positive(rounds, "rounds", integer=True)
    if not len(objects) or not len(others):
        raise DataError(
            f"windows with and without objects are needed to begin with; got {len(objects)} and {len(others)}."
        )
    window = (objects[0].shape[0], objects[0].shape[1])
    rows = [histograms.transform(objects), histograms.transform(others)]
    for number in range(rounds + 1):
        labels = np.arange(sum(map(len, rows))) < len(objects)
        fitted = clone(model).fit(np.concatenate(rows), labels)
        detector = WindowDetector(fitted, histograms, window, target=True, step=step)
        wrong = hard_negatives(detector, scenes, **mining) if number < rounds else []
        if not wrong:
            break
        rows.append(histograms.transform(wrong))
    return detector, fitted
