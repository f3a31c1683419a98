"""How a fit goes about it: the parts that a recipe asks for, checked once, before any row is read.

``Method.of`` turns the settings of a ``Recipe`` into the parts of the fit that vary: the ``Design`` makes the features,
the ``PenalisedLoss`` says what the weights minimise, and ``HoldingOut`` says which rows are held out. ``fit.fit`` then
runs any method in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, Rows, Scoring, is_auto
from chimap._validation import check_choice, check_positive
from chimap.backends import check_device, on_host
from chimap.data import Source
from chimap.data.views import bins_of
from chimap.engines import Progress, Stopwatch
from chimap.features.additive import check_map
from chimap.features.base import FittedFeatures
from chimap.features.families import check_features
from chimap.fit.design import PlainDesign
from chimap.fit.holding_out import HoldingOut, holding_out, leaving_out
from chimap.fit.rows import PreparedRows
from chimap.fit.solving import PenalisedLoss
from chimap.losses import OF_CLASSES, OF_TARGETS, Loss, Observed, Quantile, named
from chimap.normalizations import Normalization
from chimap.recipe import Recipe
from chimap.recipe.parts import FeatureBlock
from chimap.recipe.preparation import Preparation
from chimap.recipe.recipe import PRECISIONS, checked_alpha
from chimap.selection.base import OpenSettings
from chimap.solvers.base import Needs
from chimap.solvers.kernel_matrix import KernelSolver

_ON_DEVICES: tuple[Needs, ...] = ("moments", "kernel", "blocks")  # what a fit with a device can be solved from


class Design(Protocol):
    """How features are made: from settings, a sample of rows and, for some, the labels of more rows."""

    def parts(self, n_columns: int) -> list[FeatureBlock]:
        """Return the blocks of the columns, by which rows are checked and normalised."""
        ...

    def sized(self, n_columns: int) -> list[FeatureBlock]:
        """Return parts whose features have the sizes of the model's features."""
        ...

    def fit(self, sample: Rows, seed: int, sample_weight: np.ndarray | None = None) -> Any:
        """Return features fitted on prepared rows, or an object for ``learn`` to adapt.

        ``sample_weight`` are the weights (n,) of the rows, or None if they were drawn by weight.
        """
        ...

    def learn(
        self, features: Any, method: Method, rows: PreparedRows, sample: Rows, clock: Stopwatch, progress: Progress
    ) -> tuple[FittedFeatures, JSON]:
        """Return features adapted to ``rows``, and further attributes that were learned, by name."""
        ...


@dataclass(frozen=True, eq=False)
class Method:
    """How a model is fitted, whatever rows it is fitted to.

    Parameters
    ----------
    recipe : Recipe
        The settings.
    design : Design
        How the features are made.
    objective : PenalisedLoss
        What the weights minimise.
    holding : HoldingOut
        Which rows are held out to choose.
    n_folds : int
        Folds whose moments are kept apart; 1 if no rows are held out.
    n_principal : int, tuple of int or None
        Most principal components of each block, several numbers to choose from, or None for all features.
    normalize : Normalization or None
        The normalisation of the rows, fitted once the fit has begun.
    """

    recipe: Recipe
    design: Design
    objective: PenalisedLoss
    holding: HoldingOut
    n_folds: int
    n_principal: int | tuple[int, ...] | None
    normalize: Normalization | None

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        columns: Sequence[str] | None = None,
        *,
        has_gaps: bool = False,
        ends_at: float | None = None,
    ) -> Method:
        """Return the method for rows with these names of columns.

        has_gaps: see ``Task``. ends_at: when the fit is to end, by ``time.monotonic``; None for no limit.

        Raises
        ------
        ValueError
            If a setting is invalid or cannot be combined with another; the message names the parameter.
        """
        design, objective = design_of(recipe, columns), objective_of(recipe, has_gaps, ends_at)
        check_choice(recipe.precision, "precision", PRECISIONS)
        check_device(recipe.device)
        objective.check(recipe)
        n_principal = checked_components(recipe.n_principal, objective)
        if recipe.selection == "gcv" and isinstance(n_principal, tuple):
            raise InputError(Message("several {n_principal} are compared by folds: use {selection='auto'}, not 'gcv'."))
        if recipe.is_rounded and n_principal is not None:
            raise InputError(
                Message(
                    "{n_principal} needs features that are not rounded: use {precision='float32'} or "
                    "{precision='float64'}."
                )
            )
        if not on_host(recipe.device) and isinstance(objective.loss, Observed):
            raise InputError(
                Message(
                    "{device=} needs targets without missing entries and with equal weights, but some entries are "
                    "missing or have a {class_weight}. Use {device='cpu'}, or fit the tasks one by one.",
                    recipe.device,
                )
            )
        if not on_host(recipe.device) and objective.solver.needs not in _ON_DEVICES:
            raise InputError(
                Message(
                    "{device=} supports {loss='square'} only; got {loss=}. Use {device='cpu'}.",
                    recipe.device,
                    recipe.loss,
                )
            )
        holding = holding_of(recipe, objective, n_principal)
        return cls(recipe, design, objective, holding, holding.n_folds, n_principal, recipe.normalization)

    @property
    def scoring(self) -> Scoring:
        """Score of rows that are held out; None for accuracy or R^2."""
        return self.recipe.scoring

    @property
    def dtype(self) -> np.dtype:
        """Precision that features are computed in."""
        return self.recipe.dtype

    @property
    def is_rounded(self) -> bool:
        """Whether features are rounded to bfloat16 before they are added up."""
        return self.recipe.is_rounded

    @property
    def device(self) -> str:
        """Where sums and factors are computed."""
        return self.recipe.device

    @property
    def budget(self) -> int:
        """Memory budget in bytes."""
        return self.recipe.budget

    @property
    def seed(self) -> int:
        """Seed of all random numbers of the fit."""
        return self.recipe.seed

    @property
    def changes_rows(self) -> bool:
        """Whether preparation changes the numbers of the rows."""
        return self.normalize is not None or self.recipe.given_bin_weights is not None

    @property
    def most_principal(self) -> int | None:
        """The largest number of components to try, or None without components."""
        return None if self.n_principal is None else int(np.max(self.n_principal))

    def preparation(self, parts: list[FeatureBlock], columns: tuple[str, ...] | None = None) -> Preparation:
        """Return how rows with these blocks are checked, converted and normalised; errors name these columns."""
        return Preparation(parts, self.dtype, self.normalize, self.recipe.given_bin_weights, columns)

    def of_groups(self) -> Method:
        """Return the method for rows in groups, which are always held out by folds of whole groups."""
        holding = self.holding.of_groups()
        return replace(self, holding=holding, n_folds=holding.n_folds)

    def resumed(self, seed: int, normalize: Normalization | None) -> Method:
        """Return the method with the seed and the fitted normalisation of the fit which is resumed."""
        return replace(self, recipe=replace(self.recipe, seed=seed), normalize=normalize)

    def fitted_to(self, source: Source) -> Method:
        """Return the method with its normalisation fitted to the bins of the rows of a source."""
        if self.normalize is None:
            return self
        return replace(self, normalize=self.normalize.fitted(bins_of(source, self.recipe.n_covariates)))


def check_sizes(recipe: Recipe) -> None:
    """Raise ValueError for features, numbers or a map that no rows could have."""
    check_features(recipe.features)
    for name, number in (("n_components", recipe.n_components), ("n_terms", recipe.n_terms)):
        if not is_auto(number):
            check_positive(number, name, integer=True)
    if recipe.map is not None:
        check_map(recipe.map)


def design_of(recipe: Recipe, columns: Sequence[str] | None) -> Design:
    """Return how the features are made, for rows with these names of columns."""
    check_sizes(recipe)
    blocks = recipe.blocks_in(columns)
    if recipe.learner is not None:
        learned: Design = recipe.learner.design_for(recipe, blocks)
        return learned
    return PlainDesign(recipe, blocks, recipe.n_principal is not None)


def objective_of(recipe: Recipe, has_gaps: bool = False, ends_at: float | None = None) -> PenalisedLoss:
    """Return what the weights minimise."""
    loss, alpha = checked_loss(recipe), checked_alpha(recipe.alpha)
    if recipe.learner is not None:
        objective: PenalisedLoss = recipe.learner.objective_for(recipe, loss)
        return objective
    if recipe.keeps_rows:
        left_open = OpenSettings(alpha, is_auto(recipe.gamma), is_settled="alpha" in recipe.raced)
        return PenalisedLoss(loss, left_open, solver_name=recipe.solver or KernelSolver.name, ends_at=ends_at)
    if has_gaps and loss != "hinge":  # the deviation of each target is its unit, see ``Codec``
        loss = Observed(named(loss, 1.0) if isinstance(loss, str) else loss)
    return PenalisedLoss(loss, OpenSettings(alpha), recipe.n_principal, recipe.solver)


def loss_names(recipe: Recipe) -> tuple[str, ...]:
    """Return the names of the losses that an estimator takes."""
    names = OF_CLASSES if recipe.is_classifier else OF_TARGETS
    not_taken = () if recipe.learner is None else recipe.learner.losses_not_taken
    return tuple(name for name in names if name not in not_taken)


def checked_loss(recipe: Recipe) -> str | Loss:
    """Return the loss. Raise ValueError for one that the estimator does not take."""
    loss, names = recipe.loss, loss_names(recipe)
    if not isinstance(loss, Loss):
        check_choice(loss, "loss", names)
    elif loss.name not in names and (loss.domain == "sign") != recipe.is_classifier:
        domain = "sign" if recipe.is_classifier else "real"
        raise InputError(
            f"{recipe.estimator} takes the losses {', '.join(names)}, and loss objects of domain {domain!r}; got "
            f"{loss!r}."
        )
    if loss != Quantile.name and (np.ndim(recipe.quantile) or recipe.quantile != Quantile.quantile):
        raise InputError(Message("{quantile=} is for {loss='quantile'}; got {loss=}.", recipe.quantile, loss))
    return recipe.requested_loss


def holding_of(recipe: Recipe, objective: PenalisedLoss, n_principal: int | tuple[int, ...] | None) -> HoldingOut:
    """Return which rows are held out to choose alpha and, where several are given, the number of components."""
    if objective.solver.leaves_out:
        return leaving_out(recipe.selection)
    return holding_out(
        recipe.selection,
        is_fixed=isinstance(checked_alpha(recipe.alpha), float) and not isinstance(n_principal, tuple),
        has_gcv=objective.has_gcv and not (is_auto(recipe.selection) and n_principal is not None),
        has_score=objective.has_gcv,
        by_name=Message("{loss='square'}; got {loss=}", objective.loss),
    )


def checked_components(n_principal: Any, objective: PenalisedLoss) -> int | tuple[int, ...] | None:
    """Return one number of components, several to choose from, or None. Raise ValueError for anything else."""
    if n_principal is None or np.ndim(n_principal) == 0:
        if n_principal is not None:
            check_positive(n_principal, "n_principal", integer=True)
        return None if n_principal is None else int(n_principal)
    numbers: Sequence[int] = n_principal
    for number in numbers:
        check_positive(number, Message("each of {n_principal}"), integer=True)
    if not len(numbers) or objective.solver.needs != "moments":
        raise InputError(
            Message(
                "several {n_principal} are compared by the folds of {loss='square'}, and there must be at least "
                "one; got {n_principal=} and {loss=}.",
                n_principal,
                objective.loss,
            )
        )
    return tuple(int(number) for number in numbers)
