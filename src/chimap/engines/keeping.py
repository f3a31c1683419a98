"""A pass that keeps the features of all rows and computes no moments, for solvers that need all rows in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._progress import Stopwatch
from chimap._types import Rows
from chimap.backends.host import PIECE_ROWS
from chimap.features.base import FittedFeatures
from chimap.moments import RowWeights, Targets, weighted
from chimap.moments.kept import KeptFeatures


@dataclass(frozen=True)
class KeepingPass:
    """A pass in this process that checks and maps rows, and puts their features into ``KeptFeatures``.

    ``prepare``, ``encode`` and ``weights`` are as in ``Pass``; ``is_sparse`` says whether the features are kept as CSR,
    which the map must then support.
    """

    prepare: Callable[[Rows, int, str], Rows]
    features: FittedFeatures
    encode: Callable[[Any], Targets]
    moments: KeptFeatures
    clock: Stopwatch
    is_sparse: bool
    weights: RowWeights

    def fresh(self) -> KeepingPass:
        """Return self, because all rows are kept together; see ``Work``."""
        return self

    def add(self, X: Rows, y: np.ndarray | None, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source."""
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            targets = weighted(self.encode(y), self.weights(start, rows.shape[0]))
        with self.clock("features"):
            for first in range(0, rows.shape[0], PIECE_ROWS):
                piece = slice(first, first + PIECE_ROWS)
                block = _arrays.take_rows(rows, piece)
                block = _arrays.to_sparse(block) if self.is_sparse else block
                self.moments.put(self.features.mapped(block), targets[piece], start + first)
