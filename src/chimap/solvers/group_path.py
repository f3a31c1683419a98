"""Groups of features that are used or left out together: the square loss from moments, and the path of strengths.

The problem is

    min_{w, b}  sum_i (z_i'w + b - y_i)^2 / 2 + alpha sum_g weight_g |w_g|_2,

solved by exact block coordinate descent (``group_descent``) on the moments, without further passes over the rows. Its
set-up takes the eigenvectors of each diagonal block of Hc, O(sum_g |g|^3) operations; a sweep over all groups takes
O(D^2 t). Memory holds Hc as a (D, D) float64 matrix, a copy ordered by groups if they are not consecutive, and the
eigenvectors. ``follow`` walks a path of strengths from the largest down; it also serves other losses, whose problem
(``group_passes``) reads the rows again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap._messages import Message
from chimap._validation import DataError, check_positive
from chimap.model_files import register
from chimap.moments import FoldMoments, Moments
from chimap.penalties import L21
from chimap.solvers.group_descent import GroupQuadratic
from chimap.solvers.ridge import LinearSolution, solution
from chimap.solvers.sparse import held_out_error

TOLERANCE = 1e-7


@dataclass(frozen=True)
class GroupSolution(LinearSolution):
    """A linear model with group weights, and how near it is to the minimum.

    Parameters
    ----------
    coef : ndarray of shape (D, t)
        Weights of the features.
    intercept : ndarray of shape (t,)
        Intercepts of the targets.
    alpha : float
        Strength of the penalty.
    objective : float
        Objective at the weights, summed over targets.
    residual : float
        Largest violation of a group's optimality condition, relative to its strength.
    evaluations : int
        Evaluations of the gradient. For losses that need them, each is a pass over the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 4))
    >>> moments = Moments(4, 1).update(Z, Z[:, 0])
    >>> problem = SquareProblem(moments, L21(1.0, [slice(0, 2), slice(2, 4)], 4))
    >>> solution = problem.solve(problem.largest / 10, problem.zero())
    >>> bool(solution.residual < 1e-6)
    True
    """

    objective: float
    residual: float
    evaluations: int


@dataclass(frozen=True)
class KernelPath:
    """The regularisation path of kernel weights: what each strength gives.

    Parameters
    ----------
    alphas : ndarray of shape (s,)
        Strengths, descending.
    weights : ndarray of shape (s, t, r)
        Weight |w_j| / sqrt(2) of each of r kernels for each of t targets. t is 1 where the targets share the kernels.
    objectives : ndarray of shape (s,)
        Objective at each strength.
    residuals : ndarray of shape (s,)
        Largest violation of an optimality condition, relative to the strength.
    chosen : int
        Index of the strength that the model uses.
    """

    alphas: np.ndarray
    weights: np.ndarray
    objectives: np.ndarray
    residuals: np.ndarray
    chosen: int

    @property
    def n_used(self) -> np.ndarray:
        """Number of kernels that at least one target uses, shape (s,)."""
        return (self.weights > 0).any(axis=1).sum(axis=1)


class SquareProblem:
    """Minimise sum (z'w + b - y)^2 / 2 + alpha sum_g weight_g |w_g|_2 from moments; b is not penalised.

    The strength is that of ``losses.Square`` and ``penalties.L21``.

    Parameters
    ----------
    moments : Moments
        Moments of all rows.
    penalty : L21
        The groups, their weights, and whether targets share them. Its strength is not used.
    tolerance : float, default=1e-07
        Largest violation of a group's optimality condition, relative to its strength, at which the descent stops.

    Raises
    ------
    DataError
        If the moments have no rows, or the targets are too large to be squared.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, eq. 19, with the square loss.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 4))
    >>> moments = Moments(4, 1).update(Z, Z[:, 0])
    >>> problem = SquareProblem(moments, L21(1.0, [slice(0, 2), slice(2, 4)], 4))
    >>> solution = problem.solve(problem.largest / 10, problem.zero())
    >>> bool(solution.coef[0, 0] > 0.5), solution.coef[2:].tolist()  # the second group is left out
    (True, [[0.0], [0.0]])
    """

    def __init__(self, moments: Moments, penalty: L21, tolerance: float = TOLERANCE):
        moments.check_rows()
        self.moments, self.penalty, self.tolerance = moments, penalty, tolerance
        self._V = moments.cross_scatter()
        self._constant = float(moments.target_scatter().sum()) / 2
        if not (np.isfinite(self._V).all() and np.isfinite(self._constant)):
            raise DataError(
                "the objective of the square loss is not finite: the targets y are too large to be squared. Divide "
                "them by their scale."
            )
        self._quadratic = GroupQuadratic(full_scatter(moments), penalty)

    @property
    def largest(self) -> float:
        """Smallest strength at which all weights are zero."""
        return largest_alpha(self.moments, self.penalty)

    @property
    def at_zero(self) -> float:
        """Objective at zero weights."""
        return self._constant

    def zero(self) -> LinearSolution:
        """Return zero weights with the best intercepts."""
        return solution(self.moments, np.zeros_like(self._V), 0.0)

    def solve(self, alpha: float, start: LinearSolution) -> GroupSolution:
        """Return the minimum at a strength.

        Parameters
        ----------
        alpha : float
            Strength of the penalty.
        start : LinearSolution
            Weights to start from.

        Returns
        -------
        GroupSolution
            Weights (D, t) and intercepts (t,). A ConvergenceWarning is issued if they miss the tolerance.
        """
        penalty = self.penalty.with_alpha(alpha)
        minimum = self._quadratic.minimise(self._V, penalty, start.coef, self.tolerance)
        residual = float(minimum.at.residuals.max())
        warn_if_short(residual, self.tolerance, alpha, minimum.evaluations)
        plain = solution(self.moments, minimum.x, float(alpha))
        return GroupSolution(
            plain.coef, plain.intercept, plain.alpha, float(minimum.at.values.sum()) + self._constant, residual,
            minimum.evaluations,
        )  # fmt: skip


def largest_alpha(moments: Moments, penalty: L21) -> float:
    """Return the smallest strength at which all weights are zero under the square loss."""
    return penalty.with_alpha(1.0).largest(moments.cross_scatter())


def full_scatter(moments: Moments) -> np.ndarray:
    """Return both triangles of Hc, (D, D) float64."""
    square = np.empty((moments.n_features, moments.n_features))
    moments.scatter_into(square)
    for first in range(0, square.shape[0], 256):  # mirror block by block, which needs no second matrix
        rows = slice(first, first + 256)
        corner = np.triu(square[rows, rows])
        square[rows, rows] = corner + np.triu(corner, 1).T
        square[first + 256 :, rows] = square[rows, first + 256 :].T
    return square


class GroupProblem(Protocol):
    """A loss with the group penalty, solved at any strength."""

    def zero(self) -> LinearSolution:
        """Return the solution without weights."""
        ...

    def solve(self, alpha: float, start: LinearSolution) -> GroupSolution:
        """Return the solution at a strength, starting from another solution."""
        ...


def follow(
    problem: GroupProblem,
    alphas: Sequence[float] | np.ndarray,
    on_solution: Callable[[GroupSolution], bool | None] | None = None,
) -> list[GroupSolution]:
    """Solve at several strengths from the largest down, each solution starting from the one before.

    Parameters
    ----------
    problem : GroupProblem
        The problem, such as ``SquareProblem`` or ``LossProblem``.
    alphas : sequence of float
        Strengths, in any order.
    on_solution : callable, default=None
        Called with each solution. The path ends when it returns True.

    Returns
    -------
    list of GroupSolution
        The solutions in descending order of strength.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 4))
    >>> moments = Moments(4, 1).update(Z, Z[:, 0])
    >>> problem = SquareProblem(moments, L21(1.0, [slice(0, 2), slice(2, 4)], 4))
    >>> path = follow(problem, [problem.largest / 2, problem.largest / 10])
    >>> [bool(solution.coef[0, 0] > 0.4) for solution in path]
    [True, True]
    """
    for alpha in alphas:
        check_positive(float(alpha), Message("each of {alpha}"))
    path: list[GroupSolution] = []
    last = problem.zero()
    for alpha in np.sort(np.asarray(alphas, dtype=np.float64))[::-1]:
        last = problem.solve(float(alpha), last)
        path.append(last)
        if on_solution is not None and on_solution(last):
            break
    return path


def held_out_errors(
    folds: FoldMoments,
    whole: Moments,
    penalty: L21,
    alphas: np.ndarray,
    tolerance: float,
    on_solution: Callable[[GroupSolution], None] | None = None,
) -> np.ndarray:
    """Return the errors (s, K) of each fold under the solutions for the other folds.

    An error is the mean of |f(z) - y|^2 over the rows of the fold, summed over targets. ``alphas`` (s,) descend;
    ``on_solution`` is called with each solution. Raises DataError for a fold that holds no rows, or all of them.
    """
    errors = np.empty((alphas.size, len(folds.folds)))
    for k, fold in enumerate(folds.folds):
        if fold.n_rows in (0, whole.n_rows):
            raise DataError(
                f"fold {k} holds {fold.n_rows} of {whole.n_rows} rows: too few to cross-validate."
            )
        # One expression keeps no reference to the problem, so its matrices are freed before the next fold's are made.
        path = follow(SquareProblem(whole - fold, penalty, tolerance), alphas, on_solution)
        errors[:, k] = [held_out_error(fold, solution) for solution in path]
    return errors


def warn_if_short(residual: float, tolerance: float, alpha: float, evaluations: int) -> None:
    """Issue a ConvergenceWarning if the residual is above the tolerance."""
    if residual > tolerance:
        warnings.warn(
            f"the group weights at strength {alpha:.4g} stopped after {evaluations} evaluations at a residual of "
            f"{residual:.2g}, short of tolerance={tolerance:g}. Use a larger strength.",
            ConvergenceWarning, stacklevel=3,
        )  # fmt: skip


register(KernelPath)
