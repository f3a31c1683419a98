"""Weights of rows multiplied by the weights of their classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ClassWeight
from chimap.fit.result import HeldOutRows
from chimap.fit.targets import ClassCodec, is_matrix
from chimap.fit.weights import checked_class_weight, class_weights, weights_of_entries, weights_of_tasks
from chimap.moments import as_counts


def check_of_batch(class_weight: ClassWeight, y: np.ndarray) -> None:
    """Raise ValueError for class weights that a batch of rows cannot have, as it shows only some of the labels."""
    if isinstance(class_weight, str):
        checked_class_weight(class_weight)
        raise InputError(
            Message(
                "{class_weight='balanced'} needs the labels of all rows, and partial_fit sees only a batch of "
                "them. Give weights by label: compute_class_weight('balanced', classes=classes, y=y) of "
                "sklearn.utils."
            )
        )
    if is_matrix(y) and class_weight is not None:
        raise InputError(
            Message(
                "{class_weight} with several tasks needs separate sums for each task, and partial_fit adds up "
                "one set of sums for all: use fit or fit_source, or give {sample_weight}."
            )
        )


def classes_in(y: np.ndarray) -> np.ndarray:
    """Return the classes among labels, or the labels 0 and 1 of several tasks. Raise DataError for a single class."""
    return np.array([0, 1]) if is_matrix(y) else ClassCodec.of_classes(y).classes


def weighed_by_class(
    class_weight: ClassWeight,
    classes: np.ndarray,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    names: Sequence[str] | None,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the weights of the rows times those of their classes, and the weights of the classes or None.

    They have shapes (n,) and (k,), or (n, t) and (t, 2) for the labels 0 and 1 of several tasks with these names.
    Without weights of classes, those of the rows are returned as they are. Raise DataError for a label that is not a
    class.
    """
    if is_matrix(y):
        Y = np.asarray(y, dtype=np.float64)
        of_tasks = weights_of_tasks(class_weight, Y, sample_weight, names)
        return (
            sample_weight if of_tasks is None else weights_of_entries(of_tasks, Y, sample_weight)
        ), of_tasks
    of_classes = class_weights(class_weight, classes, y, sample_weight)
    if of_classes is None:
        return sample_weight, None
    ClassCodec(classes).encode(y)  # raises for a label that is not a class
    class_factors = of_classes[np.searchsorted(classes, y)]
    return (class_factors if sample_weight is None else sample_weight * class_factors), of_classes


def counts_of(
    held_out: HeldOutRows | None, class_weight: np.ndarray | None, classes: np.ndarray
) -> np.ndarray | None:
    """Return how often each held-out row counts; weights of classes change what is learned, not what is counted.

    class_weight: the learned weights of the classes (k,), or of the labels of tasks (t, 2), or None.
    """
    if held_out is None or held_out.weights is None:
        return None
    weights = held_out.weights
    if class_weight is not None and weights.ndim == 2:
        class_factors = np.where(held_out.y == 1, class_weight[:, 1], class_weight[:, 0])
        weights = np.nanmean(np.where(np.isnan(held_out.y), np.nan, weights / class_factors), axis=1)
    elif class_weight is not None:
        weights = weights / class_weight[np.searchsorted(classes, held_out.y)]
    return as_counts(weights)
