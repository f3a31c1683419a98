"""The features of all rows, kept in memory for solvers that need them."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.moments.folds import RowFolds
from chimap.moments.targets import Targets, filled, split

_Part = tuple[Rows, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Features, targets, weights, places and folds of rows that were put together."""


class KeptFeatures:
    """Features, targets and weights of all rows, in memory.

    Features Z (n, D) are float64, CSR or dense as they come. Targets Y (n, t) are int8 if they are signs, with 0 for
    missing ones, and float32 otherwise; weights are (n,). target_shift (t,) was subtracted from the targets.

    The rows of fold 0 lie behind the others, so that the learning rows and the held-out rows are both views; with a
    single fold no rows are held out. ``stack`` makes Z and Y after all rows have been put. ``places`` and ``folds``
    (n,) are the place in the source and the fold of each row, in the order in which they are kept.
    """

    Z: Rows
    Y: np.ndarray
    weights: np.ndarray
    places: np.ndarray
    folds: np.ndarray

    def __init__(self, folds: RowFolds, shift: np.ndarray | float = 0.0):
        self.n_folds, self._folds, self.target_shift = folds.n_folds, folds, shift
        self._learning: list[_Part] = []
        self._held: list[_Part] = []

    def put(self, Z: Rows, Y: Targets, start: int) -> None:
        """Keep a copy of consecutive rows, of which the first is row ``start`` of the source."""
        folds = self._folds(start, Z.shape[0])
        plain, weights = split(Y)
        weights = np.ones(Z.shape[0]) if weights is None else weights
        is_held = (folds == 0) & (self.n_folds > 1)
        for parts, members in ((self._learning, ~is_held), (self._held, is_held)):
            chosen = np.flatnonzero(members)
            if chosen.size:
                features = _arrays.take_rows(Z, chosen).astype(np.float64, copy=False)
                targets = filled(np.asarray(plain[chosen], dtype=np.float32))
                signs = targets.astype(np.int8)  # of classes, which lose nothing by it
                targets = signs if np.array_equal(signs, targets) else targets
                parts.append((features, targets, weights[chosen], start + chosen, folds[chosen]))

    def stack(self) -> None:
        """Join all rows that have been put into one matrix."""
        self._n_learning = sum(part[0].shape[0] for part in self._learning)
        features, *others = zip(*self._learning, *self._held, strict=True)
        self._learning, self._held = [], []
        self.Z = _arrays.with_short_indices(_arrays.stack_rows(features))
        self.Y, self.weights, self.places, self.folds = (np.concatenate(arrays) for arrays in others)

    def of(self, part: slice | np.ndarray) -> tuple[Rows, np.ndarray]:
        """Return the features and targets of some rows: views of consecutive ones, copies of others."""
        if isinstance(part, slice):
            return _arrays.view_rows(self.Z, part), self.Y[part]
        return _arrays.take_rows(self.Z, part), self.Y[part]

    @property
    def everything(self) -> slice:
        """All rows."""
        return slice(0, self.Y.shape[0])

    @property
    def learning(self) -> slice:
        """The rows of all folds except fold 0."""
        return slice(0, self._n_learning)

    @property
    def held_out(self) -> slice:
        """The rows of fold 0."""
        return slice(self._n_learning, self.Y.shape[0])
