"""Rates of missed objects against rates of false positives, per window or per image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap._errors import InputError
from chimap._validation import DataError
from chimap.papers.detection.detector import Box, Detection, WindowDetector, shared_areas

AVERAGED_RATES = np.logspace(-2, 0, 9)  # at which the log-average miss rate is taken


@dataclass(frozen=True, eq=False)
class MissRates:
    """Miss rate against false positives, for every threshold from the highest to the lowest.

    Parameters
    ----------
    false_positives : ndarray of shape (n,)
        False positives per window or per image, increasing.
    missed : ndarray of shape (n,)
        Share of the objects that are missed, decreasing.

    References
    ----------
    Dollar, Wojek, Schiele and Perona, Pedestrian detection: an evaluation of the state of the art, 2012.

    Examples
    --------
    >>> curve = MissRates.of(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), n_objects=2, n_trials=4)
    >>> curve.false_positives, curve.missed, curve.at(0.1)
    (array([0.  , 0.  , 0.25, 0.25]), array([1. , 0.5, 0.5, 0. ]), 0.5)
    """

    false_positives: np.ndarray
    missed: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, is_object: np.ndarray, n_objects: int, n_trials: int) -> MissRates:
        """Return the curve for scores of windows; windows of equal scores are accepted together.

        Parameters
        ----------
        scores : ndarray of shape (m,)
            Scores of windows.
        is_object : ndarray of shape (m,), bool
            Whether each window is an object.
        n_objects : int
            Number of all objects, found or not.
        n_trials : int
            Number of windows without objects, or of images.

        Returns
        -------
        MissRates
            The curve.

        Raises
        ------
        ValueError
            If ``n_objects`` or ``n_trials`` is below 1.
        """
        if n_objects < 1 or n_trials < 1:
            raise InputError(f"n_objects and n_trials must be at least 1; got {n_objects} and {n_trials}.")
        order = np.argsort(-scores, kind="stable")
        scores, hits = scores[order], np.asarray(is_object, bool)[order]
        last = np.append(np.flatnonzero(np.diff(scores)), scores.size - 1) if scores.size else np.zeros(0, int)
        hit, false = (np.append(0, np.cumsum(flags)[last]) for flags in (hits, ~hits))
        return cls(false / n_trials, 1 - hit / n_objects)

    def at(self, rate: float) -> float:
        """Return the share missed at the lowest threshold with at most this rate of false positives.

        Parameters
        ----------
        rate : float
            False positives per window or per image, at least 0.

        Raises
        ------
        ValueError
            If the rate is negative.
        """
        if not rate >= 0:
            raise InputError(f"rate must be at least 0; got {rate}.")
        return float(self.missed[np.searchsorted(self.false_positives, rate, side="right") - 1])

    @property
    def log_average(self) -> float:
        """Geometric mean of the shares missed at nine rates from 0.01 to 1, evenly spaced in logarithm."""
        missed = np.array([self.at(rate) for rate in AVERAGED_RATES])
        return float(np.exp(np.log(np.maximum(missed, 1e-10)).mean()))


def matched(
    detections: Sequence[Sequence[Detection]], boxes: Sequence[Sequence[Box]], overlap: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Match the detections of each image with its objects.

    In the order of their scores, best first, each detection takes the remaining object that it overlaps most, if their
    intersection over union is at least ``overlap``. Each object is taken once: a second detection of it is a false
    positive.

    Parameters
    ----------
    detections : sequence of sequence of Detection
        Detections of each image.
    boxes : sequence of sequence of tuple
        Objects of each image: left, top, right and bottom in pixels.
    overlap : float, default=0.5
        Smallest intersection over union of a detection and its object.

    Returns
    -------
    scores : ndarray of shape (m,)
        Scores of the detections of all images.
    is_object : ndarray of shape (m,), bool
        Whether each detection has taken an object.

    References
    ----------
    Everingham et al., The PASCAL visual object classes challenge, 2010.

    Examples
    --------
    >>> from chimap.papers import Detection
    >>> detections = [Detection((0, 0, 10, 10), 0.9), Detection((1, 0, 11, 10), 0.7), Detection((50, 50, 60, 60), 0.8)]
    >>> scores, is_object = matched([detections], [[(0, 0, 10, 10)]])
    >>> scores.tolist(), is_object.tolist()
    ([0.9, 0.8, 0.7], [True, False, False])
    """
    scores, is_object = [], []
    for image_detections, image_boxes in zip(detections, boxes, strict=True):
        remaining = np.array(image_boxes, dtype=float).reshape(-1, 4)
        for detection in sorted(image_detections, key=lambda d: -d.score):
            shares = shared_areas(np.array(detection.box), remaining)
            best = int(shares.argmax()) if shares.size else -1
            scores.append(detection.score)
            is_object.append(best >= 0 and bool(shares[best] >= overlap))
            if is_object[-1]:
                remaining = np.delete(remaining, best, axis=0)
    return np.array(scores), np.array(is_object, bool)


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
