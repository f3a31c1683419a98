"""Ridge on a kernel matrix in memory, with the held-out prediction of every row.

The problem is

    min_{a, b}  sum_i w_i |y_i - f(x_i)|^2 + alpha |f|^2,   f = sum_j K(., x_j) a_j + b.

One Cholesky factor per strength solves it, in n^3/3 operations and the memory of the kernel matrix (n, n). From the
factor, leaving out each row costs n^3/3 more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from chimap import _threads
from chimap._cholesky import TILE, factorise, inverse_blocks, inverse_diagonal, refined, solve
from chimap._errors import InputError
from chimap._messages import Message
from chimap._pieces import Result

STEPS = 3  # limit of refinement steps
_COLUMNS_CONVERTED = 2048  # columns that are converted to float64 together


@dataclass(frozen=True)
class DualSolution:
    """A kernel model f(x) = sum_j K(x, x_j) a_j + b.

    Parameters
    ----------
    weights : ndarray of shape (n, t), float64
        Dual weights a.
    intercept : ndarray of shape (t,), float64
        Intercepts b.
    alpha : float
        Strength of the penalty.
    """

    weights: np.ndarray
    intercept: np.ndarray
    alpha: float


@dataclass(frozen=True)
class DualPoint:
    """A model of one target on the way to its minimum: weights (n,), intercept, and outputs (n,) for the rows."""

    weights: np.ndarray
    intercept: float
    outputs: np.ndarray

    def towards(self, other: Self, share: float) -> Self:
        """Return the point at a share of the way to another model, or beyond it."""
        return replace(
            other,
            weights=self.weights + share * (other.weights - self.weights),
            intercept=self.intercept + share * (other.intercept - self.intercept),
            outputs=self.outputs + share * (other.outputs - self.outputs),
        )

    @property
    def norm(self) -> float:
        """|f|^2."""
        return float(self.weights @ (self.outputs - self.intercept))


class ExactSolver(ABC):
    """A solver on a kernel matrix in memory, as the rule that leaves rows out uses it.

    Attributes
    ----------
    square : ndarray of shape (n, n)
        The kernel matrix.
    begins_at : int
        Strength from which a search goes down by decades, in half decades relative to ``scale``.
    """

    square: np.ndarray
    begins_at: ClassVar[int] = -2
    _operations = 0.0

    @property
    def operations(self) -> float:
        """Operations of all factors and solutions so far; 0 if they are not counted."""
        return self._operations

    @abstractmethod
    def scale(self) -> float:
        """Return the mean scatter of a row, mean_i (K_ii) - mean_ij (K_ij), the unit of the strengths."""

    @abstractmethod
    def solve(self, alpha: float) -> DualSolution | None:
        """Return the solution at a strength, or None if the matrix is not positive definite to rounding."""

    def finished(self, solution: DualSolution) -> DualSolution:
        """Return the solution with the digits of the kernel values, if strengths are compared with fewer."""
        return solution

    @abstractmethod
    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the residuals (n_g, t) of each group of rows when it is left out, for the latest solution."""

    @abstractmethod
    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:
        """Return residuals y_i - f_-i(x_i) (n - first, t) of the rows from ``first`` on, for the latest solution."""

    def of_leading(self, n_rows: int, first: int) -> np.ndarray | None:
        """Return the residuals (n - first, t) of rows from ``first`` on under the model of the first ``n_rows`` alone.

        It is None for solvers whose factor does not contain that model.
        """
        return None


class DualRidge(ExactSolver):
    """Minimise sum_i w_i |y_i - f(x_i)|^2 + alpha |f|^2 with f = sum_j K(., x_j) a_j + b, b not penalised.

    The solution satisfies

        (K + alpha diag(1/w)) a + 1 b' = Y,  1'a = 0.

    The matrix is factorised in the memory of the kernel values: the values stay below the diagonal, the factor is above
    it. Factor and solutions are in the dtype of the values, refined by residuals in float64.

    Leaving out row i changes its residual from alpha a_i / w_i to a_i / M_ii, where M is the inverse A^-1 of the matrix
    less the part of the intercept, A^-1 - A^-1 11'A^-1 / (1'A^-1 1). Leaving out a group g changes them to M_gg^-1 a_g.

    Parameters
    ----------
    square : ndarray of shape (n, n), float32 or float64
        C-contiguous, with kernel values below the diagonal. The rest is overwritten.
    diagonal : ndarray of shape (n,)
        Diagonal of K.
    Y : ndarray of shape (n, t), float64
        Targets.
    row_weights : ndarray of shape (n,), default=None
        Positive weights of the rows. None is 1 for all.
    steps : int, default=3
        Limit of refinement steps. With 0, the solutions of the factor are not refined.

    References
    ----------
    Allen (1974), PRESS, for the closed form, here for ridge with a kernel; Rifkin and Lippert, Notes on regularized
    least squares, for the intercept and the weights.
    """

    def __init__(
        self,
        square: np.ndarray,
        diagonal: np.ndarray,
        Y: np.ndarray,
        row_weights: np.ndarray | None = None,
        steps: int = STEPS,
    ):
        self.square, self.diagonal, self.Y, self._steps = square, diagonal, Y, steps
        self.inverse_weights = np.ones(Y.shape[0]) if row_weights is None else 1 / row_weights  # (n,)
        self.factor_of: float | None = None  # strength of the factor in memory
        self._ones = self._sum = np.empty(0)

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return int(self.Y.shape[0])

    def scale(self) -> float:
        n = self.n_rows
        below = sum(
            float(np.tril(self.square[i : i + TILE, : i + TILE], i - 1).sum(dtype=np.float64))
            for i in range(0, n, TILE)
        )
        scatter = float(self.diagonal.mean() - (2 * below + self.diagonal.sum()) / n**2)
        return scatter * float(np.mean(1 / self.inverse_weights))

    def solve(self, alpha: float) -> DualSolution | None:
        if not self.factorise(alpha):
            return None
        solution = self.solve_for(np.column_stack([self.Y, np.ones(self.n_rows)]), self._steps)
        if solution is None:
            self.factor_of = None
            return None
        self._ones = solution[:, -1]
        self._sum = self._ones.sum()
        return DualSolution(*with_intercept(solution, self.Y), alpha)

    def factorise(self, alpha: float) -> bool:
        """Put the factor of A = K + alpha diag(1/w) in memory. False if A is not positive definite to rounding."""
        self.fill(alpha)
        self._operations += self.n_rows**3 / 3
        self.factor_of = alpha if factorise(self.square) else None
        return self.factor_of is not None

    def solve_for(self, right: np.ndarray, steps: int) -> np.ndarray | None:
        """Return A^-1 of a right side (n, columns), by the factor in memory and at most ``steps`` refinements.

        Returns None if the refinement does not converge: rounding then makes the factor that of another matrix.
        """
        alpha = self.factor_of
        assert alpha is not None  # callers factorise first
        self._operations += 2.0 * right.shape[1] * self.n_rows**2
        return refined(lambda B: solve(self.square, B), lambda A: self._product(A, alpha), right, steps)

    def inverse_diagonal(self, first: int) -> np.ndarray:
        """Return the diagonal of A^-1 from row ``first`` on, by the factor in memory, for (n - first)^3 / 3."""
        return inverse_diagonal(self.square, first)

    def of_inverse_blocks(
        self, groups: Sequence[np.ndarray], call: Callable[[int, np.ndarray], Result]
    ) -> list[Result]:
        """Return call(k, [A^-1]_gg) for each group g of rows, by the factor in memory."""
        results: dict[int, Result] = {}

        def visit(k: int, block: np.ndarray) -> None:
            results[k] = call(k, block)

        inverse_blocks(self.square, groups, visit)
        return [results[k] for k in range(len(groups))]

    def outputs_by_first(self, weights: np.ndarray) -> np.ndarray:
        """Return the values of the rows behind the first k with these, times weights (k, t), factorised or not.

        Products are in the dtype of the values, and sums of tiles in float64.
        """
        n, (k, t) = self.diagonal.size, weights.shape
        out, right = np.zeros((n - k, t)), weights.astype(self.square.dtype)

        def multiply(first: int) -> None:
            rows = slice(first, min(first + TILE, n))
            for start in range(0, k, _COLUMNS_CONVERTED):
                part = slice(start, min(start + _COLUMNS_CONVERTED, k))
                out[rows.start - k : rows.stop - k] += self.square[rows, part] @ right[part]

        _threads.tasks(range(k, n, TILE), multiply)
        return out

    def lift(self, constant: float) -> None:
        """Add a constant to all values of the kernel, before the matrix is factorised; see ``lift``."""
        self.diagonal = lift(self.square, self.diagonal, constant)

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:
        """See ``ExactSolver``: (n - first)^3/3 operations; a share of the rows, placed last, costs next to nothing."""
        check_latest(self.factor_of, solution)
        diagonal = inverse_diagonal(self.square, first) - self._ones[first:] ** 2 / self._sum
        return np.asarray(solution.weights[first:] / diagonal[:, None])

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        check_latest(self.factor_of, solution)
        return self._of_blocks(groups, lambda rows, block: np.linalg.solve(block, solution.weights[rows]))

    def variances(self, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the variances (n_g,) of the residuals of each group when it is left out, for the factor in memory.

        They are the diagonal of M_gg^-1, in units of the variance of the noise of a row of weight 1 over the strength.
        """
        return self._of_blocks(groups, lambda rows, block: np.linalg.inv(block).diagonal())

    def _of_blocks(
        self, groups: Sequence[np.ndarray], call: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> list[np.ndarray]:
        """Return call(rows, M_gg) of the rows of each group."""

        def less_intercept(k: int, block: np.ndarray) -> np.ndarray:
            rows = groups[k]
            block -= np.outer(self._ones[rows], self._ones[rows] / self._sum)
            return call(rows, block)

        return self.of_inverse_blocks(groups, less_intercept)

    def of_leading(self, n_rows: int, first: int) -> np.ndarray:
        """Return the residuals (n - first, t) of rows from ``first`` on under the model of the first ``n_rows`` alone.

        The strength is that of the factor in memory, whose leading corner is the factor of these rows.
        """
        corner = self.square[:n_rows, :n_rows]
        solved = solve(corner, np.column_stack([self.Y[:n_rows], np.ones(n_rows)])).astype(np.float64)
        weights, intercept = with_intercept(solved, self.Y[:n_rows])
        outputs = np.empty((self.n_rows - first, self.Y.shape[1]))

        def multiply(start: int) -> None:
            rows = slice(start, start + TILE)
            strip = self.square[rows, :n_rows].astype(np.float64)
            outputs[start - first : start - first + TILE] = strip @ weights

        _threads.tasks(range(first, self.n_rows, TILE), multiply)
        return np.asarray(self.Y[first:] - outputs - intercept)

    @property
    def solved_ones(self) -> np.ndarray:
        """A^-1 1 (n,) of the factor in memory."""
        return self._ones

    def fill(self, alpha: float) -> None:
        """Write K + alpha / w on and above the diagonal, from the values below it."""
        square, n = self.square, self.n_rows

        def tile(first: int) -> None:
            rows = slice(first, min(first + TILE, n))
            corner = np.tril(square[rows, rows], -1)
            square[rows, rows] = corner + corner.T
            for start in range(rows.stop, n, TILE):
                square[rows, start : start + TILE] = square[start : start + TILE, rows].T

        _threads.tasks(range(0, n, TILE), tile)
        square[np.diag_indices(n)] = self.diagonal + alpha * self.inverse_weights

    def _product(self, A: np.ndarray, alpha: float) -> np.ndarray:
        """Return (K + alpha / w) A in float64."""
        square, n = self.square, self.n_rows
        out = (self.diagonal + alpha * self.inverse_weights)[:, None] * A

        def tile(first: int) -> None:
            rows = slice(first, min(first + TILE, n))
            corner = np.tril(square[rows, rows], -1).astype(np.float64)
            out[rows] += corner @ A[rows] + corner.T @ A[rows]
            for start in range(0, rows.start, _COLUMNS_CONVERTED):
                before = slice(start, min(start + _COLUMNS_CONVERTED, rows.start))
                out[rows] += square[rows, before].astype(np.float64) @ A[before]
            for start in range(rows.stop, n, _COLUMNS_CONVERTED):
                after = slice(start, min(start + _COLUMNS_CONVERTED, n))
                out[rows] += square[after, rows].T.astype(np.float64) @ A[after]

        _threads.tasks(range(0, n, TILE), tile)
        return out


def is_shared(Y: np.ndarray, row_weights: np.ndarray | None) -> bool:
    """Return whether all targets (n, t) have the same rows and the same weights, so that one solution serves them."""
    return not np.isnan(Y).any() and (row_weights is None or row_weights.ndim == 1)


def lift(square: np.ndarray, diagonal: np.ndarray, constant: float | None = None) -> np.ndarray:
    """Add a constant to the values of a centred kernel below its diagonal, in place; return the new diagonal (n,).

    The rows of a centred kernel sum to 0, so K 1 = 0 and A = K + alpha has the eigenvalue alpha in the direction of the
    ones. In single precision the rounding of K is as large as a small alpha. A^-1 less the part of the intercept is
    then the difference of two large numbers: left-out outputs were wrong by several deviations of the targets. The
    constant, by default the mean of the diagonal, lifts that eigenvalue. It changes no solution, as the weights sum to
    0.
    """
    constant = float(diagonal.mean()) if constant is None else constant
    for i in range(1, square.shape[0]):  # above the diagonal there may be anything
        square[i, :i] += square.dtype.type(constant)
    return diagonal + constant


def check_latest(solved: float | None, solution: DualSolution) -> None:
    """Raise ValueError unless a solution is of the strength that was solved last."""
    if solved != solution.alpha:
        raise InputError(
            Message(
                "the latest solution is of {alpha=!s}, not {}: call solve at this alpha first.", solved, solution.alpha
            )
        )


def with_intercept(solved: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n, t), which sum to 0, and intercepts (t,), from A^-1 [Y, 1] (n, t + 1)."""
    ones = solved[:, -1]
    intercept = ones @ Y / ones.sum()
    return solved[:, :-1] - np.outer(ones, intercept), intercept
