"""Training rows of an exact machine in shares that others hold: a block of rows goes out, its outputs come back."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from chimap._pieces import Held
from chimap.features.exact.row_kernel import RowKernel


class SharedRows:
    """Outputs of training rows by rows that are held elsewhere, each holder with a share of them.

    Each takes the rows of a block (m, p) and the weights of its share, and returns sum_j K(x_i, x_j) weights_j (m, t)
    over its own rows j; the sums are added up here, in the same order every time.

    Parameters
    ----------
    features : RowKernel
        The training rows.
    held : Held
        Where the shares are held; nothing is there yet.
    """

    def __init__(self, features: RowKernel, held: Held):
        self._features, self._held = features, held
        self._shares: list[slice] = []

    def add_outputs(self, places: slice, stop: int, weights: np.ndarray, out: np.ndarray) -> None:
        """Add the outputs of the training rows at ``places`` by the first ``stop``; see ``RowKernel.add_outputs``.

        Rows that are not held yet are dealt out first: ``stop`` must not fall from one call to the next.
        """
        self._deal(stop)
        block = self._features.take(places)
        for part in self._held.map(_outputs_by, block, [weights[share] for share in self._shares]):
            out += part

    def _deal(self, stop: int) -> None:
        """Deal the rows up to ``stop``, those that come together in as many shares as there are holders."""
        start = self._shares[-1].stop if self._shares else 0
        if start == stop:
            return
        ends = np.linspace(start, stop, self._held.n_holders + 1).round().astype(int).tolist()
        shares = [slice(a, b) for a, b in pairwise(ends) if a < b]
        self._held.add([self._features.take(share) for share in shares])
        self._shares += shares


def _outputs_by(share: RowKernel, block: RowKernel, weights: np.ndarray) -> np.ndarray:
    """Return the outputs (m, t) of the rows of a block by those of a share with weights (n, t)."""
    out = np.zeros((block._n_features_out, weights.shape[1]))
    share.add_outputs_of(block, weights, out)
    return out
