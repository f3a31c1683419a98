"""The group LASSO with scikit-learn's scaling of alpha, from moments.

The problem is

    min_{w, b}  sum_i (z_i'w + b - y_i)^2 / (2n) + alpha sum_g sqrt(|g|) |w_g|_2,

target by target. It is that of ``group_path`` at n alpha; see there for the method and its cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap.moments import Moments
from chimap.penalties import L21
from chimap.solvers.group_path import SquareProblem, follow, largest_alpha
from chimap.solvers.ridge import LinearSolution
from chimap.solvers.sparse import SparsePath


def group_lasso(moments: Moments, alphas: np.ndarray, groups: Sequence[np.ndarray]) -> SparsePath:
    """Minimise sum (z'w + b - y)^2 / (2n) + alpha sum_g sqrt(|g|) |w_g|_2, target by target.

    Parameters
    ----------
    moments : Moments
        Moments of all n rows.
    alphas : ndarray of shape (s,)
        Strengths, scaled as scikit-learn's: they weigh the penalty against the mean loss of a row.
    groups : sequence of index arrays
        Columns of each group. Each column is in exactly one group.

    Returns
    -------
    SparsePath
        Solutions in descending order of alpha; each search starts from the solution before.

    Raises
    ------
    DataError
        If the moments have no rows.
    """
    alphas = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    penalty = L21(1.0, groups, moments.n_features, [len(group) ** 0.5 for group in groups])
    path = follow(SquareProblem(moments, penalty), moments.count * alphas)
    solutions = [
        LinearSolution(solution.coef, solution.intercept, float(alpha))
        for solution, alpha in zip(path, alphas, strict=True)
    ]
    return SparsePath(alphas, solutions, np.array([solution.residual for solution in path]))


def largest_group_alpha(moments: Moments, groups: Sequence[np.ndarray]) -> float:
    """Return the least strength of ``group_lasso`` at which all weights are zero."""
    penalty = L21(1.0, groups, moments.n_features, [len(group) ** 0.5 for group in groups])
    return largest_alpha(moments, penalty) / moments.count
