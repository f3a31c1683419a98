"""Groups of features, used or left out: the path of strengths, from moments, and by passes for other losses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

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
    """Weights, and how nearly they are the minimum.

    objective: at the weights, summed over targets. residual: the largest violation of a group's optimality condition,
    over its strength. evaluations: of the gradient; for losses that need them, passes over the rows.

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
    """The regularisation path: what each strength gives.

    alpha: (s,), descending. weights: (s, t, r), the weight |w_j| / sqrt(2) of each of r kernels for each of t
    targets (1 where they share them). objectives, residuals: (s,), and the largest violation of an optimality condition
    over the strength. chosen: index of the strength that is used.
    """

    alphas: np.ndarray
    weights: np.ndarray
    objectives: np.ndarray
    residuals: np.ndarray
    chosen: int

    @property
    def n_used(self) -> np.ndarray:
        """Kernels that some target uses, (s,)."""
        return (self.weights > 0).any(axis=1).sum(axis=1)


class SquareProblem:
    """Minimise sum (z'w + b - y)^2 / 2 + alpha sum_g weight_g |w_g|, from moments; b is free.

    The strength is that of ``losses.Square`` and ``penalties.L21``. penalty: groups, their weights, and whether targets
    share them; its strength is not used.

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, eq. 19, with the square loss.

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
        if moments.count == 0:
            raise DataError("no rows: fit needs moments that have seen some.")
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
        """The least strength at which all weights are zero."""
        return largest_alpha(self.moments, self.penalty)

    @property
    def at_zero(self) -> float:
        """The objective without weights."""
        return self._constant

    def zero(self) -> LinearSolution:
        """No weights."""
        return solution(self.moments, np.zeros_like(self._V), 0.0)

    def solve(self, alpha: float, start: LinearSolution) -> GroupSolution:
        """The minimum, from the weights of ``start`` on."""
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
    """The least strength at which all weights of the square loss are zero."""
    return penalty.with_alpha(1.0).largest(moments.cross_scatter())


def full_scatter(moments: Moments) -> np.ndarray:
    """Hc, both halves, (D, D) float64."""
    square = np.empty((moments.n_features, moments.n_features))
    moments.scatter_into(square)
    for first in range(0, square.shape[0], 256):  # block by block: no second matrix
        rows = slice(first, first + 256)
        corner = np.triu(square[rows, rows])
        square[rows, rows] = corner + np.triu(corner, 1).T
        square[first + 256 :, rows] = square[rows, first + 256 :].T
    return square


class GroupProblem(Protocol):
    """A loss with the group penalty, at any strength."""

    def zero(self) -> LinearSolution:
        """The solution without weights."""
        ...

    def solve(self, alpha: float, start: LinearSolution) -> GroupSolution:
        """The solution at a strength, from another one on."""
        ...


def follow(
    problem: GroupProblem,
    alphas: Sequence[float] | np.ndarray,
    on_solution: Callable[[GroupSolution], bool | None] | None = None,
) -> list[GroupSolution]:
    """Solutions at strengths from the largest down, each from the one before on.

    on_solution: told of each; True ends the path there.

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
        check_positive(float(alpha), "each of alpha")
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
    """Errors (s, K), mean |f(z) - y|^2 a row summed over targets, of each fold at the solutions for the others.

    Raises DataError for a fold without rows, or one that leaves none.
    """
    errors = np.empty((alphas.size, len(folds.folds)))
    for k, fold in enumerate(folds.folds):
        if fold.n_rows in (0, whole.n_rows):
            raise DataError(
                f"fold {k} holds {fold.n_rows} of {whole.n_rows} rows: too few to cross-validate."
            )
        # in one expression, so that the matrices of a fold are gone before those of the next
        path = follow(SquareProblem(whole - fold, penalty, tolerance), alphas, on_solution)
        errors[:, k] = [held_out_error(fold, solution) for solution in path]
    return errors


def warn_if_short(residual: float, tolerance: float, alpha: float, evaluations: int) -> None:
    """A ConvergenceWarning where a residual is above the tolerance that was asked for."""
    if residual > tolerance:
        warnings.warn(
            f"the group weights at strength {alpha:.4g} stopped after {evaluations} evaluations at a residual of "
            f"{residual:.2g}, short of tolerance={tolerance:g}. Use a larger strength.",
            ConvergenceWarning, stacklevel=3,
        )  # fmt: skip


register(KernelPath)
