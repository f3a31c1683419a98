"""How a fit goes about it: the parts that a recipe asks for, checked once, before any row is read.

``fit.fit`` runs any ``Method`` in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, Blocks, Rows
from chimap._validation import AUTO, check_choice
from chimap.backends import backend_of, check_device
from chimap.backends.base import Keep, Sums
from chimap.data import Source
from chimap.data.views import bins_of
from chimap.engines import Progress, Stopwatch
from chimap.engines.local import Pass
from chimap.features.base import FittedFeatures
from chimap.features.blocks import BlockFeatures
from chimap.features.exact import ExactBlocks
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.machines.base import check_sizes
from chimap.machines.holding_out import APART, HoldingOut, check_apart, holding_out, leaving_out, part_of
from chimap.machines.objective import PenalisedLoss, checked_components, objective_of
from chimap.machines.rows import PreparedRows
from chimap.model_files import register
from chimap.moments import FoldMoments, GivenFolds, RowFolds
from chimap.normalizations import Normalization
from chimap.recipe import Recipe
from chimap.recipe.codecs import Codec, known_targets
from chimap.recipe.parts import FeatureBlock, parts_of
from chimap.recipe.preparation import Preparation
from chimap.recipe.recipe import PRECISIONS
from chimap.selection.base import checked_alpha
from chimap.solvers.base import WatchedRows


@dataclass(frozen=True, eq=False)
class LearnedWidths:
    """Widths of a kernel that were learned from the targets, and how. See ``FourierKernelLearner``.

    Parameters
    ----------
    widths, start_widths : array of shape (widths,)
        The widths, and those that the search began with.
    width_names : list of str
        Their names.
    width_columns : array of shape (bins,)
        The width of each bin.
    history : list of dict
        The steps of the search.
    stopped : str
        Why it ended.
    n_iter, n_evaluations : int
        Its steps, and how often the objective was computed.
    """

    widths: np.ndarray
    width_names: list[str]
    width_columns: np.ndarray
    start_widths: np.ndarray
    history: list[JSON]
    stopped: str
    n_iter: int
    n_evaluations: int


register(LearnedWidths)


def features_of(parts: list[FeatureBlock], seed: int) -> BlockFeatures | ExactBlocks:
    """Return unfitted features of the blocks, added up or side by side; each draws its own random numbers."""
    features: Any = [part.make(seed + j) for j, part in enumerate(parts)]
    joined = ExactBlocks if all(part.features.adds_up_blocks for part in parts) else BlockFeatures
    return joined(features, {part.name: part.columns for part in parts})


@dataclass(frozen=True, eq=False)
class Method:
    """The parts of a fit that a recipe asks for, whatever rows it is fitted to.

    A ``Recipe`` is what is asked, and a ``Plan`` what is decided for the rows at hand. The method holds the recipe of
    a plan with the parts that carry it out: features, of one kernel or of a kernel for each block, an objective, and
    rows that are held out. Learners of kernels subclass it: their features also learn from the labels of more rows.

    Parameters
    ----------
    recipe : Recipe
        The settings.
    blocks : mapping of names to columns, or None
        The blocks of columns.
    objective : PenalisedLoss
        What the weights minimise.
    holding : HoldingOut
        Which rows are held out to choose.
    n_principal : int, tuple of int or None
        Most principal components of each block, several numbers to choose from, or None for all features.
    normalization : Normalization or None
        The normalisation of the rows, fitted once the fit has begun.
    """

    recipe: Recipe
    blocks: Blocks | None
    objective: PenalisedLoss
    holding: HoldingOut
    n_principal: int | tuple[int, ...] | None
    normalization: Normalization | None

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        columns: Sequence[str] | None = None,
        *,
        has_gaps: bool = False,
        from_race: Collection[str] = (),
    ) -> Method:
        """Return the method for rows with these names of columns.

        has_gaps: see ``Task``. from_race: see ``OpenSettings``.

        Raises
        ------
        ValueError
            If a setting is invalid or cannot be combined with another; the message names the parameter.
        """
        check_sizes(recipe)
        blocks = recipe.blocks_in(columns)
        made = Method if recipe.learner is None else recipe.learner.method_for(recipe)
        objective = objective_of(recipe, has_gaps, from_race)
        if recipe.precision == "bfloat16":
            raise InputError(
                Message("{precision='bfloat16'} is gone: it lost digits and gained little. Use {precision='float32'}.")
            )
        check_choice(recipe.precision, "precision", PRECISIONS)
        check_device(recipe.device)
        n_principal = checked_components(recipe.n_principal, objective)
        if recipe.selection == "gcv" and isinstance(n_principal, tuple):
            raise InputError(Message("several {n_principal} are compared by folds: use {selection='auto'}, not 'gcv'."))
        holding = holding_of(recipe, objective, n_principal)
        return made(recipe, blocks, objective, holding, n_principal, recipe.normalization)

    # --- features

    def parts(self, n_columns: int) -> list[FeatureBlock]:
        """Return the blocks of the columns, by which rows are checked and normalised."""
        return parts_of(self.recipe, self.blocks, n_columns)

    def sized(self, n_columns: int) -> list[FeatureBlock]:
        """Return parts whose features have the sizes of the model's features."""
        return self.parts(n_columns)

    def features(self, sample: Rows, sample_weight: np.ndarray | None = None) -> Any:
        """Return features fitted on prepared rows, or an object for ``adapted`` to adapt.

        Rows far from 1 are first scaled towards it by a power of two. ``sample_weight`` are the weights (n,) of rows
        that features keep; None for samples that are drawn by weight.
        """
        parts, seed = self.parts(sample.shape[1]), self.recipe.seed
        scale = Scale.of(sample, [part.kernel for part in parts])
        parts = [part.scaled(scale) for part in parts]
        is_alone = self.blocks is None and len(parts) == 1 and self.recipe.n_principal is None
        features: Any = parts[0].make(seed) if is_alone else features_of(parts, seed)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        features.fit(scale.rows(sample), **weights)
        return ScaledFeatures(features, scale) if scale.exponent else features

    def adapted(
        self, features: Any, rows: PreparedRows, sample: Rows, clock: Stopwatch, progress: Progress
    ) -> tuple[FittedFeatures, LearnedWidths | None]:
        """Return features adapted to ``rows``, and the widths that were learned: here neither."""
        return features, None

    @property
    def most_principal(self) -> int | None:
        """The largest number of components to try, or None without components."""
        return None if self.n_principal is None else int(np.max(self.n_principal))

    # --- rows

    @property
    def changes_rows(self) -> bool:
        """Whether preparation changes the numbers of the rows."""
        return self.normalization is not None or self.recipe.given_bin_weights is not None

    def preparation(self, source: Source) -> Preparation:
        """Return how rows of a source are checked, converted and normalised."""
        parts, recipe = self.parts(source.n_features), self.recipe
        return Preparation(parts, recipe.dtype, self.normalization, recipe.given_bin_weights, source.column_names)

    def of_groups(self) -> Self:
        """Return the method for rows in groups, which are always held out by folds of whole groups."""
        return replace(self, holding=self.holding.of_groups())

    def resumed(self, seed: int, normalization: Normalization | None) -> Self:
        """Return the method with the seed and the fitted normalisation of the fit which is resumed."""
        return replace(self, recipe=replace(self.recipe, seed=seed), normalization=normalization)

    def hidden(self, source: Source, groups: np.ndarray | None, watch: WatchedRows | None) -> np.ndarray | None:
        """Return the rows (n,) whose labels no normalisation, nor learned weights of bins, know: those that are scored.

        Rows that are watched are among them. Where folds are held out they are one part of the rows. None if all labels
        are unknown to both.
        """
        if source.hidden is not None:
            is_part = self.holding is APART
            return part_of(source.hidden, groups, self.recipe.seed) if is_part else source.hidden
        if not self.recipe.normalizes_by_labels:
            return None
        hidden = APART.folds(source.n_rows, source.labels(), groups, self.recipe.seed)(0, source.n_rows) == 0
        hidden[[] if watch is None else watch.places] = True
        return np.asarray(hidden)

    def folds(self, source: Source, groups: np.ndarray | None, hidden: np.ndarray | None) -> RowFolds:
        """Return the fold of each row; those ``hidden`` from weights of bins are the one that is held out."""
        if source.hidden is not None and hidden is not None and self.holding is APART:
            return GivenFolds(np.where(hidden, 0, 1), 2, 1)
        return self.holding.folds(source.n_rows, source.labels(), groups, self.recipe.seed)

    def summed(self, rows: PreparedRows) -> PreparedRows:
        """Return the rows whose features are added up: here all."""
        return rows

    def learning_pass(
        self,
        rows: PreparedRows,
        features: FittedFeatures,
        moments: FoldMoments,
        clock: Stopwatch,
        keep: Keep | None = None,
    ) -> Pass[Sums]:
        """Return the pass that adds up features and targets of the rows, fold by fold."""
        sums = backend_of(self.recipe.device).sums(features, moments, keep)
        return Pass(rows.prepare, rows.codec.encode, sums, rows.folds, clock, rows.weights)

    def fitted_to(self, source: Source, codec: Codec, hidden: np.ndarray | None) -> Self:
        """Return the method with its normalisation fitted to the bins of the rows of a source, and to known labels."""
        if self.normalization is None:
            return self
        y = source.labels()
        targets = None if y is None else known_targets(codec, y, hidden)
        return replace(
            self, normalization=self.normalization.fitted(bins_of(source, self.recipe.n_covariates), targets)
        )


def holding_of(recipe: Recipe, objective: PenalisedLoss, n_principal: int | tuple[int, ...] | None) -> HoldingOut:
    """Return which rows are held out to choose alpha and, where several are given, the number of components."""
    if recipe.normalizes_by_labels:
        check_apart(recipe.selection, recipe.normalize)
    if objective.solver.leaves_out:
        return leaving_out(AUTO if recipe.knows_labels else recipe.selection)
    if recipe.knows_labels:
        return APART
    return holding_out(
        recipe.selection,
        is_fixed=isinstance(checked_alpha(recipe.alpha), float) and not isinstance(n_principal, tuple),
        has_gcv=objective.has_gcv and not (recipe.leaves_open("selection") and n_principal is not None),
        has_score=objective.has_gcv,
        by_name=Message("{loss='square'}; got {loss=}", objective.loss),
    )
