"""Mine hard negatives: windows of images without objects that a model takes for objects, to learn from next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from chimap._validation import DataError, check_positive
from chimap.images.histograms import ImageHistograms
from chimap.papers.detection.detector import WindowDetector

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def hard_negatives(
    detector: WindowDetector, scenes: Iterable[np.ndarray], *, most: int = 20, threshold: float = 0.0, **scan: float
) -> list[np.ndarray]:
    """Return windows of scenes without objects whose scores exceed the threshold.

    They are in the order of the scenes, and the worst mistakes of each scene come first.

    Parameters
    ----------
    detector : WindowDetector
        The detector.
    scenes : iterable of ndarray of shape (H, W, 3), uint8
        Images without objects.
    most : int, default=20
        Largest number of windows of a scene.
    threshold : float, default=0.0
        Score that windows must exceed.
    scan : float
        ``scale_step``, ``largest`` and ``overlap`` of ``WindowDetector.detect``.

    Returns
    -------
    list of ndarray of shape (height, width, 3), uint8
        The windows, of the detector's size.

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
    **mining: Any,
) -> tuple[WindowDetector, BaseEstimator]:
    """Fit a detector on windows and then, round by round, on its own mistakes.

    Each round scans the scenes, adds its detections there to the windows without objects, and fits again. It ends early
    if there are no detections.

    Parameters
    ----------
    model : HistogramClassifier
        Unfitted classifier with an additive kernel; clones are fitted on labels True and False.
    histograms : ImageHistograms
        Fitted histograms.
    objects, others : sequence of ndarray of shape (height, width, 3), uint8
        Windows of one size with and without objects.
    scenes : sequence of ndarray of shape (H, W, 3), uint8
        Images without objects.
    rounds : int, default=2
        Number of rounds of mining.
    mining : object
        Further arguments of ``hard_negatives``.

    Returns
    -------
    detector : WindowDetector
        The detector of the last round.
    model : HistogramClassifier
        Its fitted model.

    Raises
    ------
    DataError
        If there are no windows with objects, or none without.

    References
    ----------
    Dalal and Triggs, Histograms of oriented gradients for human detection, 2005 (one round).

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
            f"windows with and without objects are needed to start from; got {len(objects)} and {len(others)}."
        )
    window = (objects[0].shape[0], objects[0].shape[1])
    rows = [histograms.transform(objects), histograms.transform(others)]
    for number in range(rounds + 1):
        labels = np.arange(sum(map(len, rows))) < len(objects)
        fitted = clone(model).fit(np.concatenate(rows), labels)
        detector = WindowDetector(fitted, histograms, window, target=True)
        mistakes = hard_negatives(detector, scenes, **mining) if number < rounds else []
        if not mistakes:
            break
        rows.append(histograms.transform(mistakes))
    return detector, fitted
