"""What a race looks at: traits of a sample of rows by which candidates enter it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._types import Blocks, Rows
from chimap._validation import check_blocks
from chimap.data.clades import are_ranks, by_rank

MOST_CLASSES = 50  # LIBLINEAR fits classes one after the other: more would take minutes
LIBLINEAR_BELOW = 0.1  # share of filled bins; on sparser rows its passes are cheap, and margins beat squares
_SAME_SUMS = 1e-3  # relative spread of the row sums below which dividing by them changes nothing
_HIGH = 1.5  # on entries up to this, log1p is nearly linear
_MISSING, _ROUNDED = 0.5, 1.01  # share of the total that any rows may miss, and how far rounding may exceed it
_TAIL = 20  # times the median of filled entries: a 99th percentile beyond it spans more than an order of magnitude
_FILLED = 0.9  # on rows with a larger share of filled bins, presence says little
_MOST_FILLED = 300  # filled bins of a row of many: the min-max kernel compares them pair by pair, without products


@dataclass(frozen=True)
class SampleTraits:
    """Properties of a sample of rows on which settings depend.

    is_signed: whether bins may be negative. density: share of bins that are not 0. has_sums: whether row sums differ.
    has_counts: whether entries are large enough for log1p to bend them. n_classes: number of classes, or of tasks plus
    one; 0 for regression. is_counted: whether all entries are whole numbers. has_shares: whether rows are shares or
    percentages, see ``are_shares``. has_tail: whether filled entries span more than an order of magnitude.
    n_bins: number of bins. is_wide: whether bins outnumber rows. is_few: whether rows are few, so that a machine takes
    next to no time. blocks: columns of several descriptors, if there are several.
    """

    is_signed: bool
    density: float
    has_sums: bool
    has_counts: bool
    n_classes: int
    is_counted: bool = False
    has_shares: bool = False
    has_tail: bool = False
    n_bins: int = 0
    is_wide: bool = False
    is_few: bool = False
    blocks: Blocks | None = None

    @classmethod
    def of(cls, rows: Rows, n_classes: int, is_few: bool = False, blocks: Blocks | None = None) -> SampleTraits:
        """Return the properties of rows (n, bins), dense or CSR, in blocks of columns; of ranks, the lowest has all."""
        n_bins = rows.shape[1]
        if (ranks := ranks_among(blocks, n_bins)) is not None:
            rows = rows[:, [*ranks.values()][-1]]
        values = _arrays.stored_values(rows)
        filled = values[values != 0]
        sums = np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
        middle, high = np.percentile(filled, [50, 99]) if filled.size else (1.0, 1.0)
        density, has_tail = filled.size / max(1, rows.shape[0] * rows.shape[1]), bool(high > _TAIL * middle)
        return cls(
            is_signed=bool(values.min(initial=0) < 0),
            density=density,
            has_sums=bool(sums.std() > _SAME_SUMS * abs(sums.mean())),
            has_counts=bool(values.max(initial=0) > _HIGH),
            n_classes=n_classes,
            is_counted=bool((filled == np.round(filled)).all()),
            has_shares=are_shares(values, sums, density < _FILLED, has_tail),
            has_tail=has_tail,
            n_bins=n_bins,
            is_wide=n_bins > rows.shape[0],
            is_few=is_few,
            blocks=blocks,
        )

    @property
    def ranks(self) -> dict[str, np.ndarray] | None:
        """Columns of each rank of clades, where blocks are these."""
        return ranks_among(self.blocks, self.n_bins)

    @property
    def takes_margins(self) -> bool:
        """Whether LIBLINEAR is worth its passes."""
        return 0 < self.n_classes <= MOST_CLASSES and self.density < LIBLINEAR_BELOW

    @property
    def _has_amounts(self) -> bool:
        """Whether rows are counts whose totals mean nothing, or shares."""
        return not self.is_signed and (self.has_shares or (self.is_counted and self.has_counts and self.has_sums))

    @property
    def has_log_shares(self) -> bool:
        """Whether logarithms of shares may tell more than shares: those of species and genes, which span decades.

        Of many rows, only those whose entries have a long tail are worth the time; counts of words and of
        substructures have none.
        """
        return self._has_amounts and (self.is_few or self.has_tail)

    @property
    def has_presence(self) -> bool:
        """Whether it may matter more which bins are filled than by how much."""
        return self._has_amounts and self.density < _FILLED and (self.is_few or (self.has_tail and self.is_wide))

    @property
    def has_words(self) -> bool:
        """Whether rows may be counts of words: sparse whole numbers, some of them above 1."""
        return not self.is_signed and self.is_counted and self.has_counts and self.density < LIBLINEAR_BELOW

    @property
    def compares_pairs(self) -> bool:
        """Whether the min-max kernel is worth its time, as it compares rows pair by pair and bin by bin."""
        return not self.is_signed and (self.is_few or (self.is_counted and self.density * self.n_bins < _MOST_FILLED))


def ranks_among(blocks: Blocks | None, n_bins: int) -> dict[str, np.ndarray] | None:
    """Return the columns of each rank, the highest first, of blocks that are ranks of clades; None for others.

    >>> ranks_among({"genus": slice(0, 2), "phylum": [2]}, 3)
    {'phylum': array([2]), 'genus': array([0, 1])}
    """
    if blocks is None or not isinstance(blocks, Mapping) or not are_ranks(blocks):
        return None
    parts = dict(zip(*check_blocks(blocks, n_bins), strict=True))
    return {rank: parts[rank] for rank in by_rank(parts)}


def are_shares(values: np.ndarray, sums: np.ndarray, has_zeros: bool, has_tail: bool) -> bool:
    """Return whether the entries of rows, with these sums, are shares of 1 or of 100, of which bins may be left out.

    Rows may have lost any part of their total, as those of one clade or of a panel of species. What remains has zeros,
    and, of percentages, a long tail and entries above 1: spectra, weights of words and scaled features have not.

    >>> clade = np.array([[0.004, 0.0], [0.0, 0.1]])
    >>> are_shares(clade, clade.sum(axis=1), True, False), are_shares(5 * clade, np.array([0.02, 1.2]), True, True)
    (True, False)
    """
    highest, usual = sums.max(initial=0), np.median(sums)
    is_part = {1.0: has_zeros, 100.0: has_zeros and has_tail and values.max(initial=0) > _ROUNDED}
    return any(
        bool(highest < _ROUNDED * total and (may_be_part or usual > _MISSING * total))
        for total, may_be_part in is_part.items()
    )
