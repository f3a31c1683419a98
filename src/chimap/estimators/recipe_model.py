"""From the parameters of an estimator to a recipe, and from the result of a fit, or of batches, to its attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap._errors import InputError
from chimap._threads import threads
from chimap._types import ArrayLike, Blocks, MatrixLike, Parameters, Sometimes
from chimap._validation import DataError, check_choice, check_positive, checked_weights
from chimap.data import Source
from chimap.data.doubts import Units, first_look
from chimap.data.table import named_blocks
from chimap.engines import Progress
from chimap.estimators.gamma_choice import gamma_of_sample
from chimap.estimators.in_batches import source_of_batch
from chimap.estimators.internals import asked_of, fit_of
from chimap.estimators.linear_model import LinearModel
from chimap.estimators.targets import Encoding
from chimap.fit.automatic import is_automatic
from chimap.fit.batches import Batches, batches_of
from chimap.fit.checkpoint import Choice
from chimap.fit.design import FeatureBlock, PlainDesign, parts_of
from chimap.fit.designing import Design
from chimap.fit.holding_out import checked_groups
from chimap.fit.recipe import Objective, Recipe, checked_alpha, checked_recipe, given_weights
from chimap.fit.result import FitResult
from chimap.fit.settling import Circumstances, check_sizes, feature_settings, keeps_rows, settled
from chimap.fit.solving import PenalisedLoss
from chimap.fit.targets import Codec, check_tasks
from chimap.fit.weights import with_weights, without_absent
from chimap.kernels import as_kernel
from chimap.losses import Loss, Observed, named
from chimap.race.bins import check_bin_weights, weigh_bins
from chimap.race.choose import race
from chimap.race.trials import RaceResult
from chimap.selection.base import OpenSettings
from chimap.solvers.kernel_matrix import KernelSolver

if TYPE_CHECKING:
    from chimap.selection import LearningCurve, SelectionResult


class RecipeModel(Encoding, LinearModel):
    """A linear model whose fit is described by a recipe.

    Parameters may be "auto". The race fills ``chosen_`` (kernel, features, weights of bins); then the sizes of the rows
    decide the rest (``fit.settling``), which the model keeps as ``_taken``. A subclass may define its own design of the
    features or its own objective.
    """

    _takes_tasks: ClassVar[bool] = False  # whether targets may be a matrix
    _races: ClassVar[bool] = True  # whether kernel="auto" races machines
    _losses: ClassVar[tuple[str, ...]]
    _domain: ClassVar[str]  # domain of the losses that may be given as objects
    _keeps_posterior: ClassVar[bool]  # whether the model keeps the posterior of its weights, if it has one
    kernel: Any
    normalize: Any
    bin_weights: Any
    blocks: Any
    memory: str | int
    n_jobs: int | None
    time_limit: Sometimes[float | None]
    random_state: Any
    n_principal: Any
    task_names_: Sometimes[np.ndarray | None]
    chosen_: Sometimes[Parameters]  # what the race chose
    race_: Sometimes[RaceResult]
    learning_curve_: Sometimes[LearningCurve | None]
    block_rows_: Sometimes[np.ndarray]  # rows of each block of an exact machine that was solved by blocks
    held_out_: Sometimes[np.ndarray]  # outputs of exact machines for rows they have not seen
    row_numbers_: Sometimes[np.ndarray]  # places of the rows that an exact machine keeps
    n_unlearned_: Sometimes[int]  # rows that a time limit, or the usual amount of work, left out
    loss_: Loss | None
    selection_: SelectionResult | None
    _taken: Sometimes[Parameters]  # what "auto" stood for, given the rows
    _has_gaps: bool = False  # whether several targets need sums of their own, for gaps or weights of classes
    _seed: int
    _ends_at: float | None = None  # when a fit with a time limit ends, by time.monotonic
    _stale: bool = False  # whether batches have arrived since the weights were solved for
    _batches: Batches | None

    # --- rows in batches

    @property
    def _codec_of_batches(self) -> Codec | None:
        """The codec of the batches so far; None before the first."""
        return None if getattr(self, "_batches", None) is None else self._codec

    def _partial_fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, to_learn: ArrayLike | None
    ) -> Self:
        """Add a batch to the sums; the first one settles the features. to_learn: see ``checked_labels``."""
        if to_learn is not None:
            self._learn_targets(to_learn)
        batches: Batches | None = getattr(self, "_batches", None)
        self._has_gaps = False
        rows = source_of_batch(self, X, y, sample_weight, self._y_checks, batches is None)
        source, _ = self._weighed(rows, None, is_batch=True)
        with threads(self.n_jobs):
            if batches is None:
                self._ends_at = None  # of an earlier fit
                self._draw_seed()
                self._race(source, None, Progress(), False)
                self._settle(source, None, is_batch=True)
                batches = batches_of(self._recipe(), self._codec, source)
                is_share = self._given().get("normalize") == "l1"
                self.units_ = None if is_share else Units.of(first_look(source)[0])
            batches.add(source)
        self._batches, self._stale = batches, True
        self.features_, self.kernel_ = batches.known.features, batches.known.features.kernel_
        return self

    def _refresh(self) -> None:
        """Solve for the rows that ``partial_fit`` has added since the last solution."""
        if not hasattr(self, "features_"):
            # It raises the error. It takes longer than predicting a row, so it is not called otherwise.
            check_is_fitted(self, "features_")
        if self._stale and self._batches is not None:
            with threads(self.n_jobs):
                self._adopt(self._batches.result())

    def _weighed(
        self, source: Source, groups: ArrayLike | None, is_batch: bool = False
    ) -> tuple[Source, np.ndarray | None]:
        """Return the rows with weight above 0, with class weights included in their weights, and their groups."""
        if groups is not None:
            groups = checked_groups(groups, source.n_rows)
        source, places = without_absent(source)
        groups = groups if places is None or groups is None else groups[places]
        y = source.labels()
        assert y is not None
        weights = self._class_weighed(y, source.weights, is_batch)
        return (source if weights is source.weights else with_weights(source, weights, source.counts)), groups

    # --- values of "auto"

    def _given(self) -> Parameters:
        """Return the parameters, overlaid with what the race has chosen and with the values of "auto"."""
        return self._raced() | getattr(self, "_taken", {})

    def _raced(self) -> Parameters:
        """Return the parameters, overlaid with what the race has chosen."""
        parameters: Parameters = self.get_params(deep=False)
        return parameters | getattr(self, "chosen_", {})

    def _draw_seed(self) -> None:
        """Draw the seed of a fit: once, as a ``RandomState`` gives another number at each call."""
        self._seed = int(check_random_state(self.random_state).randint(2**31))

    @property
    def _fit_seed(self) -> int:
        """The seed of the fit; before one, what ``random_state`` would give."""
        if hasattr(self, "_seed"):
            return self._seed
        return int(check_random_state(self.random_state).randint(2**31))

    def _race(self, source: Source, groups: np.ndarray | None, progress: Progress, may_keep: bool) -> None:
        """Choose the settings that kernel="auto" and bin_weights leave open."""
        self.chosen_ = {}
        self.__dict__.pop("race_", None)
        self.__dict__.pop("_taken", None)
        if not hasattr(self, "bin_weights"):
            return
        if self.time_limit is not None:
            check_positive(self.time_limit, "time_limit")
        check_bin_weights(self.bin_weights, source.n_features)
        with threads(self.n_jobs), progress:
            is_raced = is_automatic(self.kernel) or not isinstance(self.normalize, str | None)
            if self._races and is_raced:
                self.race_, recipe = race(asked_of(self), source, groups, fit_of(self), progress, may_keep)
                self.chosen_ = recipe.choice
            elif isinstance(self.bin_weights, str) and self.bin_weights == "learn":
                result, recipe = weigh_bins(asked_of(self), source, groups, fit_of(self), progress)
                self.chosen_ = recipe.choice
                if result is not None:
                    self.race_ = result

    def _take_choice(self, choice: Choice) -> None:
        """Take the seed, and what a race chose, of a fit that is resumed."""
        self._seed, self.chosen_ = choice.seed, choice.chosen
        self.__dict__.pop("race_", None)
        self.__dict__.pop("_taken", None)
        if isinstance(choice.race, RaceResult):
            self.race_ = choice.race

    def _settle(
        self,
        source: Source,
        groups: np.ndarray | None = None,
        *,
        is_plain: bool = True,
        is_resumable: bool = False,
        is_batch: bool = False,
    ) -> None:
        """Keep what "auto" stands for, for the rows of a source.

        is_plain: False if the fit has options that exact machines do not support. is_resumable: whether a checkpoint is
        written. is_batch: whether more rows follow.
        """

        def recipe(given: Parameters) -> Recipe:
            return self._recipe(given) if groups is None else self._recipe(given).of_groups()

        about = Circumstances(
            recipe, lambda: gamma_of_sample(self, source, groups, self._fit_seed),
            self._codec.n_targets if is_batch else self._n_targets_in(source), self._keeps_posterior,
            is_plain, is_resumable, is_batch, keeps_rows(self.get_params(deep=False)),
        )  # fmt: skip
        self._taken = settled(self._raced(), source, about)

    def _look_for_gaps(self, source: Source) -> None:
        """Note whether the targets of a matrix need separate sums: if entries are missing, or classes have weights.

        Raise DataError for a matrix if the estimator takes one target only, and for a task without labels.
        """
        y = source.labels()
        assert y is not None
        if y.ndim == 2 and not self._takes_tasks:
            raise DataError(
                f"{type(self).__name__} takes one label per row, shape ({source.n_rows},); got {y.shape}. Fit one "
                "model per column, or use HistogramClassifier or HistogramRegressor, which take several tasks at once."
            )
        check_tasks(source)
        self.task_names_ = None if source.task_names is None else np.array(source.task_names)
        is_weighed = getattr(self, "class_weight", None) is not None
        self._has_gaps = y.ndim == 2 and (is_weighed or bool(np.isnan(y).any()))

    def _n_targets_in(self, source: Source) -> int:
        """Return the number of targets that the labels of a source become; 1 for a source without labels."""
        y = source.labels()
        return 1 if y is None else self._codec_type.of(y).n_targets

    # --- from parameters to a recipe

    def _parts(self, n_columns: int) -> list[FeatureBlock]:
        return parts_of(feature_settings(self._given()), self._named_blocks(), n_columns)

    def _named_blocks(self) -> Blocks | None:
        """Return blocks by places if columns were given by name."""
        return named_blocks(self.blocks, getattr(self, "feature_names_in_", None))

    def _check_parameters(self) -> None:
        """Refuse parameters that are out of range or, for a fitted model, do not fit its columns."""
        self._recipe()
        if hasattr(self, "n_features_in_"):
            for part in self._parts(self.n_features_in_):
                as_kernel(part.settings.kernel, part.settings.gamma)
            if (weights := given_weights(self._given())) is not None:
                checked_weights(weights, self.n_features_in_, "bin", "bin_weights")

    def _recipe(self, given: Parameters | None = None) -> Recipe:
        """Return the settings of a fit with these parameters; None takes those of the model."""
        given = self._given() if given is None else given
        return checked_recipe(
            given, estimator=type(self).__name__, design=self._design(given),
            codec=self._codec_type.of_loss(given["loss"]),
            objective=self._objective(given), alpha=given["alpha"], selection=given["selection"],
            n_principal=given.get("n_principal"), normalize=given["normalize"], precision=given["precision"],
            device=self._device, memory=self.memory, seed=self._fit_seed,
        )  # fmt: skip

    def _design(self, given: Parameters) -> Design:
        check_sizes(given)
        return PlainDesign(feature_settings(given), self._named_blocks(), self.n_principal is not None)

    def _objective(self, given: Parameters) -> Objective:
        loss, alpha = self._checked_loss(given), checked_alpha(given["alpha"])
        if keeps_rows(given):
            has_raced = "alpha" in getattr(self, "chosen_", {})
            open = OpenSettings(alpha, is_automatic(given["gamma"]), is_settled=has_raced)
            name = given.get("solver") or KernelSolver.name
            return PenalisedLoss(loss, open, solver_name=name, ends_at=self._ends_at)
        if self._has_gaps and loss != "hinge":  # the deviation of each target is its unit, see ``Codec``
            loss = Observed(named(loss, 1.0) if isinstance(loss, str) else loss)
        return PenalisedLoss(loss, OpenSettings(alpha), self.n_principal, given.get("solver"))

    def _checked_loss(self, given: Parameters) -> str | Loss:
        loss: str | Loss = given["loss"]
        if not isinstance(loss, Loss):
            check_choice(loss, "loss", self._losses)
        elif loss.name not in self._losses and loss.domain != self._domain:
            raise InputError(
                f"{type(self).__name__} takes the losses {', '.join(self._losses)}, and loss objects of domain "
                f"{self._domain!r}; got {loss!r}."
            )
        return loss

    # --- from a result to attributes

    def _adopt(self, result: FitResult) -> None:
        """Set the learned attributes from a result."""
        fitted, learned = result.known, result.learned
        self.n_features_in_ = result.n_features_in
        self._seed, self._codec = fitted.seed, fitted.codec
        self._take_codec(fitted.codec)
        self.features_, self.kernel_ = fitted.features, fitted.features.kernel_
        self._coef, self._intercept, self.alpha_ = result.coef, result.intercept, learned.solution.alpha
        loss = learned.loss
        self.selection_, self.loss_ = learned.selection, loss.loss if isinstance(loss, Observed) else loss
        self.n_passes_, self.n_rows_, self.learning_curve_ = learned.n_passes, learned.n_rows, result.curve
        self.bin_weights_ = given_weights(self._given())
        if result.shift is not None:
            self.shift_ = result.shift
        for name in ("n_unlearned_", "block_rows_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        for name, value in (learned.attributes | fitted.attributes).items():
            setattr(self, name, value)
        self._take_held_out(result.held_out)
        has_posterior = self._keeps_posterior and self._given().get("n_principal") is None
        self._posterior = learned.posterior() if has_posterior else None
        self._stale = False
