"""Sums of a squared loss of targets with missing entries, from moments: for rows that come once, in batches.

The rows O_j that target j is seen in are all rows but those that it misses, so

    H_j = H - sum_{i not in O_j} z_i z_i',

and a missing entry adds nothing to the products of features and targets. Beside the moments of all rows a matrix a
target is enough, of the rows that it misses; targets that miss none have none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap.losses import LossAt, LossSums
from chimap.moments import FoldMoments, Moments, Targets, split, weighted


class ObservedMoments:
    """Moments of all rows, and of those that each target misses; ``FeatureRows`` of losses that are quadratic.

    moments: of all rows, added up beside this. ``put`` is told of every batch before they are.
    """

    def __init__(self, moments: FoldMoments):
        self.moments = moments
        self._missed: dict[int, FoldMoments] = {}

    @property
    def gaps(self) -> set[int]:
        """The targets that miss an entry."""
        return set(self._missed)

    def put(self, fold: int, Z: np.ndarray, Y: Targets) -> None:
        """Add features (rows, D) less the shift, with targets (rows, t) that may be missing; they are not changed."""
        plain, weights = split(Y)
        missing = np.isnan(np.asarray(plain))
        for target in np.flatnonzero(missing.any(axis=0)).tolist():
            rows = np.flatnonzero(missing[:, target])
            if target not in self._missed:
                self._missed[target] = self._without_targets()
            none = np.zeros((rows.size, 0))
            own = weighted(none, None if weights is None else weights[rows])
            self._missed[target].add_shifted(fold, Z[rows], own)

    def release_buffers(self) -> None:
        """Give the memory for batches back."""
        for missed in self._missed.values():
            missed.release_buffers()

    def sums(self, at: LossAt, folds: Sequence[int]) -> LossSums:
        """See ``FeatureRows``; of losses whose gradient at a target y and a score s is s - y, or s."""
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
                own, columns = missed.folds[fold], slice(target, None, n_targets)
                if own.n_rows:
                    HW[:, columns] -= own.features @ W[:, columns]
                    s[:, columns] -= own.feature_sum[:, None]
                    n[columns] -= own.count
            several = W.shape[1] // n_targets
            V, T, Q = _tiled(whole, several)
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


def _tiled(moments: Moments, several: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Products with the targets (D, s t), sums and squares (s t,) of targets that meet s solutions side by side."""
    once = moments.cross, moments.target_sum, moments.target_squares
    return np.tile(once[0], (1, several)), np.tile(once[1], several), np.tile(once[2], several)
