"""What classifier and regressor share: map + random features + moments + ridge in one pass, other losses in more."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap import _arrays
from chimap._threads import threads
from chimap._validation import (
    DataError,
    MemoryBudgetError,
    check_choice,
    check_positive,
    parse_memory,
)
from chimap.data import ArraySource, DaskSource, Source
from chimap.data.base import choose_rows
from chimap.data.dask import is_collection
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
from chimap.engines.device import DevicePass, check_device, on_host, scorer
from chimap.engines.keeping import KeptFeatures
from chimap.engines.local import Pass
from chimap.engines.rows import FeatureRows, KeptRows
from chimap.kernels import AdditiveKernel
from chimap.learning import model_file
from chimap.learning.checkpoint import Checkpoint
from chimap.learning.features import (
    FeatureSettings,
    Part,
    check_rows,
    features_of,
    normalised,
    parts_of,
    sizes_of,
)
from chimap.learning.fitting import Fit
from chimap.learning.hinge import HingeFitter
from chimap.learning.prediction import LinearPrediction
from chimap.learning.smooth import (
    N_VECTORS,
    HeldOutLosses,
    LossFit,
    SmoothFitter,
    fit_loss,
    named_loss,
    unshifted,
)
from chimap.losses import Loss, Square
from chimap.maps import check_map
from chimap.moments import FoldMoments, Targets, fold_of_rows
from chimap.rounded import RoundedFeatures
from chimap.solvers import LinearSolution, StrengthScores, choose_strength, ridge
from chimap.solvers.ridge import Factor

_SAMPLE_ROWS = 4096  # rows that the map, gamma and the provisional mean are fitted on
_SAMPLE_BYTES = 2**26


class HistogramModel(LinearPrediction, BaseEstimator):
    """Ridge on explicit features of a histogram kernel. See ``HistogramClassifier`` for the parameters."""

    device = "cpu"  # of estimators that do not ask

    def __init__(
        self,
        kernel: Any = "exp-chi2",
        *,
        gamma: Any = "mean",
        n_components: int = 2048,
        n_terms: int = 2,
        map: Any = None,
        sampling: str = "auto",
        form: str = "pair",
        normalize: str | None = None,
        blocks: Any = None,
        n_principal: int | None = None,
        loss: Any = "square",
        strengths: Any = "auto",
        n_folds: int = 5,
        memory: str | int = "1GiB",
        precision: str = "float32",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
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
        self.strengths = strengths
        self.n_folds = n_folds
        self.memory = memory
        self.precision = precision
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on rows X (n, bins), dense or sparse, and labels or targets y (n,); returns self.

        X may be a Dask array or data frame. Dask collections are worked on by the cluster of the current
        client, if there is one.
        """
        if is_collection(X):
            return self.fit_source(DaskSource(X, y), engine=current_engine())
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, **self._y_checks
        )
        return self.fit_source(ArraySource(X, y))

    def fit_source(
        self,
        source: Source,
        progress: Progress | None = None,
        *,
        unlabelled: Source | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
        engine: Any = "local",
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
        progress = progress or (RichProgress() if self.verbose else Progress())
        given = Checkpoint(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint
        with threads(self.n_jobs), progress, engine_of(engine) as running:
            fit = Fit(self, source, unlabelled, given, running, progress)
            with compilation(fit.clock, progress):
                fit.run()
        self.n_features_in_ = source.n_features
        self.stage_seconds_ = fit.clock.seconds
        self._moments = None
        self._weights()  # kept now, so that a prediction changes nothing
        if given is not None and given is not checkpoint:
            given.remove()
        return self

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
                sample = self._prepare(_arrays.take_rows(X, slice(_SAMPLE_ROWS)), 0, "X")
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

    def _plan(self, source: Source, *, keep: bool = True, n_waiting: int = 0) -> tuple[Job, int]:
        """What the fit needs, and rows a chunk: with the features of all rows in memory if a loss is to pass over them
        and the budget allows. (``keep`` False: not where a fit that goes on has not made those of the rows before, nor
        where they are made by other processes.)"""
        job, budget = replace(self._job(source), n_waiting=n_waiting), parse_memory(self.memory)
        if self._is_ridge():
            return job, chunk_rows_within(job, budget)
        job = replace(job, n_vectors=N_VECTORS)
        if not keep:
            return job, chunk_rows_within(job, budget)
        keeping = replace(job, n_kept=source.n_rows, kept_itemsize=self._dtype.itemsize)
        try:
            return keeping, chunk_rows_within(keeping, budget)
        except MemoryBudgetError:
            return job, chunk_rows_within(job, budget)

    def _room_for(self, job: Job, moments: FoldMoments) -> KeptRows | None:
        """Memory for the features of all rows, where the plan has it."""
        if not job.n_kept:
            return None
        n_folds, whole = len(moments.folds), moments.folds[0]
        counts = np.bincount(fold_of_rows(0, job.n_kept, n_folds, self._seed), minlength=n_folds)
        return KeptRows(counts, whole.n_features, whole.n_targets, self._dtype)

    def _check_settings(self) -> None:
        check_choice(self.normalize, "normalize", ("l1", None))
        check_choice(self.precision, "precision", ("float32", "float64", "bfloat16"))
        check_device(self.device)
        self._check_way()
        check_positive(self.n_folds, "n_folds", integer=True)
        check_positive(self.n_components, "n_components", integer=True)
        check_positive(self.n_terms, "n_terms", integer=True)
        if self.n_principal is not None:
            check_positive(self.n_principal, "n_principal", integer=True)
        if not isinstance(self.loss, Loss):
            check_choice(self.loss, "loss", self._losses)
        elif self.loss.name not in self._losses:
            raise ValueError(
                f"{type(self).__name__} takes losses {', '.join(self._losses)}; got {self.loss!r}."
            )
        if self.map is not None:
            check_map(self.map)
        self._seed = int(check_random_state(self.random_state).randint(2**31))

    def _check_way(self) -> None:
        """Refuse what there is no rounding or no device for."""
        if self._is_rounded and self.n_principal is not None:
            raise ValueError("n_principal takes features as they are: use precision='float32' or 'float64'.")
        if not on_host(self.device) and not (self._is_ridge() and self.n_principal is None):
            raise ValueError(
                f"device={self.device!r} makes the one pass of loss='square' without n_principal; got "
                f"loss={self.loss!r}, n_principal={self.n_principal!r}. Use device='cpu'."
            )

    def _parts(self, n_columns: int) -> list[Part]:
        common = FeatureSettings(
            self.kernel, self.gamma, self.n_components, self.n_terms, self.map, self.sampling, self.form
        )
        return parts_of(common, self.blocks, n_columns)

    def _fit_features(self, sample: Any) -> None:
        parts = self._parts(sample.shape[1])
        alone = self.blocks is None and self.n_principal is None
        self.features_ = parts[0].settings.make(self._seed) if alone else features_of(parts, self._seed)
        self.features_.fit(sample)
        self.kernel_ = self.features_.kernel_

    def _learn_features(self, source: Source, sample: Any, clock: Stopwatch, progress: Progress) -> None:
        """Adapt the features to the labels of the source, before they are frozen; plain ones are as they are."""

    def _start(self, features: Any, sample: Any, n_rows: int | None) -> FoldMoments:
        """Empty moments about the means of the sample's features."""
        first = sample[:1024]
        Z = np.empty((first.shape[0], features._n_features_out), dtype=self._dtype)
        features.features_into(first, Z)
        # rounded to the precision of the features: what is subtracted and what is remembered are then the same number
        shift = Z.mean(axis=0, dtype=np.float64).astype(self._dtype).astype(np.float64)
        return FoldMoments(
            self._fold_count(n_rows), Z.shape[1], self._n_targets, shift, self._target_shift(), self._dtype,
            self._is_rounded,
        )  # fmt: skip

    def _fold_count(self, n_rows: int | None) -> int:
        """One fold where the strength is given: there is nothing to choose."""
        if not isinstance(self.strengths, str) and np.ndim(self.strengths) == 0:
            check_positive(self.strengths, "strengths")
            return 1
        if isinstance(self.strengths, str):
            check_choice(self.strengths, "strengths", ("auto",))
        else:
            for strength in self.strengths:
                check_positive(strength, "each of strengths")
        if self.n_folds < 2:
            raise ValueError(
                f"n_folds must be at least 2 to choose among strengths; got {self.n_folds}. "
                "Give strengths as one number to fit without folds."
            )
        if n_rows is not None and n_rows < 2 * self.n_folds:
            # too few rows for so many folds: leave at least two a fold
            return max(1, min(self.n_folds, n_rows // 2))
        return self.n_folds

    def _job(self, source: Source) -> Job:
        parts = self._parts(source.n_features)
        sizes = sizes_of(parts)
        features = sizes.features
        if self.n_principal is not None:
            # The larger of the two passes: one matrix a block of the first, K of all coordinates in the second.
            each = [part.settings.sizes(part.columns.size).features for part in parts]
            coordinates = sum(min(self.n_principal, own) for own in each)
            features = max(
                coordinates, int(np.sqrt(np.square(each, dtype=float).sum() / self._fold_count(None)))
            )
        return Job(
            features,
            self._n_targets,
            self._fold_count(None),
            sizes.mapped,
            sizes.frequencies,
            source.row_bytes,
            self._dtype.itemsize,
            source.held_bytes,
            source.from_files,
            n_rows=source.n_rows,
            copies_rows=self.normalize is not None or np.dtype(source.dtype) != self._dtype,
        )

    def _sample(self, source: Source) -> Any:
        """Rows for what depends on the data, checked: an error names the row of the source."""
        size = min(_SAMPLE_ROWS, max(256, int(_SAMPLE_BYTES / max(1, source.n_features * 4))))
        if any(part.settings.way == "landmarks" for part in self._parts(source.n_features)):
            size = max(size, 2 * self.n_components)  # landmarks are rows of the sample
        chosen = choose_rows(source.n_rows, size, self._seed)
        return self._prepare(source.take(chosen), chosen, source.name)

    def _solve(self, moments: FoldMoments, clock: Stopwatch, progress: Progress) -> None:
        whole = moments.whole()
        factor = self._factor(whole.n_features)
        if len(moments.folds) > 1:
            with clock("choose strength"):
                progress.stage("strength", 7, "strengths")
                self.strength_scores_ = choose_strength(
                    moments, whole, self.strengths, lambda strength, error: progress.advance(), factor
                )
                strength = self.strength_scores_.best
        else:
            self.strength_scores_ = None
            auto = isinstance(self.strengths, str) or np.ndim(self.strengths) > 0
            strength = float(whole.scatter_diagonal().mean() or 1.0) if auto else float(self.strengths)
        with clock("solve"):
            found = ridge(whole, strength, factor)
        self._coef, self._intercept, self.strength_ = found.coef, found.intercept, strength
        self.loss_, self.loss_scores_, self.n_passes_ = Square(), None, 1
        self.n_rows_ = whole.count
        self._stale = False

    def _solve_loss(
        self, moments: FoldMoments, rows: FeatureRows, clock: Stopwatch, progress: Progress
    ) -> None:
        whole = moments.whole()
        n_folds = len(moments.folds)
        self.strength_scores_ = None
        strengths = self._strengths_to_try()
        with clock("choose strength"):
            progress.stage("strength", 7, "strengths")
            first = float(whole.scatter_diagonal().mean() or 1.0)
            if strengths is None and n_folds > 1:
                first = choose_strength(
                    moments, whole, on_score=lambda strength, error: progress.advance()
                ).best
        with clock("passes"):
            progress.stage("passes", None, "passes")
            self.loss_ = named_loss(self.loss, whole) if isinstance(self.loss, str) else self.loss
            first *= self.loss_.curvature
            fitter = SmoothFitter(self.loss_, rows, whole, progress.advance)
            fit = fit_loss(fitter, n_folds, strengths, first)
        self._learn_from(fit, unshifted(fit.solution, whole), whole.count)

    def _solve_hinge(self, kept: KeptFeatures, clock: Stopwatch, progress: Progress) -> None:
        self.loss_ = self.strength_scores_ = None
        with clock("solve"):
            progress.stage("solving", None, "classes")
            kept.stack()
            fitter = HingeFitter(kept, self._seed, progress.advance)
            fit = fit_loss(fitter, kept.n_folds, self._strengths_to_try(), fitter.usual_strength())
        self._learn_from(fit, fit.solution, kept.Y.shape[0])

    def _strengths_to_try(self) -> Any:
        """One number, several, or None for a search."""
        if isinstance(self.strengths, str):
            return None
        return float(self.strengths) if np.ndim(self.strengths) == 0 else self.strengths

    def _learn_from(self, fit: LossFit, found: LinearSolution, n_rows: int) -> None:
        """Learn what a fit came to, and its solution for the features as they are."""
        self._coef, self._intercept, self.strength_ = found.coef, found.intercept, found.strength
        self.loss_scores_, self.n_passes_ = fit.scores, fit.passes
        self.n_rows_ = n_rows
        self._stale = False

    def _refresh(self) -> None:
        """Solve for what ``partial_fit`` has added since the last time."""
        check_is_fitted(self, "features_")
        if self._stale and self._moments is not None:
            with threads(self.n_jobs):
                self._solve(self._moments, Stopwatch(), Progress())

    # --- using

    def _room(self, n_rows: int) -> Any:
        """Memory for features or, where they are made on a device, what makes outputs there."""
        if on_host(self.device):
            return super()._room(n_rows)
        check_device(self.device)
        shift = self.shift_ if self._is_rounded else np.zeros(self._coef.shape[0])
        return scorer(self._mapping(), shift, self._coef, self._intercept, self._dtype, self.device)

    def _outputs_of(self, rows: Any, first_row: int, name: str, room: Any) -> np.ndarray:
        if on_host(self.device):
            return super()._outputs_of(rows, first_row, name, room)
        outputs: np.ndarray = room(self._prepare(rows, first_row, name))
        return outputs

    def _mapping(self) -> Any:
        return RoundedFeatures(self.features_, self.shift_) if self._is_rounded else self.features_

    def _factor(self, n_features: int) -> Factor:
        if on_host(self.device):
            return Factor(n_features)
        from chimap.solvers.device import DeviceFactor

        fits = DeviceFactor.fits(n_features, self.device)
        return DeviceFactor(n_features, self.device) if fits else Factor(n_features)

    def _prepare(self, X: Any, first_row: int | np.ndarray, name: str) -> Any:
        """Rows checked, in the precision of the model, and their blocks l1-normalised if asked."""
        rows = _arrays.as_rows(X, self._dtype)
        parts = self._parts(rows.shape[1])
        check_rows(rows, parts, name, first_row)
        return rows if self.normalize is None else normalised(rows, parts)

    def describe(self) -> dict[str, Any]:
        """The kernel by name, its gamma (None where it has none, or the plain kernel's 1) and what its features are."""
        check_is_fitted(self, "features_")
        gamma = getattr(self.kernel_, "gamma", None)
        is_plain = isinstance(self.kernel_, AdditiveKernel) and gamma == 1
        return {
            "kernel": self.kernel_.name,
            "gamma": None if is_plain else gamma,
            "features": self.features_.describe(),
        }

    @property
    def _dtype(self) -> np.dtype:
        """Of features as they are computed and summed."""
        return np.dtype("float32" if self._is_rounded else self.precision)

    @property
    def _is_rounded(self) -> bool:
        return self.precision == "bfloat16"

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, one row a target (one for two classes)."""
        self._refresh()
        return self._coef.T

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, one a target."""
        self._refresh()
        return self._intercept

    # --- model files

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the model to a file that opens safely anywhere (safetensors and JSON; no code in it).

        Raises FileExistsError if the path exists, unless ``overwrite``.
        """
        self._refresh()
        model_file.save(self, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A model written by ``save``. Raises DataError for any other file, or a model of another class."""
        model = model_file.load(path)
        if not isinstance(model, cls):
            raise DataError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}; use chimap.load.")
        return model

    # --- what a subclass says of its targets

    _moments: FoldMoments | None
    _stale: bool
    _coef: np.ndarray
    _intercept: np.ndarray
    loss_: Loss | None
    loss_scores_: HeldOutLosses | None
    strength_scores_: StrengthScores | None
    shift_: np.ndarray
    _y_checks: ClassVar[dict[str, Any]]
    _losses: ClassVar[tuple[str, ...]]
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags
