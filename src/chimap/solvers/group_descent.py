"""A quadratic function plus an l21 norm: exact block coordinate descent."""

from __future__ import annotations

from itertools import pairwise, starmap

import numpy as np

from chimap import _loops
from chimap.penalties import L21
from chimap.solvers.descent import Descent, Evaluation, descend

SWEEPS = 5  # between two looks at the gradient of all groups
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
        order = np.concatenate(penalty.members)
        self._starts = np.cumsum([0, *(len(columns) for columns in penalty.members)])
        # the loop wants the columns of a group side by side
        self._order = None if np.array_equal(order, np.arange(order.size)) else order
        self._by_group = np.ascontiguousarray(H if self._order is None else H[order][:, order])
        spectra = [_spectrum(self._by_group[g, g]) for g in starmap(slice, pairwise(self._starts))]
        self._values = np.concatenate([values for values, _ in spectra])
        self._vectors = np.concatenate([vectors.ravel() for _, vectors in spectra])
        self._offsets = np.cumsum([0, *(vectors.size for _, vectors in spectra)])

    def sweep(
        self, W: np.ndarray, V: np.ndarray, penalty: L21, active: np.ndarray, times: int = SWEEPS
    ) -> np.ndarray:
        """W (D, t) after so many times minimising q + penalty over each of the active groups (indices) in turn."""
        order = slice(None) if self._order is None else self._order
        swept, pull = np.array(W[order], np.float64, order="C"), np.ascontiguousarray(V[order])
        _loops.sweep_groups(
            self._by_group, pull, swept, self._starts, active, self._values, self._vectors, self._offsets,
            penalty.levels(), penalty.shared, times, 8 * _NOISE, _MOST_NEWTON,
        )  # fmt: skip
        if self._order is None:
            return swept
        moved = np.empty_like(swept)
        moved[self._order] = swept
        return moved

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
            return self.sweep(W, V, penalty, at.more)

        return descend(evaluate, step, start, tolerance, max_rounds)


def _spectrum(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, none below the rounding of the largest, and eigenvectors."""
    values, vectors = np.linalg.eigh(square)
    return np.maximum(values, values.size * _NOISE * max(values[-1], np.finfo(float).tiny)), vectors
