"""The values of the parameters of an estimator once "auto" is settled for the given rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils import check_random_state

from chimap._memory import parse_memory, room_in
from chimap._threads import threads
from chimap._types import Blocks, Parameters, Sometimes
from chimap._validation import check_choice, check_positive, checked_weights
from chimap.backends.units import automatic_precision
from chimap.data import Source
from chimap.data.table import named_blocks
from chimap.engines import Progress, chunk_rows_within
from chimap.estimators.gamma_choice import gamma_of_sample
from chimap.estimators.linear_model import LinearModel
from chimap.estimators.race_choice import race_of, weigh_bins
from chimap.features.additive import check_map
from chimap.features.base import FeatureSettings
from chimap.features.families import check_features
from chimap.fit.automatic import (
    is_automatic,
    landmarks_within,
    takes_exact,
    takes_landmarks,
    takes_wide,
    words_of_a_batch,
)
from chimap.fit.design import FeatureBlock, PlainDesign, parts_of
from chimap.fit.designing import Design
from chimap.fit.exact import ExactObjective
from chimap.fit.plan import largest_job
from chimap.fit.recipe import Objective, Recipe, checked_alpha, checked_recipe, given_weights
from chimap.fit.solving import PenalisedLoss
from chimap.fit.targets import Codec
from chimap.kernels import as_kernel
from chimap.losses import Loss, Observed, named
from chimap.solvers.wide_ridge import WideRidgeSolver

if TYPE_CHECKING:
    import numpy as np

    from chimap.selection.race_trials import RaceResult


class SettledModel(LinearModel):
    """A linear model whose parameters may be "auto".

    They are settled in two steps, and ``_given`` overlays both on the parameters: the race fills ``chosen_`` (kernel,
    features, weights of bins), then the sizes of the rows fill ``_taken`` (exact machine or landmarks, their number,
    gamma).
    """

    _races: ClassVar[bool] = True  # whether kernel="auto" races machines
    _codec_type: ClassVar[type[Codec]]
    _losses: ClassVar[tuple[str, ...]]
    _domain: ClassVar[str]  # domain of the losses that may be given as objects
    kernel: Any
    bin_weights: Any
    blocks: Any
    memory: str | int
    n_jobs: int | None
    race_seconds: Sometimes[float | None]
    random_state: Any
    n_principal: Any
    chosen_: Sometimes[Parameters]  # what the race chose
    race_: Sometimes[RaceResult]
    _taken: Sometimes[Parameters]
    _spread: Sometimes[float | None]  # spread of targets with missing entries; None if no entry is missing

    def _given(self) -> Parameters:
        """Return the parameters, overlaid with those that the race has chosen and with the values of "auto"."""
        parameters: Parameters = self.get_params(deep=False)
        return parameters | getattr(self, "chosen_", {}) | getattr(self, "_taken", {})

    def _draw_seed(self) -> None:
        """Draw the seed of a fit: once, as a ``RandomState`` gives another number at each call."""
        self._seed = int(check_random_state(self.random_state).randint(2**31))

    @property
    def _fit_seed(self) -> int:
        """The seed of the fit; before one, what ``random_state`` would give."""
        return (
            self._seed
            if hasattr(self, "_seed")
            else int(check_random_state(self.random_state).randint(2**31))
        )

    def _race(self, source: Source, groups: np.ndarray | None, progress: Progress, keeps_rows: bool) -> None:
        """Choose the settings that kernel="auto" and bin_weights leave open."""
        self.chosen_ = {}
        self._taken = {}
        self.__dict__.pop("race_", None)
        if not hasattr(self, "bin_weights"):
            return
        if self.race_seconds is not None:
            check_positive(self.race_seconds, "race_seconds")
        if isinstance(self.bin_weights, str):
            check_choice(self.bin_weights, "bin_weights", ("auto", "learn"))
        elif self.bin_weights is not None:
            checked_weights(
                self.bin_weights, source.n_features, "bin", "bin_weights", "None, 'auto', 'learn' or numbers"
            )
        with threads(self.n_jobs), progress:
            if self._races and is_automatic(self.kernel):
                self.race_, self.chosen_ = race_of(self, source, groups, progress, keeps_rows)
            elif isinstance(self.bin_weights, str) and self.bin_weights == "learn":
                self.race_, self.chosen_ = weigh_bins(self, source, groups, progress)

    def _settle(
        self,
        source: Source,
        groups: np.ndarray | None = None,
        *,
        is_plain: bool = True,
        is_batch: bool = False,
        n_targets: int | None = None,
    ) -> None:
        """Settle what "auto" stands for, for the rows of a source.

        is_plain: False if the fit has options that the exact machine does not support. is_batch: whether more rows will
        come. n_targets: number of targets, if the source has no labels.
        """
        self._taken = {}
        parameters = self._given()
        may_be_exact = is_plain and not is_batch and is_automatic(parameters.get("features"))
        room = room_in(parse_memory(self.memory))
        if may_be_exact and takes_exact(parameters, source, room, has_posterior=self.keeps_posterior):
            self._taken = {"features": "exact"}
        if is_batch and self._keeps_rows:
            raise ValueError(
                "features='exact' keeps every row, and partial_fit keeps sums only: use fit, or another "
                "value of features."
            )
        self._check_sizes()
        if is_automatic(parameters.get("gamma")) and not self._keeps_rows:
            self._taken = {"gamma": gamma_of_sample(self, source, groups, self._seed)}
        if is_batch:
            self._taken = self._taken | words_of_a_batch(self._settings(), source.n_rows)
        if is_automatic(parameters["n_components"]) and takes_landmarks(self._settings()):
            landmarks_within(source.n_rows, self._room_for(source, n_targets))
        if is_plain and not is_batch and takes_wide(self._given(), self._settings(), source):
            self._taken = {**self._taken, "solver": WideRidgeSolver.name}
        if is_automatic(self.precision) and self._may_round:
            self._taken = {**self._taken, "precision": automatic_precision(self._device)}

    def _room_for(self, source: Source, n_targets: int | None = None) -> Callable[[int], None]:
        """Return a function that takes a number of components and raises MemoryBudgetError if it does not fit."""
        t = n_targets or self._codec_type.of(source.labels()).n_targets

        def check(n: int) -> None:
            self._taken = {**self._taken, "n_components": n}
            recipe = self._recipe()
            chunk_rows_within(largest_job(recipe, source, t), recipe.budget)

        return check

    @property
    def _may_round(self) -> bool:
        """Whether features are summed up, so that they may be rounded first; other solvers take them as they are."""
        parameters = self._given()
        return (
            not self._keeps_rows
            and parameters.get("solver") is None
            and parameters.get("n_principal") is None
        )

    @property
    def _keeps_rows(self) -> bool:
        """Whether the fit keeps every row, with features="exact"."""
        features = self._given().get("features")
        return isinstance(features, str) and features == "exact"

    def _parts(self, n_columns: int) -> list[FeatureBlock]:
        return parts_of(self._settings(), self._named_blocks(), n_columns)

    def _named_blocks(self) -> Blocks | None:
        """Return blocks by places if columns were given by name."""
        return named_blocks(self.blocks, getattr(self, "feature_names_in_", None))

    def _settings(self) -> FeatureSettings:
        """Return the settings of the features of one kernel, from the parameters that this estimator has."""
        parameters = self._given()
        if parameters.get("features") == "exact" and parameters.get("gamma") == "auto":
            parameters["gamma"] = "mean"  # where the search for gamma starts
        return FeatureSettings(
            **{
                setting.name: parameters[setting.name]
                for setting in fields(FeatureSettings)
                if setting.name in parameters
            }
        )

    def _check_sizes(self) -> None:
        parameters = self._given()
        check_features(parameters.get("features", "auto"))
        if not is_automatic(parameters["n_components"]):
            check_positive(parameters["n_components"], "n_components", integer=True)
        if not is_automatic(parameters["n_terms"]):
            check_positive(parameters["n_terms"], "n_terms", integer=True)
        if parameters.get("map") is not None:
            check_map(parameters["map"])

    # --- from parameters to a recipe

    def _check_parameters(self) -> None:
        """Refuse parameters that are out of range or, for a fitted model, do not fit its columns."""
        self._recipe()
        if hasattr(self, "n_features_in_"):
            for part in self._parts(self.n_features_in_):
                as_kernel(part.settings.kernel, part.settings.gamma)
            if (weights := given_weights(self._given())) is not None:
                checked_weights(weights, self.n_features_in_, "bin", "bin_weights")

    def _recipe(self) -> Recipe:
        """Return the settings of a fit."""
        parameters = self._given()
        return checked_recipe(
            parameters, estimator=type(self).__name__, design=self._design(), codec=self._codec_type,
            objective=self._objective(), alpha=parameters["alpha"], selection=parameters["selection"],
            n_principal=parameters.get("n_principal"), normalize=parameters["normalize"],
            precision=parameters["precision"], device=self._device, memory=self.memory, seed=self._fit_seed,
        )  # fmt: skip

    def _design(self) -> Design:
        self._check_sizes()
        return PlainDesign(self._settings(), self._named_blocks(), self.n_principal is not None)

    def _objective(self) -> Objective:
        loss = self._checked_loss()
        if self._keeps_rows:
            return self._exact_objective(loss)
        spread = getattr(self, "_spread", None)
        if spread is not None and loss != "hinge":
            loss = Observed(named(loss, spread) if isinstance(loss, str) else loss)
        parameters = self._given()
        return PenalisedLoss(
            loss, checked_alpha(parameters["alpha"]), self.n_principal, parameters.get("solver")
        )

    def _exact_objective(self, loss: str | Loss) -> ExactObjective:
        parameters = self._given()
        return ExactObjective(
            loss, checked_alpha(parameters["alpha"]), chooses_gamma=is_automatic(parameters["gamma"]),
            is_settled="alpha" in getattr(self, "chosen_", {}),
        )  # fmt: skip

    def _checked_loss(self) -> str | Loss:
        loss: str | Loss = self._given()["loss"]
        if not isinstance(loss, Loss):
            check_choice(loss, "loss", self._losses)
        elif loss.name not in self._losses and loss.domain != self._domain:
            raise ValueError(
                f"{type(self).__name__} takes the losses {', '.join(self._losses)}, and loss objects of domain "
                f"{self._domain!r}; got {loss!r}."
            )
        return loss
