"""The group LASSO with scikit-learn's scaling of the strengths, from moments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap.moments import Moments
from chimap.penalties import L21
from chimap.solvers.group_path import SquareProblem, follow, largest_alpha
from chimap.solvers.ridge import LinearSolution
from chimap.solvers.sparse import SparsePath


def group_lasso(moments: Moments, alphas: np.ndarray, groups: Sequence[np.ndarray]) -> SparsePath:
    """Minimise sum (z'w + b - y)^2 / (2n) + alpha sum_g sqrt(|g|) |w_g|_2, each target by itself.

    Parameters
    ----------
    moments : Moments
        Of all n rows.
    alphas : array (s,)
        Strengths, as scikit-learn's: of the mean over the rows.
    groups : sequence of index arrays
        Each column in exactly one.

    Returns
    -------
    SparsePath
        Largest strength first, each solution found from the one before.

    Raises
    ------
    DataError
        For moments of no rows.
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
    """The least strength of ``group_lasso`` at which all weights are zero."""
    penalty = L21(1.0, groups, moments.n_features, [len(group) ** 0.5 for group in groups])
    return largest_alpha(moments, penalty) / moments.count
