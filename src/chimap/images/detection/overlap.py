"""Windows that were found, and which of them stay where several lie over one another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Box = tuple[float, float, float, float]


class Detection(NamedTuple):
    """A window: left, top, right, bottom in pixels of the image (right and bottom excluded), and its score.

    Examples
    --------
    >>> Detection((60.0, 30.0, 140.0, 90.0), score=0.8).box
    (60.0, 30.0, 140.0, 90.0)
    """

    box: Box
    score: float


def shared_areas(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union (n,) of a box (4,) and others (n, 4)."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.prod(np.maximum(sides, 0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return common / (areas - common)


def best_of(detections: list[Detection], overlap: float) -> list[Detection]:
    """Those that no better one overlaps by more than this share of their union, best first."""
    ordered = sorted(detections, key=lambda one: -one.score)
    boxes = np.array([one.box for one in ordered]).reshape(-1, 4)
    left = np.ones(len(ordered), bool)
    kept = []
    for i, one in enumerate(ordered):
        if left[i]:
            kept.append(one)
            left &= shared_areas(boxes[i], boxes) <= overlap
    return kept
