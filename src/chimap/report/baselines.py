"""What one gets without looking at the histograms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._types import JSON, ArrayLike
from chimap.report._answers import checked_labels, checked_numbers
from chimap.report._plain import plain


@dataclass(frozen=True)
class Baseline:
    """What one gets without looking at the histograms.

    name: what it does, "always answering 'cat'".
    value: its accuracy (classification) or its root mean squared error (regression), on the same rows.
    """

    name: str
    value: float

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        return {"name": self.name, "value": plain(float(self.value))}


def majority_baseline(y_train: ArrayLike, y_true: ArrayLike) -> Baseline:
    """Accuracy on ``y_true`` (n,) of answering with the most frequent label of ``y_train`` (m,) always."""
    classes, counts = np.unique(checked_labels(y_train, "y_train"), return_counts=True)
    answer = classes[np.argmax(counts)]
    return Baseline(
        f"always answering “{answer}”", float(np.mean(checked_labels(y_true, "y_true") == answer))
    )


def mean_baseline(y_train: ArrayLike, y_true: ArrayLike) -> Baseline:
    """Root mean squared error on ``y_true`` (n,) of answering with the mean of ``y_train`` (m,) always."""
    answer = checked_numbers(checked_labels(y_train, "y_train"), "y_train").mean()
    error = checked_numbers(checked_labels(y_true, "y_true"), "y_true") - answer
    return Baseline(f"always answering the mean, {answer:.4g}", float(np.sqrt(np.mean(error**2))))
