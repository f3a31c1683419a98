"""Ridge on a kernel matrix in memory: one Cholesky factor a strength, and every row's held-out prediction from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _threads
from chimap.solvers.cholesky import TILE, factorise, inverse_blocks, inverse_diagonal, solve

_CLOSE = 1e-3  # a correction below this share of the solution is the last
STEPS = 3  # of refinement at most
_WIDE = 2048  # columns that are converted to float64 together


@dataclass(frozen=True)
class DualSolution:
    """f(x) = sum_j K(x, x_j) a_j + b, a (n, t) and b (t,) float64, of the strength alpha."""

    weights: np.ndarray
    intercept: np.ndarray
    alpha: float


class DualRidge:
    """Minimise sum_i w_i |y_i - f(x_i)|^2 + alpha |f|^2 with f = sum_j K(., x_j) a_j + b, b not penalised.

        (K + alpha diag(1/w)) a + 1 b' = Y,  1'a = 0.

    The matrix is factorised in the memory of the kernel values: these stay below the diagonal, the factor is above.
    Factor and solutions are in the dtype of the values, refined by residuals in float64.

    Leaving out row i changes its residual from alpha a_i / w_i to a_i / M_ii, M being the inverse of the matrix less
    what the intercept takes, A^-1 - A^-1 11'A^-1 / (1'A^-1 1); leaving out a group g, to M_gg^-1 a_g.

    Parameters
    ----------
    square : (n, n) float32 or float64, C-contiguous, with kernel values below the diagonal; overwritten above.
    diagonal : (n,) the diagonal of K.
    Y : (n, t) float64, targets.
    row_weights : (n,) positive, or None.
    steps : of refinement, at most; without any the factor is taken at its word.

    Source: the closed form is that of Allen's PRESS (1974) for ridge with a kernel; with an intercept and weights as in
    Rifkin and Lippert, Notes on regularized least squares.
    """

    begins_at: ClassVar[int] = -2  # see ``ExactRidge``

    def __init__(
        self,
        square: np.ndarray,
        diagonal: np.ndarray,
        Y: np.ndarray,
        row_weights: np.ndarray | None = None,
        steps: int = STEPS,
    ):
        self.square, self.diagonal, self.Y, self._steps = square, diagonal, Y, steps
        self._noise = np.ones(Y.shape[0]) if row_weights is None else 1 / row_weights
        self.factor_of: float | None = None  # the strength of the factor that is in memory
        self._ones = self._sum = np.empty(0)
        self.operations = 0.0  # of all factors and solutions so far

    @property
    def n_rows(self) -> int:
        """n."""
        return int(self.Y.shape[0])

    def scale(self) -> float:
        """Mean scatter of a row, mean_i (K_ii) - mean_ij (K_ij): what strengths are measured by."""
        n = self.n_rows
        below = sum(
            float(np.tril(self.square[i : i + TILE, : i + TILE], i - 1).sum(dtype=np.float64))
            for i in range(0, n, TILE)
        )
        scatter = float(self.diagonal.mean() - (2 * below + self.diagonal.sum()) / n**2)
        return scatter * float(np.mean(1 / self._noise))

    def solve(self, alpha: float) -> DualSolution | None:
        """The solution at a strength; None where the matrix is not positive definite to rounding."""
        if not self.factorise(alpha):
            return None
        solution = self.solve_for(np.column_stack([self.Y, np.ones(self.n_rows)]), self._steps)
        if solution is None:
            self.factor_of = None
            return None
        self._ones = solution[:, -1]
        self._sum = self._ones.sum()
        return DualSolution(*with_intercept(solution, self.Y), alpha)

    def finished(self, solution: DualSolution) -> DualSolution:
        """As it is: one factor has all digits."""
        return solution

    def factorise(self, alpha: float) -> bool:
        """Put the factor of A = K + alpha diag(1/w) in memory; False where A is not positive definite to rounding."""
        self.fill(alpha)
        self.operations += self.n_rows**3 / 3
        self.factor_of = alpha if factorise(self.square) else None
        return self.factor_of is not None

    def solve_for(self, right: np.ndarray, steps: int) -> np.ndarray | None:
        """A^-1 of a right side (n, columns), by the factor in memory and so many refinements at most; None where the
        factor is of another matrix to rounding."""
        alpha = self.factor_of
        assert alpha is not None  # of a factor that was made
        self.operations += 2.0 * right.shape[1] * self.n_rows**2
        solution = solve(self.square, right).astype(np.float64)
        if not np.isfinite(solution).all():
            return None
        for _ in range(steps):
            change = solve(self.square, right - self._product(solution, alpha))
            solution += change
            sizes = np.abs(solution).max(axis=0), np.abs(change).max(axis=0)
            if not np.isfinite(sizes[1]).all() or (sizes[1] > 0.5 * sizes[0]).any():
                return None
            if (sizes[1] <= _CLOSE * sizes[0]).all():
                break
        return solution

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:
        """Residuals y_i - f_-i(x_i) (n - first, t) of rows from ``first`` on, of the solution that was made last.

        They cost (n - first)^3/3 operations: a share of the rows, put last, is scored for next to nothing.
        """
        self._check(solution)
        own = inverse_diagonal(self.square, first) - self._ones[first:] ** 2 / self._sum
        return np.asarray(solution.weights[first:] / own[:, None])

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Residuals (n_g, t) of each group of rows when it is left out, of the solution that was made last."""
        self._check(solution)
        left_out: list[np.ndarray] = [np.empty(0)] * len(groups)

        def visit(k: int, block: np.ndarray) -> None:
            rows = groups[k]
            block -= np.outer(self._ones[rows], self._ones[rows] / self._sum)
            left_out[k] = np.linalg.solve(block, solution.weights[rows])

        inverse_blocks(self.square, groups, visit)
        return left_out

    def of_leading(self, n_rows: int, first: int) -> np.ndarray:
        """Residuals (n - first, t) of rows from ``first`` on by the machine of the first ``n_rows`` alone.

        The strength is that of the factor in memory, whose leading corner is the factor of these rows.
        """
        corner = self.square[:n_rows, :n_rows]
        solved = solve(corner, np.column_stack([self.Y[:n_rows], np.ones(n_rows)])).astype(np.float64)
        weights, intercept = with_intercept(solved, self.Y[:n_rows])
        outputs = np.empty((self.n_rows - first, self.Y.shape[1]))
        for start in range(first, self.n_rows, _WIDE):
            own = slice(start, start + _WIDE)
            outputs[start - first : start - first + _WIDE] = (
                self.square[own, :n_rows].astype(np.float64) @ weights
            )
        return np.asarray(self.Y[first:] - outputs - intercept)

    @property
    def solved_ones(self) -> np.ndarray:
        """A^-1 1 (n,) of the factor that is in memory."""
        return self._ones

    def _check(self, solution: DualSolution) -> None:
        if self.factor_of != solution.alpha:
            raise ValueError(f"the factor is of alpha={self.factor_of}, not {solution.alpha}: solve first.")

    def fill(self, alpha: float) -> None:
        """K + alpha / w above the diagonal and on it, from the values below."""
        square, n = self.square, self.n_rows

        def part(first: int) -> None:
            own = slice(first, min(first + TILE, n))
            corner = np.tril(square[own, own], -1)
            square[own, own] = corner + corner.T
            for start in range(own.stop, n, TILE):
                square[own, start : start + TILE] = square[start : start + TILE, own].T

        _threads.tasks(range(0, n, TILE), part)
        square[np.diag_indices(n)] = self.diagonal + alpha * self._noise

    def _product(self, A: np.ndarray, alpha: float) -> np.ndarray:
        """(K + alpha / w) A in float64."""
        square, n = self.square, self.n_rows
        out = (self.diagonal + alpha * self._noise)[:, None] * A

        def part(first: int) -> None:
            own = slice(first, min(first + TILE, n))
            corner = np.tril(square[own, own], -1).astype(np.float64)
            out[own] += corner @ A[own] + corner.T @ A[own]
            for start in range(0, own.start, _WIDE):
                before = slice(start, min(start + _WIDE, own.start))
                out[own] += square[own, before].astype(np.float64) @ A[before]
            for start in range(own.stop, n, _WIDE):
                after = slice(start, min(start + _WIDE, n))
                out[own] += square[after, own].T.astype(np.float64) @ A[after]

        _threads.tasks(range(0, n, TILE), part)
        return out


def with_intercept(solved: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (n, t), which add up to 0, and intercepts (t,), of A^-1 [Y, 1] (n, t + 1)."""
    ones = solved[:, -1]
    intercept = ones @ Y / ones.sum()
    return solved[:, :-1] - np.outer(ones, intercept), intercept
