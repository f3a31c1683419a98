"""Exact folds along a path of strengths, such as that of the LASSO."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap.moments import FoldMoments, Moments
from chimap.selection.base import SelectionResult
from chimap.selection.folds import check_folds
from chimap.solvers.sparse import SparsePath, held_out_error


def score_path(
    folds: FoldMoments,
    whole: Moments,
    alphas: np.ndarray,
    solve: Callable[[Moments, np.ndarray], SparsePath],
    on_fold: Callable[[int], None] | None = None,
) -> SelectionResult:
    """Exact held-out errors of the strengths (s,) of a path, mean |f(z) - y|^2 over the rows of each fold."""
    check_folds(folds, whole)
    errors = []
    for k, fold in enumerate(folds.folds):
        errors.append([held_out_error(fold, found) for found in solve(whole - fold, alphas).solutions])
        if on_fold is not None:
            on_fold(k)
    return of_path(folds, whole, alphas, np.array(errors).T)


def of_path(folds: FoldMoments, whole: Moments, alphas: np.ndarray, errors: np.ndarray) -> SelectionResult:
    """What held-out squared errors (s, K) of a path say."""
    counts = np.array([fold.count for fold in folds.folds])
    chosen = int(np.argmin(np.average(errors, axis=1, weights=counts)))
    total = float(whole.target_scatter().sum()) / whole.count
    return SelectionResult("folds", {"alpha": alphas}, errors, counts, chosen, baseline=total)
