"""The features of all rows, kept in memory for solvers that need them."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.moments.folds import RowFolds
from chimap.moments.targets import Targets, filled, split


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
        self._parts: tuple[list[Rows], list[Rows]] = ([], [])
        self._signs: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        self._weights: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        self._places: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        self._fold_of: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])

    def put(self, Z: Rows, Y: Targets, start: int) -> None:
        """Keep a copy of consecutive rows, of which the first is row ``start`` of the source."""
        folds = self._folds(start, Z.shape[0])
        plain, weights = split(Y)
        weights = np.ones(Z.shape[0]) if weights is None else weights
        is_held = (folds == 0) & (self.n_folds > 1)
        for part, members in enumerate((~is_held, is_held)):
            features, signs, kept_weights = self._parts[part], self._signs[part], self._weights[part]
            chosen = np.flatnonzero(members)
            if chosen.size:
                self._places[part].append(start + chosen)
                self._fold_of[part].append(folds[chosen])
                features.append(_arrays.take_rows(Z, chosen).astype(np.float64, copy=False))
                signs.append(_small(filled(np.asarray(plain[chosen], dtype=np.float32))))
                kept_weights.append(weights[chosen])

    def stack(self) -> None:
        """Join all rows that have been put into one matrix."""
        self._n_learning = sum(signs.shape[0] for signs in self._signs[0])
        self.Z = _arrays.with_short_indices(_arrays.stack_rows(self._parts[0] + self._parts[1]))
        self.Y = np.concatenate(self._signs[0] + self._signs[1])
        self.weights = np.concatenate(self._weights[0] + self._weights[1])
        self.places = np.concatenate(self._places[0] + self._places[1])
        self.folds = np.concatenate(self._fold_of[0] + self._fold_of[1])
        self._parts, self._signs, self._weights = ([], []), ([], []), ([], [])

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


def _small(values: np.ndarray) -> np.ndarray:
    """Return the values as int8 if that loses nothing, as for signs."""
    whole = values.astype(np.int8)
    return whole if np.array_equal(whole, values) else values
