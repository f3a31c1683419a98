"""Sums of a squared loss over targets with missing entries, from moments: for rows that arrive once, in batches.

The objective is that of ``observed``. The rows O_j where target j is observed are all rows but those where it is
missing, so

    H_j = H - sum_{i not in O_j} z_i z_i',

and a missing entry adds nothing to the products of features and targets. So one (D, D) matrix per target suffices
beside the moments of all rows: that of the rows where the target is missing. Targets without missing entries have none.
A sum costs O(D^2 t) operations per fold, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap.losses import LossAt, LossSums
from chimap.moments import FoldMoments, Moments, Targets, split, weighted


class ObservedMoments:
    """Moments of all rows, and of the rows where each target is missing: ``FeatureRows`` for quadratic losses.

    Parameters
    ----------
    moments : FoldMoments
        Moments of all rows, which the caller updates. Call ``put`` with every batch before it is added to them.
    """

    def __init__(self, moments: FoldMoments):
        self.moments = moments
        self._missed: dict[int, FoldMoments] = {}

    @property
    def gaps(self) -> set[int]:
        """Targets with at least one missing entry."""
        return set(self._missed)

    def put(self, fold: int, Z: np.ndarray, Y: Targets) -> None:
        """Add features (rows, D) less the shift, with targets (rows, t) that may be missing. Neither is changed."""
        plain, weights = split(Y)
        missing = np.isnan(np.asarray(plain))
        for target in np.flatnonzero(missing.any(axis=0)).tolist():
            rows = np.flatnonzero(missing[:, target])
            if target not in self._missed:
                self._missed[target] = self._without_targets()
            no_targets = np.zeros((rows.size, 0))
            targets = weighted(no_targets, None if weights is None else weights[rows])
            self._missed[target].add_shifted(fold, Z[rows], targets)

    def release_buffers(self) -> None:
        """Release the memory of the batches."""
        for missed in self._missed.values():
            missed.release_buffers()

    def sums(self, at: LossAt, folds: Sequence[int]) -> LossSums:
        """See ``FeatureRows``; for losses whose gradient at a target y and a score s is s - y, or s."""
        pull = -float(at.loss.gradient(np.array([1.0]), np.array([0.0]))[0])
        sums, W, b = at.empty(), at.coef, at.intercept
        n_targets = self.moments.target_shift.size
        for fold in folds:
            whole = self.moments.folds[fold]
            HW, s, n = (
                whole.features @ W,
                np.outer(whole.feature_sum, np.ones(b.size)),
                np.full(b.size, whole.count),
            )
            for target, missed in self._missed.items():
                missing, columns = missed.folds[fold], slice(target, None, n_targets)
                if missing.n_rows:
                    HW[:, columns] -= missing.features @ W[:, columns]
                    s[:, columns] -= missing.feature_sum[:, None]
                    n[columns] -= missing.count
            n_solutions = W.shape[1] // n_targets
            V, T, Q = _tiled(whole, n_solutions)
            V, T, Q = pull * V, pull * T, pull * Q
            at_W = np.einsum("dt,dt->t", s, W)
            sums.coef += HW + s * b - V
            sums.intercept += at_W + n * b - T
            quadratic = np.einsum("dt,dt->t", W, HW - 2 * V) + b * (2 * at_W + n * b - 2 * T) + Q
            sums.values += quadratic / 2
            sums.count += whole.count
        return sums

    def _without_targets(self) -> FoldMoments:
        whole = self.moments
        return FoldMoments(
            len(whole.folds), whole.shift.size, 0, whole.shift, np.zeros(0), whole.dtype, whole.rounded
        )


def _tiled(moments: Moments, n_solutions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return products with the targets (D, s t), and sums and squares (s t,), repeated for s solutions side by side."""
    sums = moments.cross, moments.target_sum, moments.target_squares
    return np.tile(sums[0], (1, n_solutions)), np.tile(sums[1], n_solutions), np.tile(sums[2], n_solutions)
