"""What an exact machine needs of a kernel and of the rows that it is fitted on."""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from chimap._pieces import Held
from chimap._types import Rows
from chimap.backends.base import RowFeatures
from chimap.moments.kept_rows import KeptRows, OtherRows


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
    n_core : int, default=0
        Number of the first rows, which have shares of their own: outputs are by these or from these on.
    """

    def __init__(self, features: RowKernel, held: Held, n_core: int = 0):
        self._features, self._held, self._n_core = features, held, n_core
        self._shares: list[slice] = []

    def add_outputs(self, places: slice, by: slice, weights: np.ndarray, out: np.ndarray) -> None:
        """Add the outputs of the training rows at ``places`` by others; see ``RowKernel.add_outputs``.

        ``by`` begins at 0 or behind the core. Rows before its end that are not held yet are dealt out first, so that it
        must not fall from one call to the next.
        """
        for stop in (self._n_core, by.stop):
            self._deal(stop)
        block = self._features.take(places)
        each = [
            weights[share.start - by.start : share.stop - by.start] if share.start >= by.start else None
            for share in self._shares
        ]
        for part in self._held.map(_outputs_by, block, each):
            out += part

    def _deal(self, stop: int) -> None:
        """Deal the rows up to ``stop``, those that come together in as many shares as there are holders."""
        start = self._shares[-1].stop if self._shares else 0
        if start >= stop:
            return
        ends = np.linspace(start, stop, self._held.n_holders + 1).round().astype(int).tolist()
        shares = [slice(a, b) for a, b in pairwise(ends) if a < b]
        self._held.add([self._features.take(share) for share in shares])
        self._shares += shares


def _outputs_by(share: RowKernel, block: RowKernel, weights: np.ndarray | None) -> np.ndarray | float:
    """Return the outputs (m, t) of the rows of a block by those of a share with weights (n, t); 0 without weights."""
    if weights is None:
        return 0.0
    out = np.zeros((block._n_features_out, weights.shape[1]))
    share.add_outputs_of(block, weights, out)
    return out


class Keeper(Protocol):
    """Replaces the training rows of fitted features by others."""

    def put(self, places: np.ndarray, rows: Rows) -> None:
        """Keep checked rows (m, bins) at these places (m,)."""
        ...

    def close(self) -> None:
        """Give the rows to the features, once all are there."""
        ...


class RowKernel(RowFeatures, Protocol):
    """Values of a kernel with all training rows: of one kernel, or of a sum of kernels over blocks of columns."""

    @property
    def is_centred(self) -> bool:
        """Whether the values among the training rows are products less the means of the rows."""
        ...

    @property
    def mapped_rows(self) -> KeptRows | None:
        """The training rows as mapped, if values are their products; None for other kernels and for blocks."""
        ...

    @property
    def summands(self) -> list[tuple[KeptRows, float | None]] | None:
        """Mapped rows and gamma (None for plain products) of the kernels that add up to the values.

        None if one of them has no map.
        """
        ...

    def others(self, rows: Rows) -> list[OtherRows]:
        """Return checked rows (m, bins) in the form of the mapped rows of each of the ``summands``."""
        ...

    def squared_distances_at(self, places: np.ndarray) -> np.ndarray:
        """Return squared distances (m, n), float64, of the training rows at ``places`` from all of them."""
        ...

    def take(self, rows: np.ndarray | slice) -> Self:
        """Return the same features with the training rows at the places ``rows`` alone."""
        ...

    def keep(self, rows: np.ndarray | slice) -> None:
        """Keep the training rows at the places ``rows`` alone."""
        ...

    def extend(self, rows: Rows) -> None:
        """Add checked rows (m, bins) to the training rows; what was learned of the first ones stays."""
        ...

    def keeper(self, n_rows: int) -> Keeper:
        """Return an object that replaces the training rows by ``n_rows`` others, which come in pieces."""
        ...

    def outputs(self, rows: Rows, weights: np.ndarray) -> np.ndarray:
        """Return sum_j K(x, x_j) weights_j (m, t), float64, for checked rows x (m, bins) and weights (n, t)."""
        ...

    def add_outputs(self, places: slice, by: slice, weights: np.ndarray, out: np.ndarray) -> None:
        """Add sum_j K(x_i, x_j) weights_j to ``out``, float64, for the training rows i at ``places`` and j at ``by``.

        ``weights`` are (rows of ``by``, t). For additive kernels the means are subtracted, as in ``gram_into``.
        """
        ...

    def add_outputs_of(self, others: Self, weights: np.ndarray, out: np.ndarray) -> None:
        """Add sum_j K(x_i, x_j) weights_j to ``out``, for the training rows i of the same features with others.

        ``weights`` are (n, t), j goes over these training rows, and ``out`` is (m, t), float64.
        """
        ...

    def first_equal(self) -> np.ndarray:
        """Return the place of the first training row that equals each of them, (n,)."""
        ...

    def gram_into(self, square: np.ndarray) -> np.ndarray:
        """Write the values among the training rows below the diagonal of ``square``; return the diagonal."""
        ...

    def gamma_at(self, octaves: int) -> float | None:
        """Return 2^octaves times gamma; None if the kernel has none."""
        ...

    def set_octaves(self, octaves: int) -> None:
        """Multiply gamma by 2^octaves."""
        ...

    def change_octaves(self, square: np.ndarray, before: int, after: int) -> None:
        """Turn the values of ``gram_into`` with 2^before times gamma into those with 2^after times."""
        ...
