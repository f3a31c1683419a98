"""Weights of rows and classes: checked, and combined into weights of the rows of a source.

Estimators call these functions before a fit; the fit itself only sees the weights of the source.
"""

from __future__ import annotations

import copy
import numbers
from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.utils import compute_class_weight

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike, ClassWeight
from chimap._validation import DataError, check_choice, checked_weights
from chimap.data import Source

KINDS = ("importance", "frequency")
"""What weights of rows say: how much each row matters, or how many equal rows it stands for."""


def checked_sample_weight(
    sample_weight: ArrayLike | None, n_rows: int, where: str = "sample_weight"
) -> np.ndarray | None:
    """Return row weights as float64 (n_rows,), from one number for all, one for each row, or None; check them."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    return checked_weights(sample_weight, n_rows, "row", where)


def checked_class_weight(class_weight: ClassWeight) -> None:
    """Raise ValueError unless the argument is None, "balanced" or a mapping of labels to numbers above 0."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise InputError(
            Message(
                "{class_weight} must be None, 'balanced', or a dictionary of labels and weights; got {!r}. For "
                "several tasks (a matrix y with a column for each) give a list of dictionaries.",
                class_weight,
            )
        )
    for label, weight in class_weight.items():
        if not (isinstance(weight, numbers.Real) and 1e-12 <= float(weight) <= 1e12):
            raise InputError(
                Message(
                    "{class_weight}: {!r} has the weight {!r}; weights of classes are numbers from 1e-12 to 1e12. To "
                    "leave a class out, give its rows {sample_weight} 0.",
                    label,
                    weight,
                )
            )


def class_weights(
    class_weight: ClassWeight, classes: np.ndarray, y: np.ndarray | None, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the weights (k,) of the classes, as scikit-learn computes them.

    "balanced" is n / (k n_class), with sums of weights in place of numbers of rows if rows have weights; it needs the
    labels ``y`` of all rows. A class that a dictionary does not name has weight 1. Raise ValueError for a label that is
    not a class.
    """
    checked_class_weight(class_weight)
    if isinstance(class_weight, Mapping):
        labels_of_classes = set(classes.tolist())
        unknown = [label for label in class_weight if label not in labels_of_classes]
        if unknown:
            raise InputError(
                Message(
                    "{class_weight} names {!r}, which is none of the classes {}. Name the labels as they are in y.",
                    unknown[0],
                    ", ".join(map(repr, classes[:20].tolist())),
                )
            )
        return np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    return np.asarray(
        compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight), dtype=np.float64
    )


def weights_of_tasks(
    class_weight: ClassWeight,
    Y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    names: Sequence[str] | np.ndarray | None = None,
) -> np.ndarray:
    """Return the weights (t, 2) of the labels 0 and 1 of several tasks ``Y`` (n, t).

    "balanced" applies to each task, by the rows whose entry is not missing (NaN). A dictionary applies to all tasks,
    and a list has one for each task, as in scikit-learn's multi-output estimators. Raise ValueError, which gives the
    task by its entry of ``names`` or by its number.
    """
    n_tasks, labels = Y.shape[1], np.array([0, 1])
    weights_by_task = list(class_weight) if isinstance(class_weight, list | tuple) else [class_weight] * n_tasks
    if len(weights_by_task) != n_tasks:
        raise InputError(
            Message(
                "{class_weight}: {} dictionaries, but y has {} tasks. Give one for each task.",
                len(weights_by_task),
                n_tasks,
            )
        )
    task_weights = np.ones((n_tasks, 2))
    for task, (class_weight_of_task, y) in enumerate(zip(weights_by_task, Y.T, strict=True)):
        labelled = np.flatnonzero(~np.isnan(y))
        labelled_weights = None if sample_weight is None else sample_weight[labelled]
        has_both = np.unique(y[labelled]).size == 2
        try:
            if has_both or not isinstance(class_weight_of_task, str):
                task_weights[task] = (
                    1.0
                    if class_weight_of_task is None
                    else class_weights(class_weight_of_task, labels, y[labelled].astype(int), labelled_weights)
                )
            else:
                checked_class_weight(class_weight_of_task)
        except ValueError as error:
            name = task if names is None else repr(str(names[task]))
            raise InputError(Message("task {}: {}", name, error)) from error
    return task_weights


def weights_of_entries(of_tasks: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
    """Return the weights (n, t) of the entries of ``Y``: those of their rows times those (t, 2) of their labels.

    A missing entry has no influence on the fit. It gets the mean weight of its row, so that it does not change that
    mean.
    """
    is_labelled = ~np.isnan(Y)
    entry_weights = np.where(Y == 1, of_tasks[:, 1], of_tasks[:, 0])
    means = np.where(is_labelled, entry_weights, 0.0).sum(axis=1) / np.maximum(is_labelled.sum(axis=1), 1)
    entry_weights = np.where(is_labelled, entry_weights, means[:, None])
    return entry_weights if sample_weight is None else sample_weight[:, None] * entry_weights


def with_weights(source: Source, weights: np.ndarray | None, counts: np.ndarray | None = None) -> Source:
    """Return a source with the same rows and these weights and counts (n_rows,) in place of its former ones."""
    weighted = copy.copy(source)
    weighted.weights, weighted.counts = weights, counts
    return weighted


def counts_in(kind: str, weights: np.ndarray | None, where: str = "sample_weight") -> np.ndarray | None:
    """Return how many equal rows each row stands for: its weight if weights are frequencies, and else None, for one.

    Raise ValueError for another ``kind`` than those of ``KINDS``, and DataError, naming the row, for a frequency that
    is not a whole number.
    """
    check_choice(kind, "weights", KINDS)
    if kind == "importance" or weights is None:
        return None
    broken = np.flatnonzero(weights != np.floor(weights))
    if broken.size:
        raise DataError(
            Message(
                "{}, row {}: {:g}. With {weights='frequency'} a weight is a number of equal rows, a whole number; use "
                "{weights='importance'} for weights that say how much a row matters.",
                where,
                broken[0],
                weights[broken[0]],
            )
        )
    return weights
