"""Evaluate a detector: on windows with and without an object, and on scenes whose objects are known."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from chimap._validation import DataError
from chimap.images.detection.curve import MissRates, matched
from chimap.images.detection.detector import WindowDetector
from chimap.images.detection.overlap import Box


def window_miss_rates(
    detector: WindowDetector, objects: Iterable[np.ndarray], scenes: Iterable[np.ndarray], **scales: float
) -> MissRates:
    """Return the rates of missed objects against false positives per window.

    Parameters
    ----------
    detector : WindowDetector
        The detector.
    objects : iterable of ndarray of shape (height, width, 3), uint8
        Images of the size of the window, each with an object.
    scenes : iterable of ndarray of shape (H, W, 3), uint8
        Images without objects; every window of every size counts.
    scales : float
        ``scale_step`` and ``largest`` of ``WindowDetector.detect``.

    Returns
    -------
    MissRates
        The curve.

    Raises
    ------
    DataError
        If an object differs in size from the window.

    References
    ----------
    Dalal and Triggs, Histograms of oriented gradients for human detection, 2005.

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
    >>> window_miss_rates(detector, windows[1::2], [np.hstack(windows[::2])]).at(0.01)
    0.0
    """
    object_scores = []
    for i, image in enumerate(objects):
        if image.shape[:2] != detector.window:
            raise DataError(
                f"object {i} has {image.shape[0]} x {image.shape[1]} pixels, the window {detector.window[0]} x "
                f"{detector.window[1]}: resize or cut it."
            )
        object_scores.append(detector.scores(image).ravel())
    scene_scores = [scores.ravel() for image in scenes for _, scores in detector.scan(image, **scales)]
    hits, false = (np.concatenate([np.zeros(0), *parts]) for parts in (object_scores, scene_scores))
    return MissRates.of(
        np.concatenate([hits, false]), np.arange(hits.size + false.size) < hits.size, hits.size, false.size
    )


def scene_miss_rates(
    detector: WindowDetector,
    scenes: Iterable[tuple[np.ndarray, list[Box]]],
    threshold: float,
    *,
    least_shared: float = 0.5,
    **scan: float,
) -> MissRates:
    """Return the rates of missed objects against false positives per image.

    Parameters
    ----------
    detector : WindowDetector
        The detector.
    scenes : iterable of (ndarray of shape (H, W, 3), list of tuple)
        Images with the boxes (left, top, right, bottom) of all their objects, which may be none.
    threshold : float
        Score above which a window is a detection; the curve ends at its rate of false positives.
    least_shared : float, default=0.5
        Smallest intersection over union of a detection and its object.
    scan : float
        ``scale_step``, ``largest`` and ``overlap`` of ``WindowDetector.detect``.

    Returns
    -------
    MissRates
        The curve.

    References
    ----------
    Dollar, Wojek, Schiele and Perona, Pedestrian detection: an evaluation of the state of the art, 2012.

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
    >>> scene = np.hstack([windows[0], windows[1], windows[2]])
    >>> scene_miss_rates(detector, [(scene, [(32, 0, 64, 32)])], threshold=0.0).at(0.1)
    0.0
    """
    detections, boxes = [], []
    for image, image_boxes in scenes:
        detections.append(detector.detect(image, threshold, **scan))
        boxes.append(image_boxes)
    return MissRates.of(*matched(detections, boxes, least_shared), sum(map(len, boxes)), len(boxes))
