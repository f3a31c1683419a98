"""The pass that keeps the features of all rows and takes no moments, for a solver that wants them in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap import _arrays
from chimap.engines.memory import PIECE_ROWS
from chimap.engines.progress import Stopwatch
from chimap.features.additive.base import mapped
from chimap.moments import Targets, fold_of_rows


class KeptFeatures:
    """Features Z (n, D) as float64, CSR or dense as they come, and signs Y (n, t) as int8, of all rows.

    The rows of fold 0 lie behind the others, so that both parts are views; with one fold there are none. ``stack``
    makes Z and Y once all rows have been put.
    """

    Z: Any
    Y: np.ndarray

    def __init__(self, n_folds: int, seed: int):
        self.n_folds, self._seed = n_folds, seed
        self._parts: tuple[list[Any], list[Any]] = ([], [])
        self._signs: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])

    def put(self, Z: Any, Y: Targets, start: int) -> None:
        """Keep a copy of consecutive rows from row ``start`` of the source on."""
        folds = fold_of_rows(start, Z.shape[0], self.n_folds, self._seed)
        is_held = (folds == 0) & (self.n_folds > 1)
        for part, signs, members in zip(self._parts, self._signs, (~is_held, is_held), strict=True):
            chosen = np.flatnonzero(members)
            if chosen.size:
                part.append(_arrays.take_rows(Z, chosen).astype(np.float64, copy=False))
                signs.append(np.asarray(Y[chosen], dtype=np.int8))

    def stack(self) -> None:
        """Make one matrix of what has been put."""
        self._n_learning = sum(signs.shape[0] for signs in self._signs[0])
        self.Z = _arrays.with_short_indices(_arrays.stack_rows(self._parts[0] + self._parts[1]))
        self.Y = np.concatenate(self._signs[0] + self._signs[1])
        self._parts, self._signs = ([], []), ([], [])

    def of(self, part: slice) -> tuple[Any, np.ndarray]:
        """Views of consecutive rows."""
        return _arrays.view_rows(self.Z, part), self.Y[part]

    @property
    def everything(self) -> slice:
        """All rows."""
        return slice(0, self.Y.shape[0])

    @property
    def learning(self) -> slice:
        """The rows of all folds but 0."""
        return slice(0, self._n_learning)

    @property
    def held_out(self) -> slice:
        """The rows of fold 0."""
        return slice(self._n_learning, self.Y.shape[0])


@dataclass(frozen=True)
class KeepingPass:
    """The pass, by an engine of one process: rows are checked and mapped, and their features put where they are kept.

    prepare and encode as of ``Pass``; is_sparse: whether the features are CSR, which the map must then allow.
    """

    prepare: Callable[[Any, Any, str], Any]
    features: Any
    encode: Callable[[np.ndarray], Targets]
    moments: KeptFeatures
    clock: Stopwatch
    is_sparse: bool

    def add(self, X: Any, y: Any, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source."""
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            targets = self.encode(y)
        with self.clock("features"):
            for first in range(0, rows.shape[0], PIECE_ROWS):
                piece = slice(first, first + PIECE_ROWS)
                part = _arrays.take_rows(rows, piece)
                part = _arrays.to_sparse(part) if self.is_sparse else part
                self.moments.put(mapped(self.features, part), targets[piece], start + first)
