"""Ridge on features in memory, for more features than a (D, D) matrix allows, most of them 0, such as bins of words.

The problem is

    min_{w, b}  sum_i w_i |z_i'w + b - y_i|^2 / 2 + alpha/2 |w|^2,

solved by conjugate gradients that all targets share. A step takes two products with the features, O(nnz t) operations
for nnz nonzero entries. Memory holds the features of all rows and some ``8 + _PARTS`` arrays of the size of the weights
(D, t).
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays, _threads
from chimap._messages import Message
from chimap._types import Rows
from chimap.losses import Loss, Square
from chimap.penalties import L2
from chimap.solvers.base import Evidence, Needs, Solver
from chimap.solvers.kept_problem import KeptProblem
from chimap.solvers.ridge import LinearSolution

_MOST_STEPS = 1000
_PARTS = 4  # number of blocks of rows, whose products run in parallel
_USUAL_SHARE = 0.1  # strength at which the search begins, relative to the mean scatter of a row


class WideRidgeProblem(KeptProblem):
    """Minimise sum |z'w + b - y|^2 / 2 + alpha/2 |w|^2 by conjugate gradients on (Hc + alpha I) w = v.

    Hc = sum_i (z_i - m)(z_i - m)' is never formed: a step takes two products with the features, from which the
    contribution of the means m is subtracted. Every target has its own step lengths, and the steps are taken together.
    There is no preconditioner: so the weights stay in the span of the rows from the first step on. Components outside
    the span would be removed very slowly at a weak strength.
    """

    loss: Loss | None = Square()
    passes = 1  # passes over the source
    # residual relative to that at zero weights; on words, scores no longer change below 1e-2
    tolerance = 1e-3
    search_tolerance = 1e-2

    def __init__(self, evidence: Evidence):
        super().__init__(evidence)
        self._on_step = evidence.progress.advance
        self._last: np.ndarray | None = None  # weights of the last trial on the learning rows, near those of the next

    def usual_alpha(self) -> float:
        """Return a share of the mean scatter of a row."""
        rows = _Rows(*self.kept.of(self.kept.everything), self.kept.weights)
        scatter = float(rows.weights @ _arrays.row_squares(rows.Z)) - rows.count * float(rows.mean @ rows.mean)
        return _USUAL_SHARE * max(0.0, scatter) / self.n_rows or 1.0

    def losses(self, targets: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return half the squared errors."""
        return np.asarray(np.square(outputs - targets) / 2)

    def fit_part(self, alpha: float, rows: slice | np.ndarray, tolerance: float) -> LinearSolution:
        scatter = _Rows(*self.kept.of(rows), self.kept.weights[rows])
        R = scatter.Y - scatter.target_mean
        V = np.asarray(scatter.Z.T @ (scatter.weights[:, None] * R)) - np.outer(scatter.mean, scatter.weights @ R)
        # Weights of the learning rows are a start for these and for all rows. Other starts would know the rows that the
        # outputs are wanted for, and a search that ends early would reveal them.
        W = np.zeros_like(V) if self._last is None or not isinstance(rows, slice) else self._last
        residual = V - scatter.scatter_times(W) - alpha * W
        goal = tolerance**2 * _squares(V)
        direction, size = residual.copy(), _squares(residual)
        for _ in range(_MOST_STEPS):
            if (size <= goal).all():
                break
            self._on_step()
            product = scatter.scatter_times(direction) + alpha * direction
            curvature = np.einsum("dt,dt->t", direction, product)
            step = np.divide(size, curvature, out=np.zeros_like(size), where=curvature > 0)
            W = W + step * direction
            residual -= step * product
            before, size = size, _squares(residual)
            direction *= np.divide(size, before, out=np.zeros_like(size), where=before > 0)
            direction += residual
        else:
            warnings.warn(
                Message(
                    "conjugate gradients stopped after {} steps at {alpha=:g}. Give a larger {alpha}.",
                    _MOST_STEPS,
                    alpha,
                ),
                ConvergenceWarning,
                stacklevel=2,
            )
        if isinstance(rows, slice) and rows == self.kept.learning:
            self._last = W
        return LinearSolution(W, scatter.target_mean - scatter.mean @ W, alpha)


class _Rows:
    """Features Z (n, D), targets Y (n, t) and weights w (n,) of rows, and products with their scatter."""

    def __init__(self, Z: Rows, Y: np.ndarray, weights: np.ndarray):
        self.Z, self.Y, self.weights = Z, np.asarray(Y, dtype=np.float64), weights
        self.count = float(weights.sum())
        self.mean = np.asarray(Z.T @ weights) / self.count
        self.target_mean = weights @ self.Y / self.count

    def scatter_times(self, P: np.ndarray) -> np.ndarray:
        """Return sum_i w_i (z_i - m)(z_i - m)'P for P (D, t)."""
        at_mean = self.mean @ P

        def of_part(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            Z = _arrays.view_rows(self.Z, rows)
            R = self.weights[rows, None] * (Z @ P - at_mean)
            return np.asarray(Z.T @ R), R.sum(axis=0)

        edges = np.linspace(0, self.Z.shape[0], _PARTS + 1).astype(np.intp)
        parts = _threads.tasks([slice(int(a), int(b)) for a, b in pairwise(edges) if b > a], of_part)
        products, sums = zip(*parts, strict=True)
        return np.asarray(sum(products) - np.outer(self.mean, sum(sums)))


def _squares(W: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("dt,dt->t", W, W))


class WideRidgeSolver(Solver):
    """Conjugate gradients on the features of all rows, without a (D, D) matrix."""

    name: ClassVar[str] = "wide ridge"
    needs: ClassVar[Needs] = "features"
    # weights, residuals, directions, their products, and one array for each block of rows
    n_vectors: ClassVar[int] = 8 + _PARTS

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L2 and (loss == Square.name or loss == Square())

    def problem(self, loss: str | Loss, evidence: Evidence) -> WideRidgeProblem:
        return WideRidgeProblem(evidence)
