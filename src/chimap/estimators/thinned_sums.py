"""Sums of products over thinned copies of rows, of which there are as many as one likes: the noise of counts in ridge.

Of additive features z, a row with n copies that are thinned at random adds to the sums what these add on average,

    sum z     z + n E m,        sum z z'     z z' + n E [m m' + diag(V_1, ..., V_bins)],

with the mean m and the covariances V_i of the features of its bins (``tables.thinned``). E is over the share of the
counts that a copy has, as ``data.depth`` draws it: its logarithm is even between two ends, a mean over a few of its
values. So ridge is solved as from any number of copies, in one pass over the rows. The rows that the strength and
probabilities are chosen by are copies that are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from chimap import _arrays
from chimap._types import CSR, Rows
from chimap.backends.base import Clock, Keep, Sums
from chimap.backends.host import PIECE_ROWS, FoldSums
from chimap.data.depth import LARGEST_SHARE, LEAST_SHARE, counts_of, totals_of
from chimap.data.views import ChosenRows
from chimap.engines import Stopwatch
from chimap.engines.local import Pass
from chimap.features.additive.base import AdditiveMap
from chimap.features.base import FittedFeatures
from chimap.losses import Loss
from chimap.machines.method import Method
from chimap.machines.objective import PenalisedLoss
from chimap.machines.rows import PreparedRows
from chimap.models.model import Model
from chimap.moments import FoldMoments, GivenFolds, Targets, WeightedTargets, of_rows, split
from chimap.recipe import Recipe
from chimap.recipe.preparation import Preparation
from chimap.selection.base import OpenSettings, checked_alpha
from chimap.tables.thinned import ThinnedFeatures

N_SHARES = 4  # of the counts, at which a row is thinned
MOST_FEATURES = 8192  # whose products are summed up
_NUMBERS = 2**19  # features of thinned rows in memory at once
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(N_SHARES)
SHARES = LEAST_SHARE * (LARGEST_SHARE / LEAST_SHARE) ** ((1 + _NODES) / 2)


@dataclass(frozen=True, eq=False)
class ThinnedSums:
    """Adds rows of counts, and what copies of them would add, to the moments of their folds; see ``base.Sums``.

    Parameters
    ----------
    plain : FoldSums
        Adds prepared rows.
    thinned : ThinnedFeatures
        The features of thinned rows.
    prepare : Preparation
        Prepares rows of counts.
    n_copies : int
        Copies of each row.
    """

    plain: FoldSums
    thinned: ThinnedFeatures
    prepare: Preparation
    n_copies: int

    @property
    def moments(self) -> FoldMoments:
        """See ``Sums``."""
        return self.plain.moments

    def fresh(self) -> ThinnedSums:
        """See ``Sums``."""
        return replace(self, plain=self.plain.fresh())

    def add(self, rows: Rows, targets: Targets, folds: np.ndarray, clock: Clock) -> None:
        """See ``Sums``."""
        self.plain.add(self.prepare(rows, 0, "rows"), targets, folds, clock)
        plain, weights = split(targets)
        weights = np.ones(rows.shape[0]) if weights is None else of_rows(weights)
        at_once = max(1, min(PIECE_ROWS, _NUMBERS // self.moments.shift.size))
        for fold in np.unique(folds).tolist():
            members = np.flatnonzero(folds == fold)
            for part in _arrays.slices(members.size, at_once):
                some = members[part]
                counts = counts_of(_arrays.take_rows(rows, some), "rows")
                for share, weight in zip(SHARES, _WEIGHTS / 2, strict=True):
                    each = self.n_copies * weight * weights[some]
                    with clock("thinning"):
                        Z = self._added(counts, share, each, fold)
                    with clock("moments"):
                        self.moments.add_shifted(fold, Z, WeightedTargets(plain[some], each))

    def _added(self, counts: CSR, share: float, weights: np.ndarray, fold: int) -> np.ndarray:
        """Return mean features (n, D) of rows less their shift, and add what they scatter to the sums of a fold."""
        n_rows, n_bins = counts.shape
        depths = np.minimum(np.maximum(1, np.ceil(share * totals_of(counts))), totals_of(counts))
        means, covariances = self.thinned.moments(counts, depths)
        Z, lengths = self.moments.buffer(n_rows), np.diff(counts.indptr)
        Z[:] = -self.moments.shift
        places, of_entries = np.repeat(np.arange(n_rows), lengths), np.repeat(weights, lengths)
        n_terms = means.shape[1]
        for q in range(n_terms):
            Z[places, q * n_bins + counts.indices] += means[:, q]
            for r in range(q, n_terms):
                noise = np.bincount(counts.indices, of_entries * covariances[:, q, r], n_bins)
                rows = q * n_bins + np.arange(n_bins)
                self.moments.folds[fold].features.add_at(rows, rows + (r - q) * n_bins, noise)
        return Z

    def finish(self, clock: Clock) -> None:
        """Count rows as rows with so many copies."""
        for fold in self.moments.folds:
            fold.n_rows = fold.n_rows // (1 + N_SHARES) * (1 + self.n_copies)


class ThinnedMethod(Method):
    """Sums over rows and their copies in closed form; the source has drawn copies behind each row."""

    def summed(self, rows: PreparedRows) -> PreparedRows:
        """See ``Method``: the rows without their copies."""
        places, labels = rows.source.places_in_file(), rows.labels
        first = np.sort(np.unique(places, return_index=True)[1])
        folds = GivenFolds(rows.folds(0, places.size)[first], rows.folds.n_folds, rows.folds.n_held)
        return replace(rows, source=ChosenRows(rows.source, first, labels[first]), folds=folds)

    def learning_pass(
        self,
        rows: PreparedRows,
        features: FittedFeatures,
        moments: FoldMoments,
        clock: Stopwatch,
        keep: Keep | None = None,
    ) -> Pass[Sums]:
        """See ``Method``."""
        prepare, learner = rows.prepare, cast(ThinnedCopies, self.recipe.learner)
        thinned = ThinnedFeatures(cast(AdditiveMap, features), prepare.normalize, prepare.factors)
        sums = ThinnedSums(FoldSums(features, moments, keep), thinned, prepare, learner.n_copies)
        as_they_are = replace(prepare, normalize=None, bin_weights=None, dtype=np.dtype(np.float64))
        return Pass(as_they_are, rows.codec.encode, sums, rows.folds, clock, rows.weights)


@dataclass(frozen=True)
class ThinnedCopies:
    """Learns from so many copies of each row in closed form; see ``recipe.recipe.Learner``."""

    n_copies: int
    losses_not_taken: ClassVar[tuple[str, ...]] = ()

    def method_for(self, recipe: Recipe) -> type[Method]:
        """See ``Learner``."""
        return ThinnedMethod

    def objective_for(self, recipe: Recipe, loss: str | Loss) -> PenalisedLoss:
        """See ``Learner``."""
        return PenalisedLoss(loss, OpenSettings(checked_alpha(recipe.alpha)))


def has_closed_form(model: Model) -> bool:
    """Return whether a machine like this one has its sums over thinned copies in closed form.

    It is ridge with an additive map, on rows that are normalised by their totals alone.
    """
    recipe, features, normalize = model.recipe, model.features, model.normalization
    is_ridge = recipe.requested_loss == "square" and recipe.learner is None and not recipe.is_exact
    is_plain = not recipe.n_covariates and recipe.n_principal is None and len(model.parts) == 1
    by_totals = normalize is None or normalize.of_total(np.ones(1), 1.0) is not None
    is_here = recipe.device == "cpu" and model.task_names is None
    is_small = isinstance(features, AdditiveMap) and features._n_features_out <= MOST_FEATURES
    return bool(is_ridge and is_plain and by_totals and is_here and is_small)
