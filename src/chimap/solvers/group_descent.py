"""Exact block coordinate descent for a quadratic function plus an l21 norm.

The problem is

    min_W  tr(W'HW)/2 - tr(W'V) + sum_g level_g |w_g|_2

with H (D, D) positive semi-definite and W, V (D, t). A sweep minimises over one group after the other, in O(D^2 t)
operations for all of them; the set-up takes the eigenvectors of the diagonal blocks, O(sum_g |g|^3). Memory holds H, a
copy ordered by groups if they are not consecutive, and the eigenvectors.
"""

from __future__ import annotations

from itertools import pairwise, starmap

import numpy as np

from chimap import _loops
from chimap.penalties import L21
from chimap.solvers.descent import Descent, ObjectiveValue, descend

SWEEPS = 5  # sweeps over the active groups between two evaluations of the gradient of all groups
_MOST_NEWTON = 60
_NOISE = np.finfo(float).eps


class GroupQuadratic:
    """q(W) = tr(W'HW)/2 - tr(W'V), with the eigenvectors of the blocks of H that belong to the groups of a penalty.

    With the other groups fixed, the best weights of a group solve (H_gg + level/|w_g| I) w_g = c_g. In the eigenvectors
    of H_gg this is a single equation for the length |w_g|. A sweep solves it for each group in turn, for all targets at
    once. If each group is the many features of a kernel and there are few groups, few sweeps suffice, because the
    blocks carry the ill-conditioning.

    Parameters
    ----------
    H : ndarray of shape (D, D), float64
        Symmetric positive semi-definite matrix. It is not copied.
    penalty : L21
        Penalty whose groups divide the columns.

    References
    ----------
    Qin, Scheinberg and Goldfarb, Efficient block-coordinate descent algorithms for the group lasso (2013).
    """

    def __init__(self, H: np.ndarray, penalty: L21):
        self.H = H
        order = np.concatenate(penalty.members)
        self._starts = np.cumsum([0, *(len(columns) for columns in penalty.members)])
        # The compiled loop needs the columns of a group side by side.
        self._order = None if np.array_equal(order, np.arange(order.size)) else order
        self._by_group = np.ascontiguousarray(H if self._order is None else H[order][:, order])
        spectra = [_spectrum(self._by_group[g, g]) for g in starmap(slice, pairwise(self._starts))]
        self._values = np.concatenate([values for values, _ in spectra])
        self._vectors = np.concatenate([vectors.ravel() for _, vectors in spectra])
        self._offsets = np.cumsum([0, *(vectors.size for _, vectors in spectra)])

    def sweep(
        self, W: np.ndarray, V: np.ndarray, penalty: L21, active: np.ndarray, times: int = SWEEPS
    ) -> np.ndarray:
        """Return W (D, t) after ``times`` sweeps over the active groups (indices).

        A sweep minimises q + penalty over one group after the other.
        """
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
        """Minimise q(W) + penalty(W) for all columns of V (D, t), until no residual exceeds ``tolerance``.

        Only the groups that are in use or violate their optimality condition are swept, ``SWEEPS`` times between two
        evaluations of all groups.
        """

        def evaluate(W: np.ndarray) -> ObjectiveValue:
            product = self.H @ W
            smooth = (W * (product / 2 - V)).sum(axis=0, keepdims=penalty.shared)
            values = (smooth.sum(axis=1) if penalty.shared else smooth) + penalty.values(W)
            residuals = penalty.residuals(W, product - V)
            used = np.flatnonzero(((residuals > tolerance) | (penalty.norms(W) > 0)).any(axis=1))
            return ObjectiveValue(values, residuals.max(axis=0), used)

        def step(W: np.ndarray, at: ObjectiveValue) -> np.ndarray:
            return self.sweep(W, V, penalty, at.more)

        return descend(evaluate, step, start, tolerance, max_rounds)


def _spectrum(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues, raised to the rounding of the largest where they are below it, and the eigenvectors."""
    values, vectors = np.linalg.eigh(square)
    return np.maximum(values, values.size * _NOISE * max(values[-1], np.finfo(float).tiny)), vectors
