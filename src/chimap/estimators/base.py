"""How a linear model over explicit features is fitted: what classifier and regressor share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap._frames import is_frame, names_of
from chimap._threads import threads
from chimap._validation import DataError, MemoryBudgetError, check_choice, check_positive, parse_memory
from chimap.data import ArraySource, DaskSource, Source, matched, open_source
from chimap.data.formats.dask import is_collection
from chimap.data.formats.frames import FrameSource, frame_rows
from chimap.data.labelling import labelled
from chimap.data.labels import plain_labels
from chimap.data.layouts import opener_of
from chimap.data.table import named_blocks
from chimap.data.targets import task_words
from chimap.engines import (
    Progress,
    RichProgress,
    Stopwatch,
    chunk_rows_within,
    current_engine,
    engine_of,
)
from chimap.engines.compilation import compilation
from chimap.estimators.exact_fit import fit_exactly
from chimap.estimators.gamma_choice import gamma_of_sample
from chimap.estimators.linear_model import LinearModel
from chimap.estimators.prediction import bind_names
from chimap.estimators.race_choice import race_of, weigh_bins
from chimap.features.additive import check_map
from chimap.features.base import FeatureSettings
from chimap.features.families import check_features
from chimap.features.weighted import checked_bin_weights
from chimap.fit.automatic import (
    is_automatic,
    landmarks_within,
    most_components,
    takes_components,
    takes_exact,
    takes_landmarks,
    words_of_a_batch,
)
from chimap.fit.batches import Batches
from chimap.fit.checkpoint import Checkpoint
from chimap.fit.design import Design, Part, PlainDesign, parts_of
from chimap.fit.fit import check_request, fit
from chimap.fit.holding_out import checked_groups
from chimap.fit.plan import largest_job
from chimap.fit.recipe import Objective, Recipe, checked_alpha, checked_recipe, given_weights
from chimap.fit.result import FitResult
from chimap.fit.solving import PenalisedLoss
from chimap.fit.targets import Codec, is_matrix
from chimap.fit.weights import checked_weights, with_weights, without_absent
from chimap.losses import Loss, Observed, named
from chimap.selection import SelectionResult

_SIGNED = (
    "auto",
    "linear",
    "gaussian",
)  # kernels that take entries below 0; the race leaves out those that do not


class HistogramModel(LinearModel):
    """A linear model fitted to explicit features of a histogram kernel. See ``HistogramClassifier`` for the parameters.

    A subclass says what its targets are, and may have a design of its features or an objective of its own.
    """

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        features: Any = "auto",
        gamma: Any = "mean",
        n_components: Any = "auto",
        n_terms: Any = "auto",
        map: Any = None,
        sampling: str = "auto",
        form: str = "pair",
        landmarks: Any = "kmeans",
        normalize: str | None = None,
        bin_weights: Any = "auto",
        blocks: Any = None,
        n_principal: Any = None,
        loss: Any = "square",
        class_weight: Any = None,
        threshold: Any = None,
        alpha: Any = "auto",
        selection: Any = "auto",
        scoring: Any = None,
        race_seconds: float | None = None,
        memory: str | int = "1GiB",
        precision: str = "float32",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.features = features
        self.gamma = gamma
        self.n_components = n_components
        self.n_terms = n_terms
        self.map = map
        self.sampling = sampling
        self.form = form
        self.landmarks = landmarks
        self.normalize = normalize
        self.bin_weights = bin_weights
        self.blocks = blocks
        self.n_principal = n_principal
        self.loss = loss
        self.class_weight = class_weight
        self.threshold = threshold
        self.alpha = alpha
        self.selection = selection
        self.scoring = scoring
        self.race_seconds = race_seconds
        self.memory = memory
        self.precision = precision
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit on rows X (n, bins), dense or sparse, and labels or targets y (n,); returns self.

        y (n, t): several tasks, of labels 0 and 1 for a classifier, or several targets of a regressor. An entry that is
        missing (NaN, None, masked) is left out of that task alone; a row without any is left out.

        sample_weight (n,): how often each row counts, in every sum, in scores of rows held out, and in the sample that
        features depend on; a row of weight 2 is two rows, one of weight 0 none. Of features that depend on no sample an
        integer weight and repeated rows give the same model.
        groups (n,): rows of one group are held out together, where rows are held out to choose.

        X may be a data frame of pandas or polars or an Arrow table, a Dask array or data frame, or an object that
        ``open_source`` takes, such as AnnData; the labels y may be the name of a column of these. A column that a data
        frame wrote as its index (``Unnamed: 0``) is set aside. Dask collections are worked on by the cluster of
        the current client, if there is one.
        """
        if is_collection(X):
            return self.fit_source(
                DaskSource(X, y), engine=current_engine(), groups=groups, sample_weight=sample_weight
            )
        if (opener := opener_of(X)) is not None:
            return self.fit_source(opener(X, y), groups=groups, sample_weight=sample_weight)
        if is_frame(X) and task_words(X, y) is not None:
            source = open_source(X, y)
            return self.fit_source(source, groups=groups, sample_weight=sample_weight)
        if isinstance(y, str) and is_frame(X):
            return self.fit_source(FrameSource(X, y), groups=groups, sample_weight=sample_weight)
        X, y = frame_rows(X, y)
        y = plain_labels(y)
        names = tuple(map(str, names_of(y))) if is_matrix(y) and is_frame(y) else None
        if is_matrix(y):
            X = validate_data(self, X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        else:
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, **self._y_checks
            )
        named = ArraySource(X, y, column_names=getattr(self, "feature_names_in_", None))
        named.task_names = names
        return self.fit_source(named, groups=groups, sample_weight=sample_weight)

    def fit_source(
        self,
        source: Source,
        progress: Progress | None = None,
        *,
        unlabelled: Source | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
        engine: Any = "local",
        groups: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit on a source, read in chunks under the ``memory`` budget; returns self.

        It is read once; a second time with ``n_principal``, whose components take ``unlabelled`` rows too (transductive
        PCA); and again at each pass of a loss other than the square if its features do not fit the budget.

        checkpoint: a file that says every minute where the fit stands. If it is there the fit goes on from it, with the
        same result as if it had not been interrupted; it is removed at the end (a ``Checkpoint`` is not).
        engine: "local"; "dask", for workers on this machine; or a client of ``dask.distributed``.
        groups: of the rows that have labels. sample_weight: of all rows of the source, in place of its ``weights``.

        Raises DataError for bad rows or labels (named by row) and for the checkpoint of another fit, MemoryBudgetError
        for a budget that is too small.
        """
        if not source.has_labels:
            raise DataError(
                f"{source.name} has no labels; pass labels=... to open_source (--labels on the command line)."
            )
        weights = source.weights if sample_weight is None else sample_weight
        if weights is not None:
            source = with_weights(source, checked_weights(weights, source.n_rows))
        source = labelled(source)
        self._look_for_gaps(source)
        self._has_objects = source.has_object_labels
        source, groups = self._weighed(source, groups)
        bind_names(self, source)
        self.reading_ = source.reading
        if unlabelled is not None:
            unlabelled = matched(unlabelled, source.column_names, source.n_features, type(self).__name__)
        progress = progress or (RichProgress() if self.verbose else Progress())
        is_local = isinstance(engine, str) and engine == "local"
        is_plain = checkpoint is None and unlabelled is None and is_local
        check_request(
            self._objective(), self._device, self._given().get("n_principal"),
            is_local=is_local, has_checkpoint=checkpoint is not None, has_unlabelled=unlabelled is not None,
        )  # fmt: skip
        self._race(source, groups, progress, is_plain)
        self._settle(source, groups, is_plain=is_plain)
        try:
            self._fit_settled(source, progress, unlabelled, checkpoint, engine, groups)
        except MemoryBudgetError as error:
            n = self._given()["n_components"]
            if self._keeps_rows or is_automatic(n) or not takes_components(self._settings()):
                raise
            most = most_components(n, self._room_for(source))
            advice = f" At most about n_components={most} fits it." if most else ""
            raise MemoryBudgetError(f"{error}{advice}") from None
        if hasattr(self, "race_"):
            self.stage_seconds_ = {"race": self.race_.seconds, **self.stage_seconds_}
        return self

    def _fit_settled(
        self, source: Source, progress: Progress, unlabelled: Any, checkpoint: Any, engine: Any, groups: Any
    ) -> None:
        if self._keeps_rows:
            if checkpoint is not None or unlabelled is not None:
                raise ValueError("features='exact' has no checkpoint and no unlabelled rows: leave them out.")
            self._batches = None
            fit_exactly(self, source, groups, engine, progress)
            self._folded()
            return
        if groups is not None and not self._holds_out_groups:
            raise ValueError(
                f"{type(self).__name__} tunes widths on rows of its own, without groups: leave them out."
            )
        given = Checkpoint(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint
        clock = Stopwatch()
        with threads(self.n_jobs), progress, engine_of(engine) as running, compilation(clock, progress):
            result = fit(
                self._recipe(),
                source,
                running,
                progress,
                unlabelled=unlabelled,
                checkpoint=given,
                clock=clock,
                groups=groups,
            )
        self._batches = None
        self._adopt(result)
        self.stage_seconds_ = result.seconds
        self._folded()  # kept now, so that a prediction changes nothing
        if given is not None and given is not checkpoint:
            given.remove()

    def _weighed(self, source: Source, groups: Any, is_batch: bool = False) -> tuple[Source, Any]:
        """The rows that count, with weights that have those of their classes in them, and their groups."""
        if groups is not None:
            groups = checked_groups(groups, source.n_rows)
        source, places = without_absent(source)
        groups = groups if places is None or groups is None else groups[places]
        weights = self._class_weighed(source.labels(), source.weights, is_batch)
        return (source if weights is source.weights else with_weights(source, weights)), groups

    def _look_for_gaps(self, source: Source) -> None:
        """Note whether entries of a matrix of targets are missing. Raises DataError for a matrix that is not taken."""
        y = source.labels()
        assert y is not None
        if y.ndim == 2 and not self._takes_tasks:
            raise DataError(
                f"{type(self).__name__} takes one label a row, shape ({source.n_rows},); got {y.shape}. Fit a model a "
                "column, or use HistogramClassifier or HistogramRegressor, which take several tasks at once."
            )
        self.task_names_ = None if source.task_names is None else np.array(source.task_names)
        has_gaps = y.ndim == 2 and bool(np.isnan(y).any())
        self._spread = float(np.sqrt(np.nanvar(y, axis=0).sum())) or 1.0 if has_gaps else None

    def _race(self, source: Source, groups: Any, progress: Progress, keeps_rows: bool) -> None:
        """Choose the settings that kernel="auto" and bin_weights leave open, if they are asked for."""
        self.chosen_: dict[str, Any] = {}
        self.__dict__.pop("race_", None)
        if not hasattr(self, "bin_weights"):
            return
        if self.race_seconds is not None:
            check_positive(self.race_seconds, "race_seconds")
        if isinstance(self.bin_weights, str):
            check_choice(self.bin_weights, "bin_weights", ("auto", "learn"))
        elif self.bin_weights is not None:
            checked_bin_weights(self.bin_weights, source.n_features)
        with threads(self.n_jobs), progress:
            if self._races and is_automatic(self.kernel):
                self.race_, self.chosen_ = race_of(self, source, groups, progress, keeps_rows)
            elif isinstance(self.bin_weights, str) and self.bin_weights == "learn":
                self.race_, self.chosen_ = weigh_bins(self, source, groups, progress)

    def _settle(
        self,
        source: Source,
        groups: Any = None,
        *,
        is_plain: bool = True,
        is_batch: bool = False,
        n_targets: int | None = None,
    ) -> None:
        """Decide what "auto" stands for, for the rows of a source.

        is_plain: False where something is asked of the fit that the exact machine does not have. is_batch: whether more
        rows will come. n_targets: where the source has no labels.
        """
        self._taken: dict[str, Any] = {}
        given = self._given()
        is_open = is_plain and not is_batch and is_automatic(given.get("features"))
        if is_open and takes_exact(given, source, parse_memory(self.memory)):
            self._taken = {"features": "exact"}
        self._check_sizes()
        if is_automatic(given.get("gamma")) and not self._keeps_rows:
            seed = int(check_random_state(self.random_state).randint(2**31))
            self._taken = {"gamma": gamma_of_sample(self, source, groups, seed)}
        if is_batch:
            self._taken |= words_of_a_batch(self._settings(), source.n_rows)
        if is_automatic(given["n_components"]) and takes_landmarks(self._settings()):
            landmarks_within(source.n_rows, self._room_for(source, n_targets))

    def _room_for(self, source: Source, n_targets: int | None = None) -> Callable[[int], None]:
        """What takes a number of components, and raises MemoryBudgetError where it does not fit."""
        t = n_targets or self._codec_type.of(source.labels()).n_targets

        def check(n: int) -> None:
            self._taken = {**self._taken, "n_components": n}
            recipe = self._recipe()
            chunk_rows_within(largest_job(recipe, source, t), recipe.budget)

        return check

    @property
    def _keeps_rows(self) -> bool:
        features = self._given().get("features")
        return isinstance(features, str) and features == "exact"

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        batches: Batches | None = getattr(self, "_batches", None)
        self._spread = None
        X, y = validate_data(
            self, X, y, reset=batches is None, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
            **self._y_checks,
        )  # fmt: skip
        rows: Source = ArraySource(X, y)
        if sample_weight is not None:
            rows = with_weights(rows, checked_weights(sample_weight, rows.n_rows))
        source, _ = self._weighed(rows, None, is_batch=True)
        with threads(self.n_jobs):
            if batches is None:
                self._race(source, None, Progress(), False)
                self._settle(source, None, is_batch=True)
                batches = Batches(self._recipe(), self._codec, source)
            batches.add(source)
        self._batches, self._stale = batches, True
        self.features_, self.kernel_ = batches.known.features, batches.known.features.kernel_
        return self

    def _refresh(self) -> None:
        """Solve for what ``partial_fit`` has added since the last time."""
        check_is_fitted(self, "features_")
        if self._stale and self._batches is not None:
            with threads(self.n_jobs):
                self._adopt(self._batches.result())

    def _given(self) -> dict[str, Any]:
        """The parameters, with those that the race has chosen, and what "auto" stands for, in their place."""
        given: dict[str, Any] = self.get_params(deep=False)
        return given | getattr(self, "chosen_", {}) | getattr(self, "_taken", {})

    # --- from parameters to a recipe, and from its result to attributes

    def _recipe(self) -> Recipe:
        given = self._given()
        return checked_recipe(
            given, estimator=type(self).__name__, design=self._design(), codec=self._codec_type,
            objective=self._objective(), alpha=given["alpha"], selection=given["selection"],
            n_principal=given.get("n_principal"), normalize=given["normalize"], precision=self.precision,
            device=self._device, memory=self.memory, random_state=self.random_state,
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.kernel
        takes_signs = given in _SIGNED if isinstance(given, str) else getattr(given, "is_signed", False)
        tags.input_tags.positive_only = not takes_signs
        return tags

    def _design(self) -> Design:
        self._check_sizes()
        return PlainDesign(self._settings(), self._named_blocks(), self.n_principal is not None)

    def _objective(self) -> Objective:
        loss = self._checked_loss()
        spread = getattr(self, "_spread", None)
        if spread is not None and loss != "hinge":
            loss = Observed(named(loss, spread) if isinstance(loss, str) else loss)
        return PenalisedLoss(loss, checked_alpha(self._given()["alpha"]), self.n_principal)

    def _adopt(self, result: FitResult) -> None:
        known, learned = result.known, result.learned
        self.n_features_in_ = result.n_features_in
        self._seed, self._codec = known.seed, known.codec
        self._take_codec(known.codec)
        self.features_, self.kernel_ = known.features, known.features.kernel_
        self._coef, self._intercept, self.alpha_ = result.coef, result.intercept, learned.solution.alpha
        loss = learned.loss
        self.selection_, self.loss_ = learned.selection, loss.loss if isinstance(loss, Observed) else loss
        self.n_passes_, self.n_rows_ = learned.n_passes, learned.n_rows
        self.bin_weights_ = given_weights(self._given())
        if result.shift is not None:
            self.shift_ = result.shift
        for name, value in (known.attributes | learned.attributes).items():
            setattr(self, name, value)
        self._take_held_out(result.held_out)
        self._posterior = learned.posterior() if self._keeps_posterior else None
        self._stale = False

    @property
    def _keeps_posterior(self) -> bool:
        return self.keeps_posterior and self._given().get("n_principal") is None

    def _parts(self, n_columns: int) -> list[Part]:
        return parts_of(self._settings(), self._named_blocks(), n_columns)

    def _named_blocks(self) -> Any:
        """Blocks by places, where columns were given by name."""
        return named_blocks(self.blocks, getattr(self, "feature_names_in_", None))

    def _settings(self) -> FeatureSettings:
        """Of the features of one kernel, from the parameters that this estimator has."""
        given = self._given()
        if given.get("features") == "exact" and given.get("gamma") == "auto":
            given["gamma"] = "mean"  # which the choice starts from
        return FeatureSettings(
            **{one.name: given[one.name] for one in fields(FeatureSettings) if one.name in given}
        )

    def _check_sizes(self) -> None:
        given = self._given()
        check_features(given.get("features", "auto"))
        if not is_automatic(given["n_components"]):
            check_positive(given["n_components"], "n_components", integer=True)
        if not is_automatic(given["n_terms"]):
            check_positive(given["n_terms"], "n_terms", integer=True)
        if given.get("map") is not None:
            check_map(given["map"])

    def _checked_loss(self) -> str | Loss:
        loss: str | Loss = self._given()["loss"]
        if not isinstance(loss, Loss):
            check_choice(loss, "loss", self._losses)
        elif loss.name not in self._losses and loss.domain != self._domain:
            raise ValueError(
                f"{type(self).__name__} takes losses {', '.join(self._losses)}, and others of domain "
                f"{self._domain!r}; got {loss!r}."
            )
        return loss

    _holds_out_groups: ClassVar[bool] = True
    _has_objects: bool  # whether labels came as Python objects
    _takes_tasks: ClassVar[bool] = False  # whether targets may be a matrix
    task_names_: np.ndarray | None
    _spread: float | None  # of targets with missing entries; None where all are there
    _races: ClassVar[bool] = True  # whether kernel="auto" is a choice among machines
    stage_seconds_: dict[str, float]
    _batches: Batches | None
    _stale: bool
    _seed: int
    loss_: Loss | None
    selection_: SelectionResult | None
    _y_checks: ClassVar[dict[str, Any]]
    _losses: ClassVar[tuple[str, ...]]
    _domain: ClassVar[str]  # of losses that may be given as objects
    _codec_type: ClassVar[type[Codec]]
    _codec: Codec
    _take_codec: Any
    _class_weighed: Any
    _take_held_out: Any
    keeps_posterior: ClassVar[bool]
