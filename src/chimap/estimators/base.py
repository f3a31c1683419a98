"""How a linear model over explicit features is fitted: what classifier and regressor share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap import _arrays
from chimap._threads import threads
from chimap._validation import DataError, check_choice, check_positive, parse_memory
from chimap.data import ArraySource, DaskSource, Source, matched
from chimap.data.formats.dask import is_collection
from chimap.data.formats.frames import check_same_order
from chimap.data.labelling import labelled
from chimap.data.layouts import opener_of
from chimap.data.source import choose_rows
from chimap.data.table import named_blocks
from chimap.engines import (
    Job,
    Progress,
    RichProgress,
    Stopwatch,
    chunk_rows_within,
    current_engine,
    engine_of,
)
from chimap.engines.compilation import compilation
from chimap.engines.device import DevicePass, check_device, on_host
from chimap.engines.keeping import KeptFeatures
from chimap.engines.local import Pass
from chimap.engines.memory import FIRST_ROWS
from chimap.engines.rows import FeatureRows
from chimap.estimators.exact_fit import fit_exactly
from chimap.estimators.linear_model import LinearModel
from chimap.estimators.prediction import bind_names
from chimap.features.additive import check_map
from chimap.features.base import FeatureSettings
from chimap.features.families import check_features
from chimap.features.rounded import RoundedFeatures
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.fit.checkpoint import Checkpoint
from chimap.fit.feature_settings import Part, features_of, parts_of
from chimap.fit.fit import Fit
from chimap.fit.plan import job_of, principal_features, sample_rows, sample_size
from chimap.fit.solving import Learned, by_components, by_liblinear, by_moments, by_passes
from chimap.losses import Loss, Square
from chimap.moments import FoldMoments, Targets
from chimap.selection import SelectionResult, fold_count


class HistogramModel(LinearModel):
    """A linear model fitted to explicit features of a histogram kernel. See ``HistogramClassifier`` for the parameters.

    Here is what each stage of a fit does; ``Fit`` runs them in their order. A subclass may do a stage its own way, and
    says what its targets are.
    """

    features = "auto"  # of estimators that do not ask
    device = "cpu"
    scoring: Any = None
    gamma: Any = "mean"

    def __init__(
        self,
        kernel: Any = "exp-chi2",
        *,
        features: Any = "auto",
        gamma: Any = "mean",
        n_components: int = 2048,
        n_terms: int = 2,
        map: Any = None,
        sampling: str = "auto",
        form: str = "pair",
        normalize: str | None = None,
        blocks: Any = None,
        n_principal: Any = None,
        loss: Any = "square",
        alpha: Any = "auto",
        selection: Any = "auto",
        scoring: Any = None,
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
        self.normalize = normalize
        self.blocks = blocks
        self.n_principal = n_principal
        self.loss = loss
        self.alpha = alpha
        self.selection = selection
        self.scoring = scoring
        self.memory = memory
        self.precision = precision
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit on rows X (n, bins), dense or sparse, and labels or targets y (n,); returns self.

        groups (n,): rows of one group are held out together, where rows are held out to choose (features="exact").

        X may be a Dask array or data frame, or an object that ``open_source`` takes, such as AnnData, whose labels y
        may be the name of a column. Dask collections are worked on by the cluster of the current
        client, if there is one.
        """
        if is_collection(X):
            return self.fit_source(DaskSource(X, y), engine=current_engine())
        if (opener := opener_of(X)) is not None:
            return self.fit_source(opener(X, y))
        check_same_order(X, y)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, **self._y_checks
        )
        return self.fit_source(
            ArraySource(X, y, column_names=getattr(self, "feature_names_in_", None)), groups=groups
        )

    def fit_source(
        self,
        source: Source,
        progress: Progress | None = None,
        *,
        unlabelled: Source | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
        engine: Any = "local",
        groups: Any = None,
    ) -> Self:
        """Fit on a source, read in chunks under the ``memory`` budget; returns self.

        It is read once; a second time with ``n_principal``, whose components take ``unlabelled`` rows too (transductive
        PCA); and again at each pass of a loss other than the square if its features do not fit the budget.

        checkpoint: a file that says every minute where the fit stands. If it is there the fit goes on from it, with the
        same result as if it had not been interrupted; it is removed at the end (a ``Checkpoint`` is not).
        engine: "local"; "dask", for workers on this machine; or a client of ``dask.distributed``.

        Raises DataError for bad rows or labels (named by row) and for the checkpoint of another fit, MemoryBudgetError
        for a budget that is too small.
        """
        if not source.has_labels:
            raise DataError(
                f"{source.name} has no labels; pass labels=... to open_source (--labels on the command line)."
            )
        source = labelled(source)
        bind_names(self, source)
        self.reading_ = source.reading
        if unlabelled is not None:
            unlabelled = matched(unlabelled, source.column_names, source.n_features, type(self).__name__)
        progress = progress or (RichProgress() if self.verbose else Progress())
        if self._keeps_rows:
            if checkpoint is not None or unlabelled is not None:
                raise ValueError("features='exact' has no checkpoint and no unlabelled rows: leave them out.")
            fit_exactly(self, source, groups, engine, progress)
            return self._fitted(source)
        if groups is not None:
            raise ValueError(
                "groups are held out together by features='exact' alone, as yet; leave them out."
            )
        given = Checkpoint(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint
        with threads(self.n_jobs), progress, engine_of(engine) as running:
            fit = Fit(self, source, unlabelled, given, running, progress)
            with compilation(fit.clock, progress):
                fit.run()
        self.stage_seconds_ = fit.clock.seconds
        if given is not None and given is not checkpoint:
            given.remove()
        return self._fitted(source)

    def _fitted(self, source: Source) -> Self:
        self.n_features_in_ = source.n_features
        self._moments = None
        self._weights()  # kept now, so that a prediction changes nothing
        return self

    @property
    def _keeps_rows(self) -> bool:
        return isinstance(self.features, str) and self.features == "exact"

    def _partial_fit(self, X: Any, y: Any) -> Self:
        moments: FoldMoments | None = getattr(self, "_moments", None)
        X, y = validate_data(
            self, X, y, reset=moments is None, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
            **self._y_checks,
        )  # fmt: skip
        source = ArraySource(X, y)
        with threads(self.n_jobs):
            if moments is None:
                self._check_settings()
            if self.n_principal is not None:
                raise ValueError("n_principal takes two passes over all rows: use fit or fit_source.")
            job = self._job(source)
            chunk_rows = chunk_rows_within(job, parse_memory(self.memory))
            if moments is None:
                sample = self._prepare(_arrays.take_rows(X, slice(sample_rows(X.shape[1]))), 0, "X")
                self._fit_features(sample)
                moments = self._start(self.features_, sample, None)
            seen = moments.count
            adding = self._pass(self.features_, moments, Stopwatch())
            for chunk in source.chunks(chunk_rows):
                adding.add(chunk.X, chunk.y, seen + chunk.start, "X")
            if isinstance(adding, DevicePass):
                adding.finish()
        self._moments = moments
        self._stale = True
        return self

    def _pass(
        self, features: Any, moments: FoldMoments, clock: Stopwatch, keep: Any = None
    ) -> Pass | DevicePass:
        if self._is_rounded:
            self.shift_ = moments.shift
            features = RoundedFeatures(features, moments.shift)
        if on_host(self.device):
            return Pass(self._prepare, features, self._encode, moments, self._seed, clock, keep)
        return DevicePass(self._prepare, features, self._encode, moments, self._seed, clock, self.device)

    def _keeps_features(self) -> bool:
        """Whether a solver takes the features of all rows, and no moments."""
        return bool(self.loss == "hinge")

    def _is_ridge(self) -> bool:
        return self.loss == "square" or self.loss == Square()

    def _check_settings(self) -> None:
        check_choice(self.normalize, "normalize", ("l1", None))
        check_features(self.features)
        check_choice(self.precision, "precision", ("float32", "float64", "bfloat16"))
        check_device(self.device)
        self._check_way()
        self._check_selection()
        check_positive(self.n_components, "n_components", integer=True)
        check_positive(self.n_terms, "n_terms", integer=True)
        if self.n_principal is not None:
            self._check_components()
        if not isinstance(self.loss, Loss):
            check_choice(self.loss, "loss", self._losses)
        elif self.loss.name not in self._losses and self.loss.domain != self._domain:
            raise ValueError(
                f"{type(self).__name__} takes losses {', '.join(self._losses)}, and others of domain "
                f"{self._domain!r}; got {self.loss!r}."
            )
        if self.map is not None:
            check_map(self.map)
        self._seed = int(check_random_state(self.random_state).randint(2**31))

    def _check_selection(self) -> None:
        if self._keeps_rows:
            return  # which takes splitters too, and checks them with the rows
        fold_count(self.selection)
        if self.scoring is not None:
            raise ValueError("scoring is the measure of features='exact' alone, as yet; leave it out.")
        if isinstance(self.gamma, str) and self.gamma == "auto":
            raise ValueError("gamma='auto' is chosen by features='exact' alone, as yet; use gamma='mean'.")
        if self._chooses_by_gcv and not self._is_ridge():
            raise ValueError(
                f"selection='gcv' is of loss='square'; got loss={self.loss!r}. Use selection='auto'."
            )
        if self._chooses_by_gcv and self._chooses_components():
            raise ValueError("several n_principal are compared by folds: use selection='auto', not 'gcv'.")

    @property
    def _chooses_by_gcv(self) -> bool:
        return isinstance(self.selection, str) and self.selection == "gcv"

    def _chooses_components(self) -> bool:
        return np.ndim(self.n_principal) > 0

    def _check_components(self) -> None:
        if not self._chooses_components():
            check_positive(self.n_principal, "n_principal", integer=True)
            return
        for number in self.n_principal:
            check_positive(number, "each of n_principal", integer=True)
        if not len(self.n_principal) or not self._is_ridge():
            raise ValueError(
                "several n_principal are compared by the folds of loss='square', one of them at least; got "
                f"n_principal={self.n_principal!r} and loss={self.loss!r}."
            )

    def _check_way(self) -> None:
        """Refuse what there is no rounding or no device for."""
        if self._is_rounded and self.n_principal is not None:
            raise ValueError(
                "n_principal takes features as they are: use precision='float32' or precision='float64'."
            )
        if not on_host(self.device) and not self._is_ridge():
            raise ValueError(
                f"device={self.device!r} makes the passes of loss='square'; got loss={self.loss!r}. Use device='cpu'."
            )

    def _parts(self, n_columns: int) -> list[Part]:
        # gamma that is chosen starts from the mean
        gamma = (
            "mean"
            if self._keeps_rows and isinstance(self.gamma, str) and self.gamma == "auto"
            else self.gamma
        )
        common = FeatureSettings(
            self.kernel,
            gamma,
            self.n_components,
            self.n_terms,
            self.map,
            self.sampling,
            self.form,
            self.features,
        )
        return parts_of(
            common, named_blocks(self.blocks, getattr(self, "feature_names_in_", None)), n_columns
        )

    def _fit_features(self, sample: Any) -> None:
        parts = self._parts(sample.shape[1])
        scale = Scale.of(sample, [part.settings.exact for part in parts])
        parts = [part.scaled(scale) for part in parts]
        alone = self.blocks is None and self.n_principal is None
        self.features_ = parts[0].make(self._seed) if alone else features_of(parts, self._seed)
        self.features_.fit(scale.rows(sample) if scale.exponent else sample)
        if scale.exponent:
            self.features_ = ScaledFeatures(self.features_, scale)
        self.kernel_ = self.features_.kernel_

    def _learn_features(self, source: Source, sample: Any, clock: Stopwatch, progress: Progress) -> None:
        """Adapt the features to the labels of the source, before they are frozen; plain ones are as they are."""

    def _start(self, features: Any, sample: Any, n_rows: int | None) -> FoldMoments:
        """Empty moments about the means of the sample's features."""
        first = _arrays.take_rows(sample, slice(FIRST_ROWS))
        Z = np.empty((first.shape[0], features._n_features_out), dtype=self._dtype)
        features.features_into(first, Z)
        # rounded to the precision of the features: what is subtracted and what is remembered are then the same number
        shift = Z.mean(axis=0, dtype=np.float64).astype(self._dtype).astype(np.float64)
        del Z  # before there is room for the moments
        return FoldMoments(
            self._fold_count(n_rows), shift.size, self._n_targets, shift, self._target_shift(), self._dtype,
            self._is_rounded,
        )  # fmt: skip

    def _fold_count(self, n_rows: int | None) -> int:
        """One fold where the strength is given: there is nothing to choose."""
        if not isinstance(self.alpha, str) and np.ndim(self.alpha) == 0:
            check_positive(self.alpha, "alpha")
            if not self._chooses_components():
                return 1
        elif isinstance(self.alpha, str):
            check_choice(self.alpha, "alpha", ("auto",))
        else:
            for alpha in self.alpha:
                check_positive(alpha, "each of alpha")
        if self._keeps_rows or self._chooses_by_gcv:
            return 1
        if fold_count(self.selection) < 2:
            raise ValueError(
                f"selection must be at least 2 folds to choose alpha; got {self.selection}. "
                "Give alpha as one number to fit without folds."
            )
        if n_rows is not None and n_rows < 2 * fold_count(self.selection):
            # too few rows for so many folds: leave at least two a fold
            return max(1, min(fold_count(self.selection), n_rows // 2))
        return fold_count(self.selection)

    def _job(self, source: Source) -> Job:
        """The largest pass of the fit."""
        parts, n_folds = self._parts(source.n_features), self._fold_count(None)
        job = self._job_of(source, parts, n_folds)
        if self.n_principal is None:
            return job
        job = replace(job, n_features=principal_features(parts, int(np.max(self.n_principal)), n_folds))
        # moments of some coordinates beside those of all
        some = job.moments_bytes + 8 * job.n_features**2 if self._chooses_components() else 0
        return replace(job, solver_bytes=some)

    def _job_of(self, source: Source, parts: list[Part], n_folds: int) -> Job:
        normalises = self.normalize is not None
        return job_of(source, parts, self._n_targets, n_folds, self._dtype, normalises=normalises)

    def _sample(self, source: Source) -> Any:
        """Rows for what depends on the data, checked: an error names the row of the source."""
        size = sample_size(source, self._parts(source.n_features))
        chosen = choose_rows(source.n_rows, size, self._seed)
        return self._prepare(source.take(chosen), chosen, source.name)

    # --- from what the passes have given to the weights

    def _solve(self, moments: FoldMoments, clock: Stopwatch, progress: Progress) -> None:
        """Of the square loss: from moments."""
        self._take_weights(by_moments(moments, self.alpha, self.device, clock, progress))

    def _solve_components(
        self, moments: FoldMoments, borders: np.ndarray, clock: Stopwatch, progress: Progress
    ) -> None:
        """Of the square loss on coordinates, with the number of components."""
        found = by_components(moments, borders, self.n_principal, self.alpha, clock, progress)
        assert found.selection is not None
        self.n_principal_ = found.selection.best["n_components"]
        self._take_weights(found)

    def _solve_loss(
        self, moments: FoldMoments, rows: FeatureRows, clock: Stopwatch, progress: Progress
    ) -> None:
        """Of other smooth losses: by passes over the features of the rows."""
        self._take_weights(by_passes(self.loss, moments, rows, self.alpha, clock, progress))

    def _solve_hinge(self, kept: KeptFeatures, clock: Stopwatch, progress: Progress) -> None:
        """Of the hinge: from the features of all rows."""
        self._take_weights(by_liblinear(kept, self.alpha, self._seed, clock, progress))

    def _take_weights(self, found: Learned) -> None:
        solution = found.solution
        self._coef, self._intercept, self.alpha_ = solution.coef, solution.intercept, solution.alpha
        self.selection_, self.loss_, self.n_passes_, self.n_rows_ = (
            found.selection, found.loss, found.n_passes, found.n_rows,
        )  # fmt: skip
        self._stale = False

    def _refresh(self) -> None:
        """Solve for what ``partial_fit`` has added since the last time."""
        check_is_fitted(self, "features_")
        if self._stale and self._moments is not None:
            with threads(self.n_jobs):
                self._solve(self._moments, Stopwatch(), Progress())

    # --- what a subclass says of its targets

    _moments: FoldMoments | None
    _stale: bool
    loss_: Loss | None
    selection_: SelectionResult | None
    _y_checks: ClassVar[dict[str, Any]]
    _losses: ClassVar[tuple[str, ...]]
    _domain: ClassVar[str]  # of losses that may be given as objects
    _n_targets: int

    @abstractmethod
    def _learn_targets(self, y: Any) -> None:
        """Learn the classes, or the range of the targets, from all of y; set ``_n_targets``."""

    @abstractmethod
    def _encode(self, y: np.ndarray) -> Targets:
        """Targets (n, t) less ``_target_shift``."""

    @abstractmethod
    def _target_shift(self) -> np.ndarray:
        """A provisional mean of the targets, (t,)."""
