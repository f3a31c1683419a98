"""Weights of rows and classes: checked, and brought to the rows of a source."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.utils import compute_class_weight

from chimap._types import ArrayLike, ClassWeight
from chimap._validation import checked_weights
from chimap.data import Source
from chimap.data.views import ChosenRows


def checked_sample_weight(
    sample_weight: ArrayLike | None, n_rows: int, where: str = "sample_weight"
) -> np.ndarray | None:
    """Weights (n_rows,) float64 of rows: one number for all of them, one each, or None. Raises DataError."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    return checked_weights(sample_weight, n_rows, "row", where)


def checked_class_weight(class_weight: ClassWeight) -> None:
    """Refuse what is neither None, "balanced" nor a mapping of labels to numbers above 0. Raises ValueError."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight must be None, 'balanced', or a dictionary of labels and weights; got {class_weight!r}. "
            "A list of dictionaries is of several tasks, a matrix y with a column for each."
        )
    for label, weight in class_weight.items():
        if not (isinstance(weight, numbers.Real) and 1e-12 <= float(weight) <= 1e12):
            raise ValueError(
                f"class_weight: {label!r} has the weight {weight!r}; weights of classes are numbers from 1e-12 to "
                "1e12. To leave a class out give its rows sample_weight 0."
            )


def class_weights(
    class_weight: ClassWeight,
    classes: np.ndarray,
    y: np.ndarray | None,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray | None:
    """Weights (k,) of classes as scikit-learn computes them: "balanced" is n / (k n_class), sums of weights where rows
    have some; None stays None. A class that a dictionary does not name has weight 1.

    y: labels of all rows, which "balanced" needs. Raises ValueError for labels that are no class.
    """
    checked_class_weight(class_weight)
    if class_weight is None:
        return None
    if isinstance(class_weight, Mapping):
        known = set(classes.tolist())
        unknown = [label for label in class_weight if label not in known]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is none of the classes "
                f"{', '.join(map(repr, classes[:20].tolist()))}. Name the labels as they are in y."
            )
        return np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    return np.asarray(
        compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight),
        dtype=np.float64,
    )


def weights_of_tasks(
    class_weight: ClassWeight,
    Y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    names: Sequence[str] | None = None,
) -> np.ndarray | None:
    """Weights (t, 2) of labels 0 and 1 of several tasks Y (n, t), NaN where one is missing; None stays None.

    "balanced" is of each task, by the rows that it is seen in, a dictionary of all tasks, and a list of them of one
    task each, as scikit-learn's estimators of several outputs take it. Raises ValueError, naming the task by its name
    where there are ``names``, and else by its number.
    """
    if class_weight is None:
        return None
    n_tasks, labels = Y.shape[1], np.array([0, 1])
    several = list(class_weight) if isinstance(class_weight, list | tuple) else [class_weight] * n_tasks
    if len(several) != n_tasks:
        raise ValueError(
            f"class_weight: {len(several)} dictionaries, and y has {n_tasks} tasks. Give one a task."
        )
    made = np.ones((n_tasks, 2))
    for task, (wanted, y) in enumerate(zip(several, Y.T, strict=True)):
        seen = np.flatnonzero(~np.isnan(y))
        own = None if sample_weight is None else sample_weight[seen]
        both = np.unique(y[seen]).size == 2
        try:
            if both or not isinstance(wanted, str):
                made[task] = (
                    1.0 if wanted is None else class_weights(wanted, labels, y[seen].astype(int), own)
                )
            else:
                checked_class_weight(wanted)
        except ValueError as error:
            name = task if names is None else repr(str(names[task]))
            raise ValueError(f"task {name}: {error}") from error
    return made


def weights_of_entries(of_tasks: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
    """Weights (n, t) of the labels Y of several tasks: those of their rows times those of the labels, (t, 2).

    A missing entry, which nothing is learned from, has the mean of its row, so that it does not change that.
    """
    seen = ~np.isnan(Y)
    each = np.where(Y == 1, of_tasks[:, 1], of_tasks[:, 0])
    means = np.where(seen, each, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    each = np.where(seen, each, means[:, None])
    return each if sample_weight is None else sample_weight[:, None] * each


def with_weights(source: Source, weights: np.ndarray | None) -> Source:
    """The rows of a source with weights (n_rows,) in place of those that it has."""
    weighted = copy.copy(source)
    weighted.weights = weights
    return weighted


def without_absent(source: Source) -> tuple[Source, np.ndarray | None]:
    """(the rows of a source that have a weight above 0, their places or None where all have)."""
    weights = source.weights
    if weights is None or (weights > 0).all():
        return source, None
    rows = np.flatnonzero(weights > 0)
    y = source.labels()
    return ChosenRows(source, rows, None if y is None else y[rows]), rows
