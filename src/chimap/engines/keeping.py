"""The pass that keeps the features of all rows and takes no moments, for a solver that wants them in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._progress import Stopwatch
from chimap._types import Rows
from chimap.backends.base import RowFeatures
from chimap.backends.host import PIECE_ROWS
from chimap.features.additive.base import mapped
from chimap.moments import RowWeights, Targets, weighted
from chimap.moments.kept import KeptFeatures


@dataclass(frozen=True)
class KeepingPass:
    """The pass, by an engine of one process: rows are checked and mapped, and their features put where they are kept.

    prepare, encode and weights as of ``Pass``; is_sparse: whether the features are CSR, which the map must then allow.
    """

    prepare: Callable[[Rows, int, str], Rows]
    features: RowFeatures
    encode: Callable[[Any], Targets]
    moments: KeptFeatures
    clock: Stopwatch
    is_sparse: bool
    weights: RowWeights

    def fresh(self) -> KeepingPass:
        """See ``Work``: all rows are kept together."""
        return self

    def add(self, X: Rows, y: np.ndarray | None, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source."""
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            targets = weighted(self.encode(y), self.weights(start, rows.shape[0]))
        with self.clock("features"):
            for first in range(0, rows.shape[0], PIECE_ROWS):
                piece = slice(first, first + PIECE_ROWS)
                part = _arrays.take_rows(rows, piece)
                part = _arrays.to_sparse(part) if self.is_sparse else part
                self.moments.put(mapped(self.features, part), targets[piece], start + first)
