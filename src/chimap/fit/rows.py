"""Rows and targets before they become features: read, checked, normalised, encoded and divided into folds.

``Preparation`` turns raw rows into the rows that features are computed from; prediction uses it too. ``PreparedRows``
joins a source to its preparation, codec and folds, and draws the subsets that a fit needs: the sample that features are
fitted on, and the rows beside it that held-out outputs and scores are computed for.
"""

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
from chimap.engines.memory import CHUNK_UNIT, FEWEST_WITNESSES, WITNESS_SHARE
from chimap.explain.effects import BinUnit
from chimap.features.weighted import BinWeights
from chimap.fit.design import FeatureBlock, check_rows, normalised, rows_apart, sample_size
from chimap.fit.precision import rows_in
from chimap.fit.targets import Codec
from chimap.moments import DealtFolds, RowFolds, RowWeights, of_rows, rows_by_weight
from chimap.selection.tried import TRIED_ROWS, TriedRows
from chimap.solvers.held_out import Witnesses

_MOST_SHARE = 4  # even the fewest take at most a quarter of the budget
_OUTPUTS_HELD = 6  # matrices of outputs that a calibration holds at once


def _log1p(rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
    """Return ln(1 + |x|) of every entry, with the sign of x."""
    return _arrays.map_values(rows, lambda values: np.copysign(np.log1p(np.abs(values)), values))


def _sqrt(rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
    """Return the square root of |x| of every entry, with the sign of x."""
    return _arrays.map_values(rows, lambda values: np.copysign(np.sqrt(np.abs(values)), values))


NORMALIZATIONS: dict[str, Callable[[Rows, Sequence[np.ndarray]], Rows]] = {
    "l1": normalised,
    "log1p": _log1p,
    "sqrt": _sqrt,
}
"""Values of ``normalize`` besides None: functions of checked rows and the columns of each block that return rows."""


UNDONE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "log1p": lambda values: np.copysign(np.expm1(np.abs(values)), values),
    "sqrt": lambda values: np.copysign(np.square(values), values),
}
"""The inverse of each of ``NORMALIZATIONS`` that changes every entry by itself."""


@dataclass(frozen=True)
class Preparation:
    """Turn raw rows into what features take: checked, in one precision, normalised, with weighted bins if asked.

    Parameters
    ----------
    parts : list of FeatureBlock
        The blocks of columns and their kernels, which decide which entries are allowed.
    dtype : dtype
        Precision of the prepared rows.
    normalize : str or None
        A key of ``NORMALIZATIONS``, or None.
    bin_weights : array of shape (bins,) or None, default=None
        Weights of the bins.
    columns : tuple of str or None, default=None
        Names of the columns, for errors.
    """

    parts: list[FeatureBlock]
    dtype: np.dtype
    normalize: str | None
    bin_weights: np.ndarray | None = None
    columns: tuple[str, ...] | None = None

    @property
    def changes_rows(self) -> bool:
        """Whether the numbers of rows change."""
        return self.normalize is not None or self.bin_weights is not None

    def __call__(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Prepare rows of the source ``name``; ``first_row``, or an array of row numbers, locates errors."""
        return self.of(X, first_row, name)

    def of(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Prepare rows as a call does. The argument is freed once converted, if nothing else refers to it."""
        rows = rows_in(X, self.dtype, first_row, name)
        del X  # frees the original where the rows were converted
        check_rows(rows, self.parts, name, first_row, self.columns)
        if self.normalize is not None:
            rows = NORMALIZATIONS[self.normalize](rows, [part.columns for part in self.parts])
        factors = self.factors
        return rows if factors is None else _scaling.scale_columns(rows, factors)

    @cached_property
    def factors(self) -> np.ndarray | None:
        """Factors of the columns, (bins,), applied last: a kernel of products of these columns weights its bins."""
        if self.bin_weights is None:
            return None
        factors = np.empty(self.bin_weights.size)
        for part in self.parts:
            block_weights = BinWeights(self.bin_weights[part.columns])
            factors[part.columns] = block_weights.factors(part.settings.exact)
        return factors

    def unit_of_bin(self, place: int) -> BinUnit:
        """Return how values of a bin are prepared.

        A normalisation that looks at whole rows leaves them as it makes them: shares of the row under "l1".
        """
        factor = 1.0 if self.factors is None else float(self.factors[place]) or 1.0
        undone = UNDONE.get(self.normalize or "")
        if undone is None:
            return BinUnit(lambda values: factor * values, lambda prepared: prepared / factor)
        done = NORMALIZATIONS[self.normalize or ""]
        return BinUnit(
            lambda values: factor * np.asarray(done(values[:, None], [])[:, 0]),
            lambda prepared: undone(prepared / factor),
        )


def features_by_pieces(features: RowFeatures, rows: Rows, out: np.ndarray, shift: np.ndarray) -> None:
    """Write the features of many rows to ``out``, in pieces of the smallest chunk, which the memory is planned for."""
    for first in range(0, rows.shape[0], CHUNK_UNIT):
        piece = slice(first, first + CHUNK_UNIT)
        features.features_into(_arrays.take_rows(rows, piece), out[piece], shift)


@dataclass(frozen=True)
class PreparedRows:
    """A source, with how its rows are prepared, its targets encoded, and its rows divided into folds.

    Parameters
    ----------
    source : Source
        The rows.
    prepare : Preparation
        What is done to them before they are mapped.
    codec : Codec
        Encodes labels or targets.
    folds : RowFolds
        The fold of each row.
    seed : int
        Seed of the subsets that are drawn.
    """

    source: Source
    prepare: Preparation
    codec: Codec
    folds: RowFolds
    seed: int

    @property
    def n_folds(self) -> int:
        """Number of folds of the rows."""
        return self.folds.n_folds

    @property
    def weights(self) -> RowWeights:
        """Weights of all rows, by their place."""
        return RowWeights(self.source.weights)

    def sample(self) -> Rows:
        """Return the prepared rows that features are fitted on, drawn in proportion to the row weights if any."""
        return self.sample_beside(np.zeros(0, dtype=np.intp))[0]

    def sample_beside(self, others: np.ndarray) -> tuple[Rows, Rows | None]:
        """Return the sample and the prepared rows at the places ``others``; a source is not read through twice."""
        sampled = self.sampled()
        if self.source.weights is None and (self.source.can_seek or not others.size):
            return self.take(sampled), self.take(others) if others.size else None
        both = np.union1d(sampled, others)
        rows = self.take(both)
        other_rows = _arrays.take_rows(rows, np.searchsorted(both, others)) if others.size else None
        return _arrays.take_rows(rows, np.searchsorted(both, sampled)), other_rows

    @property
    def labels(self) -> np.ndarray:
        """Labels or targets of all rows. Raises DataError where there are none."""
        y = self.source.labels()
        if y is None:
            raise DataError(f"{self.source.name} has no labels.")
        return y

    def take(self, places: np.ndarray) -> Rows:
        """Return the prepared rows at ascending places."""
        return self.prepare.of(self.source.take(places), places, self.source.name)

    def witnesses(self, n_features: int, itemsize: int, budget: int) -> np.ndarray:
        """Return the places of the rows to compute held-out outputs for: as many as a share of the budget holds.

        There are none if the budget does not hold the fewest that a calibration can learn from, as with a hundred
        thousand classes.
        """
        outputs = np.dtype(np.float64).itemsize * _OUTPUTS_HELD * self.codec.n_targets
        bytes_each = self.source.row_bytes + itemsize * n_features + outputs
        size = int(max(FEWEST_WITNESSES, min(TRIED_ROWS, budget / WITNESS_SHARE / bytes_each)))
        if size * bytes_each > budget / _MOST_SHARE:
            return np.empty(0, dtype=np.int64)
        return self.beside(size)

    def beside(self, size: int) -> np.ndarray:
        """Return at most ``size`` places of rows that resemble unseen rows as far as possible."""
        apart = self._apart()
        return apart[choose_rows(apart.size, size, self.seed)] if apart.size else self._beside_sample(size)

    def _apart(self) -> np.ndarray:
        """Return the places of the rows that no landmark is made of; none for features without landmarks.

        These rows stand for unseen ones. A row that contributed to a landmark, the mean of several rows, lies closer to
        it than an unseen row does, and so do the other rows of that mean. Leaving the row out takes back its share of
        the weights, but not its share of the landmark.
        """
        n_apart = rows_apart(self.source, self.prepare.parts)
        return choose_rows(self.source.n_rows, n_apart, self.seed + 1) if n_apart else np.zeros(0, np.int64)

    def _beside_sample(self, size: int) -> np.ndarray:
        """Return ``size`` rows that the features were not fitted on, or any rows if fewer than half can be found.

        Weighted rows are taken from everywhere: the sample holds the heavy ones, so those outside it would be light.
        """
        if self._are_weighed:
            return choose_rows(self.source.n_rows, size, self.seed + 1)
        sampled = self.sampled()
        drawn = choose_rows(self.source.n_rows, size + sampled.size, self.seed + 1)
        outside = np.setdiff1d(drawn, sampled, assume_unique=True)
        if 2 * outside.size < min(size, self.source.n_rows):
            return choose_rows(self.source.n_rows, size, self.seed + 1)
        return outside[choose_rows(outside.size, size, self.seed + 1)]

    @property
    def _are_weighed(self) -> bool:
        """Whether rows have weights that differ from each other."""
        weights = self.source.weights
        return weights is not None and bool(np.ptp(of_rows(weights)) > 0)

    def sampled(self) -> np.ndarray:
        """Return the places of the sample that features are fitted on."""
        size, apart = sample_size(self.source, self.prepare.parts), self._apart()
        weights = self.source.weights
        if weights is not None and self._are_weighed:
            weights = np.array(of_rows(weights), dtype=np.float64)
            weights[apart] = 0
            return rows_by_weight(weights, size, self.seed)
        available = np.setdiff1d(choose_rows(self.source.n_rows, size + apart.size, self.seed), apart)
        return available[choose_rows(available.size, size, self.seed)]

    def held_out(self, n: int) -> np.ndarray:
        """Return the places of at most ``n`` rows of fold 0."""
        members = np.flatnonzero(self.folds(0, self.source.n_rows) == 0)
        return members[choose_rows(members.size, n, self.seed + 1)]

    def tried(self, witnesses: Witnesses, scoring: Scoring) -> TriedRows:
        """Return the witnesses with the score by which they help choose a setting."""
        score = self.codec.score(self.labels[witnesses.rows], scoring, witnesses.weights)
        return TriedRows(witnesses.Z, witnesses.Y, np.asarray(self.codec.shift), score)

    def over(self, source: Source, n_folds: int) -> PreparedRows:
        """Return other rows of the same kind, in random folds."""
        return replace(self, source=source, folds=DealtFolds(n_folds, self.seed))
