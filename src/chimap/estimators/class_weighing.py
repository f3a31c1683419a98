"""Weights of rows multiplied by the weights of their classes."""

from __future__ import annotations

import numpy as np

from chimap._messages import Message
from chimap._types import Sometimes
from chimap.estimators.targets import Encoding
from chimap.fit.result import HeldOutRows
from chimap.fit.targets import ClassCodec, is_matrix
from chimap.fit.weights import checked_class_weight, class_weights, weights_of_entries, weights_of_tasks
from chimap.moments import as_counts
from chimap.selection.threshold import checked_threshold


class ClassWeighing(Encoding):
    """Class weights: ``class_weight_`` is learned from ``class_weight`` and multiplies the weights of the rows."""

    classes_: np.ndarray
    class_weight_: Sometimes[np.ndarray | None]

    def _class_weighed(
        self, y: np.ndarray, sample_weight: np.ndarray | None, is_batch: bool = False
    ) -> np.ndarray | None:
        """Return the weights of the rows times those of their classes, (n,), or (n, t) with several tasks.

        Sets ``class_weight_`` and checks the other settings that depend on the classes.

        ``is_batch`` says that y is a batch of known classes and more rows will follow. Raise ValueError for "balanced"
        then, because it needs the labels of all rows.
        """
        wanted = getattr(self, "class_weight", None)
        if is_batch and isinstance(wanted, str):
            checked_class_weight(wanted)
            raise ValueError(
                Message(
                    "{class_weight='balanced'} needs the labels of all rows, and partial_fit sees only a batch of "
                    "them. Give weights by label: compute_class_weight('balanced', classes=classes, y=y) of "
                    "sklearn.utils."
                )
            )
        threshold = getattr(self, "threshold", None)
        checked_threshold(threshold)
        if is_matrix(y):
            if threshold is not None:
                raise ValueError("threshold is for a single task: leave it out, or fit the tasks one by one.")
            if is_batch and wanted is not None:
                raise ValueError(
                    Message(
                        "{class_weight} with several tasks needs separate sums for each task, and partial_fit adds up "
                        "one set of sums for all: use fit or fit_source, or give {sample_weight}."
                    )
                )
            Y = np.asarray(y, dtype=np.float64)
            names = getattr(self, "task_names_", None)
            self.class_weight_ = weights_of_tasks(wanted, Y, sample_weight, names)
            if self.class_weight_ is None:
                return sample_weight
            return weights_of_entries(self.class_weight_, Y, sample_weight)
        codec = ClassCodec(self.classes_) if is_batch else ClassCodec.of_classes(y)
        classes = codec.classes
        if threshold is not None and classes.size != 2:
            raise ValueError(
                Message(
                    "{threshold=} needs two classes, and y has {}. Leave {threshold} out; {class_weight='balanced'} "
                    "makes up for rare classes.",
                    threshold,
                    classes.size,
                )
            )
        self.class_weight_ = class_weights(wanted, classes, y, sample_weight)
        if self.class_weight_ is None:
            return sample_weight
        codec.encode(y)  # raises for a label that is not a class
        class_factors = self.class_weight_[np.searchsorted(classes, y)]
        return class_factors if sample_weight is None else sample_weight * class_factors

    def _times(self, held_out: HeldOutRows) -> np.ndarray | None:
        """Return how often each held-out row counts; weights of classes change what is learned, not what is counted."""
        weights, class_weights = held_out.weights, getattr(self, "class_weight_", None)
        if weights is None:
            return None
        if class_weights is not None and weights.ndim == 2:
            class_factors = np.where(held_out.y == 1, class_weights[:, 1], class_weights[:, 0])
            weights = np.nanmean(np.where(np.isnan(held_out.y), np.nan, weights / class_factors), axis=1)
        elif class_weights is not None:
            weights = weights / class_weights[np.searchsorted(self.classes_, held_out.y)]
        return as_counts(weights)
