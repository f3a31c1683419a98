"""Rows and targets before they become features: read, checked, normalised, encoded and divided into folds.

``Preparation`` turns raw rows into the rows that features are computed from; prediction uses it too. ``PreparedRows``
joins a source to its preparation, codec and folds, and draws the subsets that a fit needs: the sample that features are
fitted on, and the other rows that held-out outputs and scores are computed for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from chimap import _arrays
from chimap._types import Rows, Scoring
from chimap._validation import DataError
from chimap.backends.base import RowFeatures
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.engines.memory import CHUNK_UNIT, FEWEST_VALIDATION_ROWS, VALIDATION_SHARE
from chimap.machines.holding_out import folds_of_groups
from chimap.moments import DealtFolds, RowFolds, RowWeights, of_entries, of_rows, rows_by_weight, unit_of
from chimap.recipe.codecs import Codec
from chimap.recipe.parts import FeatureBlock, sizes_of
from chimap.recipe.preparation import Preparation
from chimap.recipe.task import HeldOutRows
from chimap.selection.choose import ChosenSolution
from chimap.solvers.held_out import SCORED_ROWS, HeldOut, ScoredRows, ValidationRows

_SAMPLE_ROWS, _SAMPLE_BYTES = 4096, 2**26
_RESERVED_DIVISOR = 5  # at most a fifth of the rows: setting these aside costs no landmarks worth having
_MOST_SHARE = 4  # even the fewest take at most a quarter of the budget
# Rows, or groups, that suffice to calibrate by, and rows of a rare class. With 28 rows of a fold probabilities were off
# by .07, with 140 rows left out by a Newton step by .02.
FEWEST_UNITS = 100
_NEGATIVES = 50  # rows of the other classes that have the largest outputs, to find the threshold of a rare class among
_MOST_VALIDATION_ROWS = 2**16  # however rare a class is
_OUTPUTS_HELD = 6  # matrices of outputs that a calibration holds at once


def sample_rows(n_bins: int) -> int:
    """Return the number of rows of ``n_bins`` bins that maps, gamma and the provisional mean are fitted on."""
    return min(_SAMPLE_ROWS, max(256, _SAMPLE_BYTES // max(1, 4 * n_bins)))


def sample_size(source: Source, parts: list[FeatureBlock]) -> int:
    """Return the number of rows of the source that the features of these parts are fitted on."""
    size = max(sample_rows(source.n_features), sizes_of(parts).sample_rows)
    return min(size, source.n_rows - n_reserved_rows(source, parts))


def n_reserved_rows(source: Source, parts: list[FeatureBlock]) -> int:
    """Return the number of rows that no landmark of these parts is made of; 0 for features without landmarks.

    If every row is a landmark, leaving a row out is exact, and no rows need to be set aside.
    """
    has_others = 0 < sizes_of(parts).landmarks < source.n_rows
    return min(SCORED_ROWS, source.n_rows // _RESERVED_DIVISOR) if has_others else 0


def features_by_pieces(features: RowFeatures, rows: Rows, out: np.ndarray, shift: np.ndarray) -> None:
    """Write the features of many rows to ``out``, in pieces of the smallest chunk, which the memory is planned for."""
    for first in range(0, rows.shape[0], CHUNK_UNIT):
        piece = slice(first, first + CHUNK_UNIT)
        features.features_into(_arrays.take_rows(rows, piece), out[piece], shift)


def sufficient_folds(folds: np.ndarray, n_held: int, is_rare: np.ndarray, groups: np.ndarray | None) -> tuple[int, ...]:
    """Return the first of ``n_held`` folds whose rows are enough to calibrate by, each of which takes a fit.

    They are enough with ``FEWEST_UNITS`` rows, or groups, and as many rows of rare classes. ``folds``, ``is_rare`` and
    ``groups`` are (m,).
    """
    for n_first in range(1, n_held):
        members = folds < n_first
        n_units = members.sum() if groups is None else np.unique(groups[members]).size
        n_rare = is_rare[members].sum() if is_rare.any() else FEWEST_UNITS
        if min(n_units, n_rare) >= FEWEST_UNITS:
            return tuple(range(n_first))
    return tuple(range(max(1, n_held)))


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
    groups : array of int of shape (n,) or None, default=None
        Group of each row, numbered from 0.
    leaves_folds : bool, default=False
        Whether held-out outputs leave out a row with its whole fold, as groups and a user's splitter ask for.
    hidden : array of bool of shape (n,) or None, default=None
        Rows whose labels were hidden from the normalisation, if it learns from labels; only these are scored.
    """

    source: Source
    prepare: Preparation
    codec: Codec
    folds: RowFolds
    seed: int
    groups: np.ndarray | None = None
    leaves_folds: bool = False
    hidden: np.ndarray | None = None

    @property
    def n_folds(self) -> int:
        """Number of folds of the rows."""
        return self.folds.n_folds

    @property
    def weights(self) -> RowWeights:
        """Weights of all rows, by their place."""
        return RowWeights(self.source.weights)

    @property
    def unit(self) -> float:
        """The weight that counts as one row."""
        return unit_of(self.source.weights, self.source.counts)

    def sample(self) -> Rows:
        """Return the prepared rows that features are fitted on, drawn in proportion to the row weights if any."""
        return self.sample_and(np.zeros(0, dtype=np.intp))[0]

    def sample_and(self, others: np.ndarray) -> tuple[Rows, Rows | None]:
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

    def validation(self, n_features: int, itemsize: int, budget: int) -> np.ndarray:
        """Return the places of the rows to compute held-out outputs for: as many as a share of the budget holds.

        There are none if the budget does not hold the fewest that a calibration can learn from, as with a hundred
        thousand classes.
        """
        outputs = np.dtype(np.float64).itemsize * _OUTPUTS_HELD * self.codec.n_targets
        bytes_each = self.source.row_bytes + itemsize * n_features + outputs
        size = int(max(FEWEST_VALIDATION_ROWS, min(self._wanted, budget / VALIDATION_SHARE / bytes_each)))
        if size * bytes_each > budget / _MOST_SHARE:
            return np.empty(0, dtype=np.int64)
        return self.validation_places(size)

    def validation_places(self, size: int) -> np.ndarray:
        """Return at most ``size`` places of rows that resemble unseen rows as far as possible.

        Rows of rare classes are all among them, up to half; rows in groups come from as many groups as possible. See
        ``shares`` for how many rows each of them stands for.
        """
        if self.hidden is not None:
            hidden = np.flatnonzero(self.hidden)
            return hidden[choose_rows(hidden.size, size, self.seed)]
        if self.groups is not None:
            return self._of_groups(self.groups, size)
        rare = np.flatnonzero(self._is_rare)
        if not rare.size:
            return self._outside_features(size)
        if self._reserved.size:  # reserved rows make no landmark
            rare = np.setdiff1d(rare, self.sampled(), assume_unique=True)
        rare = rare[choose_rows(rare.size, max(1, size // 2), self.seed)] if rare.size else rare
        others = self._outside_features(size)
        others = others[~self._is_rare[others]]
        return np.union1d(rare, others[choose_rows(others.size, max(1, size - rare.size), self.seed)])

    def _outside_features(self, size: int) -> np.ndarray:
        """Return at most ``size`` places of rows that no landmark is made of, or that are not in the sample."""
        reserved = self._reserved
        if not reserved.size:
            return self._beside_sample(size)
        if size > SCORED_ROWS:
            reserved = np.setdiff1d(np.arange(self.source.n_rows), self.sampled(), assume_unique=True)
        return reserved[choose_rows(reserved.size, size, self.seed)]

    def _of_groups(self, groups: np.ndarray, size: int) -> np.ndarray:
        """Return at most ``size`` places of rows that are held out, as many from each group as possible.

        They are of the groups that no landmark is made of, if these are enough. A probability or a set needs more: the
        rows of a group are left out with all that is like them anyway.
        """
        is_enough = np.unique(groups[self._reserved]).size >= FEWEST_UNITS
        places = self._reserved if is_enough else np.arange(self.source.n_rows)
        if self.folds.n_held < self.n_folds:
            held = places[self.folds(0, self.source.n_rows)[places] < self.folds.n_held]
            places = held if held.size else np.flatnonzero(self.folds(0, self.source.n_rows) < self.folds.n_held)
        places = np.random.default_rng([self.seed, 1]).permutation(places)
        # the first row of every group comes first, then the second, and so on; rare classes before all
        order = np.argsort(groups[places], kind="stable")
        members = groups[places][order]
        starts = np.flatnonzero(np.diff(members, prepend=-1))
        rank = np.empty(places.size, dtype=np.int64)
        rank[order] = np.arange(places.size) - np.repeat(starts, np.diff(np.append(starts, places.size)))
        rank[self._is_rare[places]] = -1
        return np.sort(places[np.argsort(rank, kind="stable")[:size]])

    def shares(self, places: np.ndarray) -> np.ndarray | None:
        """Return how many rows of the source each of the rows at ``places`` stands for, (m,); None for as many all."""
        strata = self._is_rare.astype(np.intp) if self.groups is None or self._is_rare.any() else self.groups
        if not places.size or not strata.any():
            return None
        drawn = np.bincount(strata[places], minlength=int(strata.max()) + 1)[strata[places]]
        shares = np.bincount(strata)[strata[places]] / drawn
        return None if np.ptp(shares) == 0 else np.asarray(shares)

    def held_out_rows(self, held_out: HeldOut | None) -> HeldOutRows | None:
        """Return outputs of rows by machines that have not seen them, with what is known of the rows."""
        if held_out is None:
            return None
        places, source = held_out.rows, self.source
        weights, shares = source.weights, self.shares(places)
        weights = None if weights is None else weights[places]
        if shares is not None:
            weights = shares if weights is None else (of_entries(weights).T * shares).T.reshape(weights.shape)
        return HeldOutRows(
            held_out.outputs,
            self.labels[places],
            weights,
            held_out.noise,
            None if source.counts is None else source.counts[places],
            None if self.groups is None else self.groups[places],
        )

    def calibrated(self, learned: ChosenSolution) -> ChosenSolution:
        """Return what was learned with the offsets of its loss, by the outputs of rows that were held out."""
        held_out = self.held_out_rows(learned.held_out)
        if held_out is None or learned.loss is None or not held_out.outputs.size:
            return learned
        counts = held_out.counted(held_out.weights)
        counts = np.ones(len(held_out.outputs)) if counts is None else counts
        targets = np.asarray(held_out.y).reshape(len(counts), -1)
        offsets = learned.loss.offsets(targets, held_out.outputs, counts)
        return learned if offsets is None else learned.moved(offsets)

    def is_reserved(self, places: np.ndarray) -> np.ndarray:
        """Return which of the rows at ``places`` no landmark is made of, (m,)."""
        return np.isin(places, self._reserved)

    def reserved(self, places: np.ndarray) -> np.ndarray | None:
        """Return which of the rows at ``places`` no landmark is made of, (m,); None if that is all or none of them."""
        is_reserved = np.isin(places, self._reserved)
        return is_reserved if is_reserved.any() and not is_reserved.all() else None

    def folds_to_hold_out(self, places: np.ndarray | None = None) -> tuple[int, ...]:
        """Return the first folds whose rows at ``places`` (None: all) suffice, see ``sufficient_folds``."""
        if self.hidden is not None:
            return (0,)
        chosen = slice(None) if places is None else places
        groups = None if self.groups is None else self.groups[chosen]
        folds = self.folds(0, self.source.n_rows)[chosen]
        return sufficient_folds(folds, self.folds.n_held, self._is_rare[chosen], groups)

    @property
    def _wanted(self) -> int:
        """Number of rows to compute held-out outputs for, if the memory holds them.

        The threshold of a rare class lies among the largest outputs of the other classes, of which few must not be
        missed.
        """
        n_rare = int(self._is_rare.sum())
        if not n_rare or self.groups is not None:
            return SCORED_ROWS
        wanted = _NEGATIVES * self.source.n_rows / n_rare
        return int(min(max(SCORED_ROWS, wanted), _MOST_VALIDATION_ROWS, self.source.n_rows))

    @property
    def has_rare(self) -> bool:
        """Whether some rows are of a rare class."""
        return bool(self._is_rare.any())

    @cached_property
    def _is_rare(self) -> np.ndarray:
        """Whether each row is of a class of which a draw of ``SCORED_ROWS`` rows would hold too few, (n,)."""
        return self.codec.rare(self.labels, SCORED_ROWS, FEWEST_UNITS)

    @cached_property
    def _reserved(self) -> np.ndarray:
        """Return the places of the rows that no landmark is made of; none for features without landmarks.

        These rows stand for unseen ones. A row that contributed to a landmark, the mean of several rows, lies closer to
        it than an unseen row does, and so do the other rows of that mean. Leaving the row out takes back its share of
        the weights, but not its share of the landmark. A fifth of the groups is reserved, each as a whole.
        """
        n_rows = self.source.n_rows
        n_reserved = n_reserved_rows(self.source, self.prepare.parts)
        if not n_reserved:
            return np.zeros(0, np.int64)
        if self.hidden is not None:
            return np.flatnonzero(self.hidden)
        if self.groups is not None:
            sizes = np.bincount(self.groups)
            chosen = np.random.default_rng(self.seed + 1).permutation(sizes.size)[: sizes.size // _RESERVED_DIVISOR]
            is_small = sizes[chosen].sum() <= n_rows // 2
            return np.flatnonzero(np.isin(self.groups, chosen)) if is_small else np.zeros(0, np.int64)
        return choose_rows(n_rows, n_reserved, self.seed + 1)

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
        size, reserved = sample_size(self.source, self.prepare.parts), self._reserved
        size = min(size, self.source.n_rows - reserved.size)
        weights = self.source.weights
        if weights is not None and self._are_weighed:
            weights = np.array(of_rows(weights), dtype=np.float64)
            weights[reserved] = 0
            return rows_by_weight(weights, size, self.seed)
        available = np.setdiff1d(choose_rows(self.source.n_rows, size + reserved.size, self.seed), reserved)
        return available[choose_rows(available.size, size, self.seed)]

    def held_out(self, n: int) -> np.ndarray:
        """Return the places of at most ``n`` rows of fold 0."""
        members = np.flatnonzero(self.folds(0, self.source.n_rows) == 0)
        return members[choose_rows(members.size, n, self.seed + 1)]

    def with_scores(self, validation: ValidationRows, scoring: Scoring) -> ScoredRows:
        """Return the validation rows with the score by which they help choose a setting."""
        score = self.codec.score(self.labels[validation.rows], scoring, validation.counted)
        shift = np.asarray(self.codec.shift)
        return ScoredRows(
            validation.Z,
            validation.Y,
            shift,
            score,
            score.name,
            score.sample_weight,
            validation.weights,
            self.codec.units,
            validation.counts,
        )

    def over(self, source: Source, n_folds: int, groups: np.ndarray | None = None) -> PreparedRows:
        """Return other rows of the same kind, in random folds, or in folds of whole groups."""
        folds = DealtFolds(n_folds, self.seed) if groups is None else folds_of_groups(groups, n_folds)
        return replace(self, source=source, folds=folds, groups=groups, leaves_folds=False, hidden=None)
