"""A quadratic function plus an l21 norm: exact block coordinate descent."""

from __future__ import annotations

import numpy as np

from chimap import _loops
from chimap.penalties import L21
from chimap.solvers.descent import Descent, Evaluation, descend

_SWEEPS = 5  # between two looks at the gradient of all groups
_MOST_NEWTON = 60
_NOISE = np.finfo(float).eps


class GroupQuadratic:
    """q(W) = tr(W'HW)/2 - tr(W'V), with the eigenvectors of the blocks of H that belong to the groups of a penalty.

    Given the others, the best weights of a group solve (H_gg + level/|w_g| I) w_g = c_g: in the eigenvectors of H_gg
    one equation for the length |w_g|. A sweep solves it for each group in turn, for all targets at once. As many
    features of a kernel that are one group, and few groups, need few sweeps: the blocks carry what is ill-conditioned.

    H: (D, D) float64, symmetric, positive semi-definite; used as it is. penalty: for its groups.

    Source: Qin, Scheinberg and Goldfarb, Efficient block-coordinate descent algorithms for the group lasso (2013).
    """

    def __init__(self, H: np.ndarray, penalty: L21):
        self.H = H
        self.groups = [_as_slice(columns) for columns in penalty.members]
        self._spectra = [_spectrum(H[g][:, g]) for g in self.groups]

    def sweep(self, W: np.ndarray, V: np.ndarray, penalty: L21, active: np.ndarray) -> None:
        """Minimise q + penalty over each of the active groups (indices) in turn, in place."""
        levels = penalty.levels()
        for j in active:
            g, (values, vectors) = self.groups[j], self._spectra[j]
            own = vectors.T @ W[g]
            pull = (
                vectors.T @ (V[g] - self.H[g] @ W) + values[:, None] * own
            )  # but for what the group itself says
            squares = np.square(own).sum(axis=0, keepdims=True)
            lengths = np.sqrt(squares.sum(axis=1) if penalty.shared else squares[0])
            W[g] = vectors @ _best_of_group(values, pull, float(levels[j]), lengths)

    def minimise(
        self, V: np.ndarray, penalty: L21, start: np.ndarray, tolerance: float, max_rounds: int = 2000
    ) -> Descent:
        """argmin q(W) + penalty(W) for all columns of V (D, t), to residuals of at most ``tolerance``.

        Only groups that are in use or violate their condition are swept, some times between two looks at all.
        """

        def evaluate(W: np.ndarray) -> Evaluation:
            product = self.H @ W
            smooth = (W * (product / 2 - V)).sum(axis=0, keepdims=penalty.shared)
            values = (smooth.sum(axis=1) if penalty.shared else smooth) + penalty.values(W)
            residuals = penalty.residuals(W, product - V)
            used = np.flatnonzero(((residuals > tolerance) | (penalty.norms(W) > 0)).any(axis=1))
            return Evaluation(values, residuals.max(axis=0), used)

        def step(W: np.ndarray, at: Evaluation) -> np.ndarray:
            W = W.copy()
            for _ in range(_SWEEPS):
                self.sweep(W, V, penalty, at.more)
            return W

        return descend(evaluate, step, start, tolerance, max_rounds)


def _best_of_group(values: np.ndarray, C: np.ndarray, level: float, guess: np.ndarray) -> np.ndarray:
    """argmin w'diag(values)w/2 - c'w + level |w| for each column c of C (m, t), or over all columns at once.

    guess: lengths |w| near those, (t,), or (1,) for all columns at once. The length r solves
    sum_i c_i^2 / (values_i r + level)^2 = 1, whose left side falls; Newton's method on one over its root, which is
    concave and nearly a straight line, comes from the left whatever it starts from (More and Sorensen).
    """
    squares = np.square(C)
    if guess.size < C.shape[1]:
        squares = squares.sum(axis=1, keepdims=True)
    lengths = np.empty(squares.shape[1])
    _loops.group_lengths(values, squares, level, guess, 8 * _NOISE, _MOST_NEWTON, lengths)
    return C * (lengths / (values[:, None] * lengths + level))


def _spectrum(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, none below the rounding of the largest, and eigenvectors."""
    values, vectors = np.linalg.eigh(square)
    return np.maximum(values, values.size * _NOISE * max(values[-1], np.finfo(float).tiny)), vectors


def _as_slice(columns: np.ndarray) -> slice | np.ndarray:
    """Consecutive columns as a slice, whose rows of a matrix are a view."""
    first, last = int(columns[0]), int(columns[-1])
    is_run = columns.size == last - first + 1 and np.all(np.diff(columns) == 1)
    return slice(first, last + 1) if is_run else columns
