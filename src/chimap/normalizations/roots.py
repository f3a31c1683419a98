"""The square root of every entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.normalizations.base import OfRows


@dataclass(frozen=True)
class Roots(OfRows):
    """sqrt(|x|) of every entry, with the sign of x: the map of the Hellinger kernel."""

    name: ClassVar[str] = "sqrt"
    about: ClassVar[str] = "the square root of each entry"
    takes_signs: ClassVar[bool] = True
    joins_bins: ClassVar[bool] = False

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        """See ``Normalization``."""
        return _arrays.map_values(rows, lambda values: np.copysign(np.sqrt(np.abs(values)), values))

    def undone(self, values: np.ndarray) -> np.ndarray:
        """See ``Normalization``."""
        return np.copysign(np.square(values), values)

    def redone(self, values: np.ndarray) -> np.ndarray:
        """See ``Normalization``."""
        return np.copysign(np.sqrt(np.abs(values)), values)
