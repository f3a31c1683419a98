"""What an exact machine needs of a kernel and of the rows that it is fitted on."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np

from chimap._types import Rows
from chimap.backends.base import RowFeatures
from chimap.moments.kept_rows import KeptRows, OtherRows


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

    def centres(self, rows: np.ndarray, rounds: int) -> Self:
        """Return the same features with centres of k-means, from the training rows at the places ``rows`` on.

        These rows themselves where a kernel has no map, or is a sum over blocks.
        """
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

    def add_outputs_of(self, others: Self, first: int, weights: np.ndarray, out: np.ndarray) -> None:
        """Add sum_j K(x_i, x_j) weights_j to ``out`` for training rows i, from ``first`` on, of the same features.

        These have other rows. ``weights`` are (n, t), j goes over the rows here, and ``out`` is (m, t), float64.
        """
        ...

    def first_equal(self) -> np.ndarray:
        """Return the place of the first training row that equals each of them, (n,)."""
        ...

    def diagonal(self) -> np.ndarray:
        """Return the values of the training rows with themselves, (n,), float64; see ``gram_into``."""
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
