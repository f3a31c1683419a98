"""Exact K-fold errors along a path of strengths, such as that of the LASSO, from fold moments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap._errors import InputError
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
    """Compute the exact held-out errors of the strengths of a path.

    The error of a fold is the mean of |f(z) - y|^2 over its rows.

    Parameters
    ----------
    folds : FoldMoments
        Moments of each fold.
    whole : Moments
        Moments of all rows.
    alphas : array of shape (s,)
        Strengths, descending.
    solve : callable
        Called as ``solve(moments, alphas)``; returns the ``SparsePath`` of their solutions, in the same order.
    on_fold : callable or None, default=None
        Called as ``on_fold(k)`` after each fold.

    Returns
    -------
    SelectionResult
        The errors of all strengths, of which the smallest mean is chosen.

    Raises
    ------
    ValueError
        If the strengths do not descend.
    DataError
        If a fold has no rows or leaves none to train on.

    Examples
    --------
    >>> from chimap.solvers.sparse import elastic_net
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.normal(size=(200, 4)), rng.normal(size=200)
    >>> y = 3 * Z[:, 0] + noise
    >>> zero = np.zeros(4), np.zeros(1)  # what the moments are about
    >>> folds = FoldMoments.of([Moments(4, 1, *zero).update(Z[k::5], y[k::5]) for k in range(5)], Z.dtype)
    >>> whole = Moments(4, 1, *zero).update(Z, y)
    >>> score_path(folds, whole, np.array([10.0, 0.01]), elastic_net).best["alpha"]
    0.01
    """
    check_folds(folds, whole)
    if (np.diff(alphas) > 0).any():  # solutions would be paired with the wrong strengths
        raise InputError(
            f"alphas must descend, as a path does: sort them; got {np.asarray(alphas).tolist()}."
        )
    errors = []
    for k, fold in enumerate(folds.folds):
        errors.append([held_out_error(fold, solution) for solution in solve(whole - fold, alphas).solutions])
        if on_fold is not None:
            on_fold(k)
    return of_path(folds, whole, alphas, np.array(errors).T)


def of_path(folds: FoldMoments, whole: Moments, alphas: np.ndarray, errors: np.ndarray) -> SelectionResult:
    """Choose the strength of a path with the smallest mean held-out error.

    Parameters
    ----------
    folds : FoldMoments
        Moments of each fold.
    whole : Moments
        Moments of all rows.
    alphas : array of shape (s,)
        The strengths.
    errors : array of shape (s, K)
        Mean squared error of each strength on each fold.

    Returns
    -------
    SelectionResult

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.normal(size=(200, 4)), rng.normal(size=200)
    >>> y = 3 * Z[:, 0] + noise
    >>> zero = np.zeros(4), np.zeros(1)  # what the moments are about
    >>> folds = FoldMoments.of([Moments(4, 1, *zero).update(Z[k::5], y[k::5]) for k in range(5)], Z.dtype)
    >>> whole = Moments(4, 1, *zero).update(Z, y)
    >>> of_path(folds, whole, np.array([0.1, 10.0]), np.array([[1.0] * 5, [2.0] * 5])).best
    {'alpha': 0.1}
    """
    counts = np.array([fold.count for fold in folds.folds])
    chosen = int(np.argmin(np.average(errors, axis=1, weights=counts)))
    total = float(whole.target_scatter().sum()) / whole.count
    return SelectionResult("folds", {"alpha": alphas}, errors, counts, chosen, baseline=total)
