"""Which bins are filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.normalizations.base import OfRows


@dataclass(frozen=True)
class Presence(OfRows):
    """1 where x > 0, else 0: for tables in which it matters what is there, and amounts are mostly noise."""

    name: ClassVar[str] = "presence"
    about: ClassVar[str] = "1 for each entry above 0"
    takes_signs: ClassVar[bool] = False
    joins_bins: ClassVar[bool] = False

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        """See ``Normalization``."""
        return _arrays.map_values(rows, lambda values: (values > 0).astype(values.dtype))
