"""Each row divided by its sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _arrays, _scaling
from chimap._types import Rows
from chimap.normalizations.base import OfRows

_Norms = Callable[[Rows], np.ndarray]


@dataclass(frozen=True)
class Shares(OfRows):
    """x / sum |x|, block by block: for rows whose totals mean nothing."""

    name: ClassVar[str] = "l1"
    about: ClassVar[str] = "each row divided by its sum"
    takes_signs: ClassVar[bool] = True
    joins_bins: ClassVar[bool] = True

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        """See ``Normalization``."""
        return divided_by(rows, blocks, _scaling.row_norms_l1)


def divided_by(rows: Rows, blocks: Sequence[np.ndarray], norms: _Norms) -> Rows:
    """Return rows divided, block by block, by their norms; ``norms`` returns those of rows, (n,). Empty rows stay.

    The argument is not changed.
    """
    if len(blocks) == 1 and blocks[0].size == rows.shape[1]:
        return _scaling.scale_rows(rows, _inverse(norms(rows)))
    rows = rows.copy()
    for columns in blocks:
        _scaling.scale_entries(rows, columns, _inverse(norms(_arrays.take_columns(rows, columns))))
    return rows


def _inverse(norms: np.ndarray) -> np.ndarray:
    return 1 / np.where(norms > 0, norms, 1)
