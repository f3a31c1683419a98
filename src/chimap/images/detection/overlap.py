"""Detected windows, and the choice among those that overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
