"""Rows and targets on their way into features: read, checked, normalised, encoded, and divided into folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from chimap import _arrays, _scaling
from chimap._types import Rows, Scoring
from chimap._validation import DataError
from chimap.backends.base import RowFeatures
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.engines.memory import CHUNK_UNIT
from chimap.features.weighted import BinWeights
from chimap.fit.design import Part, check_rows, normalised, rows_apart, sample_size
from chimap.fit.precision import rows_in
from chimap.fit.targets import Codec
from chimap.moments import DealtFolds, RowFolds, RowWeights, of_rows, rows_by_weight
from chimap.selection.tried import TRIED_ROWS, TriedRows
from chimap.solvers.held_out import Witnesses

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
        rows = rows_in(X, self.dtype, first_row, name)
        del X  # as it came, where it was converted
        check_rows(rows, self.parts, name, first_row)
        if self.normalize is not None:
            rows = NORMALIZATIONS[self.normalize](rows, [part.columns for part in self.parts])
        factors = self.factors
        return rows if factors is None else _scaling.scale_columns(rows, factors)

    @cached_property
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
        size = int(max(_FEWEST_WITNESSES, min(TRIED_ROWS, budget / _WITNESS_SHARE / each)))
        if size * each > budget / _MOST_SHARE:
            return np.empty(0, dtype=np.int64)
        return self.beside(size)

    def beside(self, size: int) -> np.ndarray:
        """Places of at most so many rows that are as rows to come are, as far as there are any."""
        apart = self._apart()
        return apart[choose_rows(apart.size, size, self.seed)] if apart.size else self._beside_sample(size)

    def _apart(self) -> np.ndarray:
        """Places of the rows that landmarks are not made of, so that they are as rows to come are; none for features
        without landmarks.

        A row lies nearer to a landmark that is a mean of it and others than rows to come do, and so do those others:
        leaving it out takes its share of the weights away, and not that.
        """
        n_apart = rows_apart(self.source, self.prepare.parts)
        return choose_rows(self.source.n_rows, n_apart, self.seed + 1) if n_apart else np.zeros(0, np.int64)

    def _beside_sample(self, size: int) -> np.ndarray:
        """So many rows that the features were not fitted on, or any where there are not half of them.

        Of rows with weights any: heavy ones are in the sample, and those beside it would be the light ones alone.
        """
        if self._are_weighed:
            return choose_rows(self.source.n_rows, size, self.seed + 1)
        sampled = self._sampled()
        drawn = choose_rows(self.source.n_rows, size + sampled.size, self.seed + 1)
        outside = np.setdiff1d(drawn, sampled, assume_unique=True)
        if 2 * outside.size < min(size, self.source.n_rows):
            return choose_rows(self.source.n_rows, size, self.seed + 1)
        return outside[choose_rows(outside.size, size, self.seed + 1)]

    @property
    def _are_weighed(self) -> bool:
        """Whether rows have weights; equal ones are none."""
        weights = self.source.weights
        return weights is not None and bool(np.ptp(of_rows(weights)) > 0)

    def _sampled(self) -> np.ndarray:
        size, apart = sample_size(self.source, self.prepare.parts), self._apart()
        weights = self.source.weights
        if weights is not None and self._are_weighed:
            weights = np.array(of_rows(weights), dtype=np.float64)
            weights[apart] = 0
            return rows_by_weight(weights, size, self.seed)
        others = np.setdiff1d(choose_rows(self.source.n_rows, size + apart.size, self.seed), apart)
        return others[choose_rows(others.size, size, self.seed)]

    def held_out(self, n: int) -> np.ndarray:
        """Places of at most so many rows of fold 0."""
        members = np.flatnonzero(self.folds(0, self.source.n_rows) == 0)
        return members[choose_rows(members.size, n, self.seed + 1)]

    def tried(self, witnesses: Witnesses, scoring: Scoring) -> TriedRows:
        """Rows whose score has a say in a choice."""
        score = self.codec.score(self.labels[witnesses.rows], scoring, witnesses.weights)
        return TriedRows(witnesses.Z, witnesses.Y, np.asarray(self.codec.shift), score)

    def over(self, source: Source, n_folds: int) -> PreparedRows:
        """Other rows of the same kind, in random folds."""
        return replace(self, source=source, folds=DealtFolds(n_folds, self.seed))
