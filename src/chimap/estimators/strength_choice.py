"""The strength of the penalty of an exact kernel machine: given, or the most accurate of several on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from chimap._types import RandomState
from chimap.selection import SelectionResult, fold_count
from chimap.selection.scoring import labels_of

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

# what "auto" compares, in mean diagonals of the centred kernel
_SHARES = np.array([1e-3, 1e-2, 0.1, 1.0, 10.0])
_PLAIN_SHARE = 0.1  # preferred if no rows can be held out
Solve = Callable[[np.ndarray, np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


def strengths_of(given: float | tuple[float, ...] | None, scale: float) -> np.ndarray:
    """Return the strengths to choose from, ascending.

    given: from ``checked_alpha``. scale: mean diagonal of the centred kernel.
    """
    return scale * _SHARES if given is None else np.unique(given)


def checked_folds(
    selection: str | int | BaseCrossValidator, given: float | tuple[float, ...] | None
) -> int | BaseCrossValidator:
    """Return the scikit-learn splitter or the number of folds; one fold serves only where nothing is chosen."""
    if isinstance(selection, str) or not hasattr(selection, "split"):
        return fold_count(selection, 1 if isinstance(given, float) else 2)
    return selection


def folds_of(
    selection: int | BaseCrossValidator, y: np.ndarray, random_state: RandomState
) -> BaseCrossValidator | None:
    """Return the given splitter, or so many folds, with rows of every class if there are enough.

    Return None if there are too few rows to hold some out.
    """
    if not isinstance(selection, int):
        return selection
    n_folds = min(selection, len(y) // 2)
    if n_folds < 2:
        return None
    seed = check_random_state(random_state).randint(2**31)
    fewest = np.unique(y, return_counts=True)[1].min()
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if fewest >= n_folds else KFold
    return kind(n_folds, shuffle=True, random_state=seed)


def chosen_strength(
    strengths: np.ndarray,
    scale: float,
    solve: Solve,
    folds: BaseCrossValidator | None,
    gram: np.ndarray,
    targets: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    classes: np.ndarray,
) -> tuple[float, SelectionResult | None]:
    """Return the strength of the most accurate machine on held-out rows, and the accuracies of all.

    solve: takes a kernel matrix (n, n), targets (n, t), weights of rows w (n,) and a strength. Ties go to the largest.
    """
    if strengths.size == 1:
        return float(strengths[0]), None
    if folds is None:
        return float(strengths[np.argmin(np.abs(np.log(strengths / (_PLAIN_SHARE * scale))))]), None
    scores, weights = [], []
    for train, test in folds.split(np.zeros(len(y)), y):
        train_gram, test_gram = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
        solved = [solve(train_gram, targets[train], w[train], alpha) for alpha in strengths.tolist()]
        found = [labels_of(test_gram @ duals + intercept, classes) for duals, intercept in solved]
        scores.append([np.average(labels == y[test], weights=w[test]) for labels in found])
        weights.append(w[test].sum())
    means = np.average(scores, axis=0, weights=weights)
    chosen = int(np.flatnonzero(np.isclose(means, means.max(), rtol=0, atol=1e-12))[-1])
    result = SelectionResult(
        "folds", {"alpha": strengths}, np.transpose(scores), np.array(weights), chosen, "accuracy", True
    )
    return float(strengths[chosen]), result
