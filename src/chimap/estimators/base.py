"""How a linear model on explicit features is fitted: what classifier and regressor share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier

from chimap._frames import is_collection
from chimap._memory import parse_memory
from chimap._messages import Message
from chimap._threads import suited, threads
from chimap._types import (
    ArrayLike,
    Blocks,
    ClassWeight,
    MatrixLike,
    Parameters,
    RandomState,
    Rows,
    Scoring,
    Sometimes,
)
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import DaskSource, Source, matched
from chimap.data.catalogue import check_rows_order
from chimap.data.doubts import Units, doubts_at_fit, doubts_of_groups, first_look, say
from chimap.data.labelling import labelled
from chimap.data.table import check_order
from chimap.engines import Progress, RichProgress, Stopwatch, current_engine, engine_of
from chimap.engines.compilation import compilation
from chimap.estimators.beyond_limit import asks_for_rival, rival_of
from chimap.estimators.recipe_model import RecipeModel
from chimap.estimators.rows_given import source_of
from chimap.estimators.rows_to_predict import bind_columns
from chimap.features.additive.base import AdditiveMap
from chimap.features.base import Features
from chimap.fit.checkpoint import Checkpoint, Choice
from chimap.fit.collecting import Request
from chimap.fit.fit import check_request, fit
from chimap.fit.settling import advice_on_components
from chimap.fit.weights import checked_sample_weight, counts_in, with_weights
from chimap.kernels import Kernel
from chimap.losses import Loss
from chimap.race.rows import scoring_of

if TYPE_CHECKING:
    from distributed import Client
    from sklearn.model_selection import BaseCrossValidator

# Kernels that take negative entries; for "auto", the race drops the kernels that do not.
_LOOK_SHARE = (
    1 / 32
)  # of the memory of a fit, for rows that are looked at first, and for what is made of them
_SIGNED = ("auto", "linear", "gaussian")


class HistogramModel(RecipeModel):
    """A linear model fitted to explicit features of a histogram kernel. See ``HistogramClassifier`` for the parameters.

    A subclass defines its targets, and may define its own design of the features or its own objective.
    """

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "auto",
        *,
        features: str | Features = "auto",
        gamma: float | str = "mean",
        n_components: int | str = "auto",
        n_terms: int | str = "auto",
        map: AdditiveMap | None = None,
        sampling: str = "auto",
        form: str = "pair",
        landmarks: str | MatrixLike = "kmeans",
        normalize: str | Sequence[str | None] | None = None,
        bin_weights: str | ArrayLike | None = "auto",
        blocks: Blocks | None = None,
        n_principal: int | Sequence[int] | None = None,
        loss: str | Loss = "square",
        class_weight: ClassWeight = None,
        weights: str = "importance",
        threshold: str | float | None = None,
        alpha: str | float | Sequence[float] = "auto",
        selection: str | int | BaseCrossValidator = "auto",
        scoring: Scoring = None,
        time_limit: float | None = None,
        memory: str | int = "1GiB",
        precision: str = "float32",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: RandomState = None,
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
        self.weights = weights
        self.threshold = threshold
        self.alpha = alpha
        self.selection = selection
        self.scoring = scoring
        self.time_limit = time_limit
        self.memory = memory
        self.precision = precision
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model on rows X and labels or targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Dask collection of shape (n, bins)
            Rows. pandas and polars data frames, Arrow tables, and objects that ``open_source`` takes, such as AnnData,
            are read as they are; a column that a data frame wrote as its index (``Unnamed: 0``) is set aside. The
            cluster of the current client, if there is one, works on Dask collections.
        y : array of shape (n,) or (n, t), or str
            Labels or targets. With shape (n, t): labels 0 and 1 of t tasks for a classifier, or t targets for a
            regressor; a missing entry (NaN, None, masked) is left out for its task only, and a row without any entry is
            left out. A string names a column of X.
        sample_weight : array of shape (n,) or None, default=None
            Weight of each row in every sum, in the scores of held-out rows and in the sample that the features are
            fitted on; 0 leaves it out. ``weights`` says what it means. With a given ``alpha`` and features that depend
            on no sample, an integer weight and repeated rows give the same model.
        groups : array of shape (n,) or None, default=None
            Group of each row; the rows of a group are held out together, to choose a setting and for probabilities,
            sets and deviations, which count groups then.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_rows_order(X, y=y, sample_weight=sample_weight, groups=groups)
        if is_collection(X):
            return self.fit_source(
                DaskSource(X, y), engine=current_engine(), groups=groups, sample_weight=sample_weight
            )
        return self.fit_source(
            source_of(self, X, y, self._y_checks), groups=groups, sample_weight=sample_weight
        )

    def fit_source(
        self,
        source: Source,
        progress: Progress | None = None,
        *,
        unlabelled: Source | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
        engine: str | Client = "local",
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        learning_curve: bool = False,
    ) -> Self:
        """Fit the model on a source, read in chunks under the ``memory`` budget.

        The source is read once. It is read a second time with ``n_principal``, and again for each pass of a loss other
        than the square if its features do not fit the budget.

        Parameters
        ----------
        source : Source
            Rows with labels.
        progress : Progress or None, default=None
            Receives the stages of the fit; None shows them on the terminal if ``verbose``.
        unlabelled : Source or None, default=None
            More rows, without labels, for the components of ``n_principal`` (transductive PCA).
        checkpoint : Checkpoint, str, Path or None, default=None
            File to which the state of the fit is written every minute. If the file exists, the fit goes on from it,
            with the same result as without the interruption. It is removed at the end (a ``Checkpoint`` object is not).
            A machine that is solved block by block of rows has a state after each block, one on the kernel matrix of
            all rows has none before it is ready.
        engine : str or dask.distributed.Client, default="local"
            "local", "dask" for workers on this machine, or a client.
        groups : array of shape (n,), str or None, default=None
            Group of each row that has labels, see ``fit``, or the name of the column that holds them.
        sample_weight : array of shape (rows of the source,) or None, default=None
            Weights of all rows of the source, used instead of its ``weights``; see ``fit``.
        learning_curve : bool, default=False
            Whether to keep the sums in four parts, where ``memory`` allows, for ``learning_curve_``; this takes no
            other pass.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            If rows or labels are invalid (naming the row), or the checkpoint is of another fit.
        MemoryBudgetError
            If the budget is too small.
        """
        if not source.has_labels:
            raise DataError(
                Message("{} has no labels; name them where the data are opened, with {labels}.", source.name)
            )
        if source.row_ids is not None:
            for argument, values in {"sample_weight": sample_weight, "groups": groups}.items():
                check_order(source.row_ids, values, source.name, "source.row_ids", argument)
        weights = source.weights if sample_weight is None else sample_weight
        if weights is not None:
            weights = checked_sample_weight(weights, source.n_rows)
            source = with_weights(source, weights, counts_in(self.weights, weights))
        if isinstance(groups, str):
            groups = source.column(groups)
        source = self._with_targets(labelled(source))
        if source.held_bytes < parse_memory(self.memory):  # the fit refuses others before it reads a row
            rows = self._look_at(source)
            if groups is None:
                say(doubts_of_groups(source, rows))
        self._look_for_gaps(source)
        self._has_objects = source.has_object_labels
        source, groups = self._weighed(source, groups)
        bind_columns(self, source)
        self.reading_ = source.reading
        if unlabelled is not None:
            unlabelled = matched(unlabelled, source.column_names, source.n_features, type(self).__name__)
        progress = progress or (RichProgress() if self.verbose else Progress())
        can_keep = getattr(engine, "can_keep", engine == "local")
        is_plain, is_resumable = unlabelled is None and can_keep, checkpoint is not None
        self._draw_seed()
        limit: float | None = getattr(self, "time_limit", None)
        self._ends_at = None if limit is None else time.monotonic() + limit
        given: Parameters = self.get_params(deep=False)
        check_request(
            self._objective(given), self._device, given.get("n_principal"),
            Request(can_keep, is_resumable, unlabelled is not None),
        )  # fmt: skip
        log = Checkpoint(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint
        n_rows = source.n_rows + (0 if unlabelled is None else unlabelled.n_rows)
        with threads(suited(self.n_jobs, n_rows)):
            self.__dict__.pop("row_numbers_", None)  # of an earlier fit, whose features kept every row
            self._race_or_resume(source, groups, progress, is_plain, log)
            self._settle(source, groups, is_plain=is_plain, is_resumable=is_resumable)
            try:
                self._fit_settled(source, progress, unlabelled, log, engine, groups, learning_curve)
            except MemoryBudgetError as error:
                advice = advice_on_components(self._given(), source, self._n_targets_in(source), self._recipe)
                raise MemoryBudgetError(Message("{}{}", error, advice)) from None
        if hasattr(self, "row_numbers_"):  # rows without a label or a weight are no rows of the fit
            self.row_numbers_ = source.places_in_file()[self.row_numbers_]
        if log is not None and log is not checkpoint:
            log.remove()
        if hasattr(self, "race_"):
            self.stage_seconds_ = {"race": self.race_.seconds, **self.stage_seconds_}
        return self

    def _race_or_resume(
        self,
        source: Source,
        groups: np.ndarray | None,
        progress: Progress,
        may_keep: bool,
        checkpoint: Checkpoint | None,
    ) -> None:
        """Choose the settings that are open, or take those that a checkpoint has."""
        name, given = type(self).__name__, self.get_params(deep=False)
        choice = None if checkpoint is None else checkpoint.choice(name, given)
        if choice is None:
            self._race(source, groups, progress, may_keep)
        else:
            self._take_choice(choice)
        if checkpoint is not None:
            choice = Choice(self._seed, self.chosen_, getattr(self, "race_", None))
            checkpoint.keep(name, given, choice)

    def _look_at(self, source: Source) -> Rows:
        """Return some rows, which take a share of the memory; say what looks doubtful of them, and keep their units."""
        rows, y = first_look(source, _LOOK_SHARE * parse_memory(self.memory))
        self.units_ = Units.of(rows)
        say(doubts_at_fit(source, rows, y, getattr(self, "normalize", None), is_classifier(self)))
        return rows

    def _fit_settled(
        self,
        source: Source,
        progress: Progress,
        unlabelled: Source | None,
        checkpoint: Checkpoint | None,
        engine: str | Client,
        groups: np.ndarray | None,
        has_curve: bool,
    ) -> None:
        clock = Stopwatch()
        with progress, engine_of(engine) as running, compilation(clock, progress):
            result = fit(
                self._recipe(), source, running, progress,
                unlabelled=unlabelled, checkpoint=checkpoint, clock=clock, groups=groups, has_curve=has_curve,
                shown=scoring_of(self._given().get("scoring"), is_classifier(self), source.labels()),
            )  # fmt: skip
            self._batches = None
            self._adopt(result)
            self.stage_seconds_ = result.seconds
            if asks_for_rival(self):
                rival = rival_of(
                    self, source, groups,
                    lambda model, rows, of_rows: fit(
                        model._recipe(), rows, running, progress, clock=clock, groups=of_rows,
                        shown=scoring_of(self._given().get("scoring"), is_classifier(self), source.labels()),
                    ),
                    progress,
                )  # fmt: skip
                if rival is not None:
                    self.__dict__.clear()
                    self.__dict__.update(vars(rival))
                self.stage_seconds_ = clock.seconds
        if self._given().get("normalize") == "l1":
            self.units_ = None  # shares are the same in all units
        self._folded()  # cached now, so that the first prediction is as fast as the next

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = self.kernel
        takes_signs = kernel in _SIGNED if isinstance(kernel, str) else getattr(kernel, "is_signed", False)
        tags.input_tags.positive_only = not takes_signs
        return tags

    _has_objects: Sometimes[bool]  # whether labels came as Python objects
    row_numbers_: Sometimes[np.ndarray]  # of exact machines: places of the rows of the kernel matrix
    stage_seconds_: Sometimes[dict[str, float]]
