"""Rows and targets on their way into features: read, checked, normalised, encoded, and divided into folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chimap import _arrays, _scaling
from chimap._types import Rows, Scoring
from chimap._validation import DataError
from chimap.backends.base import RowFeatures
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.engines.memory import CHUNK_UNIT
from chimap.features.weighted import BinWeights
from chimap.fit.design import Part, check_rows, normalised, sample_size
from chimap.fit.targets import Codec
from chimap.moments import DealtFolds, FoldMoments, RowFolds, RowWeights, rows_by_weight
from chimap.selection.tried import TriedRows

_MOST_WITNESSES = 2000
_FEWEST_WITNESSES = 64
_WITNESS_SHARE = 32  # of the budget
_MOST_SHARE = 4  # of the budget, that the fewest may take
_OUTPUTS_HELD = 6  # matrices of outputs that a calibration holds at once


def _log1p(rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
    """ln(1 + x) of every entry, with the sign of x."""
    return _arrays.map_values(rows, lambda values: np.copysign(np.log1p(np.abs(values)), values))


def _sqrt(rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
    """The square root of every entry, with the sign of x."""
    return _arrays.map_values(rows, lambda values: np.copysign(np.sqrt(np.abs(values)), values))


NORMALIZATIONS: dict[str, Callable[[Rows, Sequence[np.ndarray]], Rows]] = {
    "l1": normalised,
    "log1p": _log1p,
    "sqrt": _sqrt,
}
"""What ``normalize`` may be besides None: from checked rows and the columns of each block to rows."""


@dataclass(frozen=True)
class Preparation:
    """Rows as features take them: checked, in one precision, normalised and their bins weighted if asked."""

    parts: list[Part]
    dtype: np.dtype
    normalize: str | None
    bin_weights: np.ndarray | None = None

    def __call__(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Rows of ``name`` that begin at a row, or are these; an error names the row."""
        return self.of(X, first_row, name)

    def of(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """The same; rows that nobody else holds are let go of once they are converted."""
        rows = _arrays.as_rows(X, self.dtype)
        del X  # as it came, where it was converted
        check_rows(rows, self.parts, name, first_row)
        if self.normalize is not None:
            rows = NORMALIZATIONS[self.normalize](rows, [part.columns for part in self.parts])
        factors = self.factors
        return rows if factors is None else _scaling.scale_columns(rows, factors)

    @property
    def factors(self) -> np.ndarray | None:
        """What columns are multiplied by at last, (bins,): a kernel of the products weighs its bins."""
        if self.bin_weights is None:
            return None
        factors = np.empty(self.bin_weights.size)
        for part in self.parts:
            own = BinWeights(self.bin_weights[part.columns])
            factors[part.columns] = own.factors(part.settings.exact)
        return factors


def features_by_pieces(features: RowFeatures, rows: Rows, out: np.ndarray, shift: np.ndarray) -> None:
    """Features of many rows, by pieces of the smallest chunk, whose mapped rows the memory is planned for."""
    for first in range(0, rows.shape[0], CHUNK_UNIT):
        piece = slice(first, first + CHUNK_UNIT)
        features.features_into(_arrays.take_rows(rows, piece), out[piece], shift)


@dataclass(frozen=True)
class SomeRows:
    """Prepared rows in memory, their labels and weights."""

    X: Rows
    y: np.ndarray
    weights: np.ndarray | None = None

    def with_features(
        self, features: RowFeatures, moments: FoldMoments, codec: Codec, scoring: Scoring
    ) -> TriedRows:
        """Their features and targets less the shifts of moments, with the score of outputs for them."""
        Z = np.empty((self.y.shape[0], features._n_features_out), dtype=moments.dtype)
        features_by_pieces(features, self.X, Z, moments.shift)
        score = codec.score(self.y, scoring, self.weights)
        return TriedRows(Z, np.asarray(codec.encode(self.y)), np.asarray(codec.shift), score)


@dataclass(frozen=True)
class PreparedRows:
    """A source with all that is done to its rows before they are mapped."""

    source: Source
    prepare: Preparation
    codec: Codec
    folds: RowFolds
    seed: int

    @property
    def n_folds(self) -> int:
        """That the rows are divided into."""
        return self.folds.n_folds

    @property
    def weights(self) -> RowWeights:
        """Of all rows, by their place."""
        return RowWeights(self.source.weights)

    def sample(self) -> Rows:
        """Prepared rows for what depends on the data, drawn in proportion to their weights if they have some."""
        return self.sample_beside(np.zeros(0, dtype=np.intp))[0]

    def sample_beside(self, others: np.ndarray) -> tuple[Rows, Rows | None]:
        """(the sample, prepared rows at these places), the source being read once for both."""
        sampled = self._sampled()
        if not others.size and self.source.weights is None:
            return self.take(sampled), None
        both = np.union1d(sampled, others)
        rows = self.take(both)
        beside = _arrays.take_rows(rows, np.searchsorted(both, others)) if others.size else None
        return _arrays.take_rows(rows, np.searchsorted(both, sampled)), beside

    @property
    def labels(self) -> np.ndarray:
        """Labels or targets of all rows. Raises DataError where there are none."""
        y = self.source.labels()
        if y is None:
            raise DataError(f"{self.source.name} has no labels.")
        return y

    def take(self, places: np.ndarray) -> Rows:
        """Prepared rows at ascending places."""
        return self.prepare.of(self.source.take(places), places, self.source.name)

    def witnesses(self, n_features: int, itemsize: int, budget: int) -> np.ndarray:
        """Places of the rows whose held-out outputs are wanted: as many as a part of the budget holds.

        None, where the budget is too small for the fewest that a calibration can learn from (hundred thousand classes).
        """
        outputs = np.dtype(np.float64).itemsize * _OUTPUTS_HELD * self.codec.n_targets
        each = self.source.row_bytes + itemsize * n_features + outputs
        size = int(max(_FEWEST_WITNESSES, min(_MOST_WITNESSES, budget / _WITNESS_SHARE / each)))
        if size * each > budget / _MOST_SHARE:
            return np.empty(0, dtype=np.int64)
        return self._beside_sample(size)

    def _beside_sample(self, size: int) -> np.ndarray:
        """So many rows that the features were not fitted on, or any where there are not half of them.

        Leaving a row out takes its share of the weights away, and not what it is to the features: a landmark that is
        the row itself says more, or less, of it than of rows to come.
        """
        sampled = self._sampled()
        drawn = choose_rows(self.source.n_rows, size + sampled.size, self.seed + 1)
        outside = np.setdiff1d(drawn, sampled, assume_unique=True)
        if 2 * outside.size < min(size, self.source.n_rows):
            return choose_rows(self.source.n_rows, size, self.seed + 1)
        return outside[choose_rows(outside.size, size, self.seed + 1)]

    def _sampled(self) -> np.ndarray:
        size = sample_size(self.source, self.prepare.parts)
        if self.source.weights is not None:
            return rows_by_weight(self.source.weights, size, self.seed)
        return choose_rows(self.source.n_rows, size, self.seed)

    def held_out(self, n: int) -> SomeRows:
        """At most so many rows of fold 0, read apart."""
        members = np.flatnonzero(self.folds(0, self.source.n_rows) == 0)
        chosen = members[choose_rows(members.size, n, self.seed + 1)]
        return self._some(chosen, self.prepare(self.source.take(chosen), chosen, self.source.name))

    def some_of(self, sample: Rows, n: int) -> SomeRows:
        """At most so many rows, of the ``sample`` unless that was drawn by weight: the score has the weights in it."""
        if self.source.weights is not None:
            chosen = choose_rows(self.source.n_rows, n, self.seed + 1)
            return self._some(chosen, self.take(chosen))
        among = choose_rows(sample.shape[0], n, self.seed + 1)
        places = choose_rows(self.source.n_rows, sample.shape[0], self.seed)
        return self._some(places[among], _arrays.take_rows(sample, among))

    def _some(self, places: np.ndarray, X: Rows) -> SomeRows:
        labels = self.source.labels()
        if labels is None:
            raise TypeError("rows without labels have no score")
        weights = self.source.weights
        return SomeRows(X, labels[places], None if weights is None else weights[places])

    def over(self, source: Source, n_folds: int) -> PreparedRows:
        """Other rows of the same kind, in random folds."""
        return replace(self, source=source, folds=DealtFolds(n_folds, self.seed))
