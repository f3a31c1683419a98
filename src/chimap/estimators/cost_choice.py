"""The cost C of errors of an exact kernel machine: given, or the most accurate of several on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from chimap._types import RandomState
from chimap._validation import check_choice, check_positive
from chimap.selection.scoring import labels_of

COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_PLAIN_COST = 10.0  # preferred cost if no rows can be held out
Solve = Callable[[np.ndarray, np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


def given_costs(C: str | float | Sequence[float]) -> list[float]:
    """Return the values of C to choose from, ascending. Raise ValueError unless C is "auto" or numbers above 0."""
    if isinstance(C, str):
        check_choice(C, "C", ("auto",))
        return list(COSTS)
    costs = np.atleast_1d(C).tolist()
    for cost in costs:
        check_positive(cost, "C")
    return sorted(costs)


def folds_of(selection: Any, y: np.ndarray, random_state: RandomState) -> Any:
    """Return the given scikit-learn splitter, or folds with rows of every class if there are enough.

    Return None if there are too few rows to hold some out.
    """
    if not isinstance(selection, Integral):
        from sklearn.model_selection import check_cv

        return check_cv(selection, y, classifier=True)
    check_positive(selection, "selection", integer=True)
    n_folds = min(int(selection), len(y) // 2)
    if n_folds < 2:
        return None
    seed = check_random_state(random_state).randint(2**31)
    fewest = np.unique(y, return_counts=True)[1].min()
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if fewest >= n_folds else KFold
    return kind(n_folds, shuffle=True, random_state=seed)


def chosen_cost(
    costs: list[float],
    solve: Solve,
    folds: Any,
    gram: np.ndarray,
    targets: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    classes: np.ndarray,
) -> tuple[float, dict[float, float] | None]:
    """Return the cost of the most accurate machine on held-out rows, and the accuracies of all.

    solve: takes a kernel matrix (n, n), targets (n, t) and weights of rows w (n,). Ties go to the smallest cost.
    """
    if len(costs) == 1:
        return costs[0], None
    if folds is None:
        return min(costs, key=lambda cost: abs(np.log(cost / _PLAIN_COST))), None
    right = dict.fromkeys(costs, 0.0)
    for train, test in folds.split(np.zeros(len(y)), y):
        train_gram, test_gram = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
        for cost in costs:
            alpha, intercept = solve(train_gram, targets[train], w[train], cost)
            labels = labels_of(test_gram @ alpha + intercept, classes)
            right[cost] += float(w[test] @ (labels == y[test]))
    scores = {cost: count / w.sum() for cost, count in right.items()}
    return max(scores, key=lambda cost: scores[cost]), scores
