"""What classifier and regressor share: map + random features + moments + ridge, one pass over the rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
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
    check_choice,
    check_histograms,
    check_positive,
    check_width,
    parse_memory,
)
from chimap.data import ArraySource, Source
from chimap.data.base import choose_rows
from chimap.data.read_ahead import chunks_ahead
from chimap.engines import Job, Progress, RichProgress, Stopwatch, chunk_rows_within
from chimap.engines.local import Pass
from chimap.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.kernels import AdditiveKernel, Exponential, as_kernel
from chimap.kernels.skewed import Skewed
from chimap.learning import model_file
from chimap.maps import OptimalMap, check_map
from chimap.moments import FoldMoments
from chimap.solvers import StrengthScores, choose_strength, ridge

_SAMPLE_ROWS = 4096  # rows that the map, gamma and the provisional mean are fitted on
_SAMPLE_BYTES = 2**26
_PREDICT_ROWS = 2048


class HistogramModel(BaseEstimator):
    """Ridge on explicit features of a histogram kernel. See ``HistogramClassifier`` for the parameters."""

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
        strengths: Any = "auto",
        n_folds: int = 5,
        memory: str | int = "1GiB",
        precision: str = "float32",
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
        self.strengths = strengths
        self.n_folds = n_folds
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on rows X (n, bins), dense or sparse, and labels or targets y (n,); returns self."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, **self._y_checks
        )
        return self.fit_source(ArraySource(X, y))

    def fit_source(self, source: Source, progress: Progress | None = None) -> Self:
        """Fit on a source, read once in chunks under the ``memory`` budget; returns self.

        Raises DataError for bad rows or labels (named by row), MemoryBudgetError for a budget that is too small.
        """
        if not source.has_labels:
            raise DataError(
                f"{source.name} has no labels; pass labels=... to open_source (--labels on the command line)."
            )
        progress = progress or (RichProgress() if self.verbose else Progress())
        clock = Stopwatch()
        with threads(self.n_jobs), progress:
            with clock("sample"):
                progress.stage("sampling", None)
                self._check_settings()
                self._learn_targets(source.labels())
                job = self._job(source)
                chunk_rows = chunk_rows_within(job, parse_memory(self.memory))
                sample = self._sample(source)
            with clock("map"):
                moments = self._start(sample, source.n_rows)
            self._pass(moments, clock).run(source, chunk_rows, progress)
            self._solve(moments, clock, progress)
        self.n_features_in_ = source.n_features
        self.stage_seconds_ = clock.seconds
        self._moments = None
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
            job = self._job(source)
            chunk_rows = chunk_rows_within(job, parse_memory(self.memory))
            if moments is None:
                moments = self._start(self._prepare(_arrays.take_rows(X, slice(_SAMPLE_ROWS)), 0, "X"), None)
            seen = moments.count
            adding = self._pass(moments, Stopwatch())
            for chunk in source.chunks(chunk_rows):
                adding.add(chunk.X, chunk.y, seen + chunk.start, "X")
        self._moments = moments
        self._stale = True
        return self

    def _pass(self, moments: FoldMoments, clock: Stopwatch) -> Pass:
        return Pass(self._prepare, self.features_, self._encode, moments, self._seed, clock)

    def _check_settings(self) -> None:
        check_choice(self.normalize, "normalize", ("l1", None))
        check_choice(self.precision, "precision", ("float32", "float64"))
        check_positive(self.n_folds, "n_folds", integer=True)
        check_positive(self.n_components, "n_components", integer=True)
        check_positive(self.n_terms, "n_terms", integer=True)
        if self.map is not None:
            check_map(self.map)
        self._seed = int(check_random_state(self.random_state).randint(2**31))

    def _start(self, sample: Any, n_rows: int | None) -> FoldMoments:
        """Fit the features on the sample and give empty moments about its means."""
        self.features_ = self._make_features()
        self.features_.fit(sample)
        self.kernel_ = self.features_.kernel_
        first = sample[:1024]
        Z = np.empty((first.shape[0], self.features_._n_features_out), dtype=self._dtype)
        self.features_.features_into(first, Z)
        # rounded to the precision of the features: what is subtracted and what is remembered are then the same number
        shift = Z.mean(axis=0, dtype=np.float64).astype(self._dtype).astype(np.float64)
        return FoldMoments(
            self._fold_count(n_rows), Z.shape[1], self._n_targets, shift, self._target_shift(), self._dtype
        )

    def _make_features(self) -> Any:
        kernel = as_kernel(self.kernel, self.gamma)
        if isinstance(kernel, Exponential):
            return FourierFeatures(
                kernel, self.n_components, map=self.map, n_terms=self.n_terms, sampling=self._sampling("orthogonal"),
                form=self.form, random_state=self._seed,
            )  # fmt: skip
        if isinstance(kernel, Skewed):
            return SkewedFourierFeatures(
                kernel, self.n_components, self._sampling("iid"), self.form, self._seed
            )
        if not isinstance(kernel, AdditiveKernel):
            raise ValueError(
                f"{type(self).__name__} takes additive, exponential and skewed kernels; got {kernel!r}."
            )
        if self.map is None:
            return OptimalMap(kernel, self.n_terms)
        return type(self.map)(**self.map.get_params(deep=False)).set_params(kernel=kernel)

    def _sampling(self, usual: str) -> str:
        return usual if self.sampling == "auto" else self.sampling

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
        n_bins = source.n_features
        n_terms = self.n_terms if self.map is None else self.map._terms_at_most
        kernel = as_kernel(self.kernel, self.gamma)
        features, mapped, frequencies = n_terms * n_bins, 0, 0
        if not isinstance(kernel, AdditiveKernel):
            is_mapped = isinstance(kernel, Exponential) and isinstance(kernel.kernel, AdditiveKernel)
            features, mapped = self.n_components, features if is_mapped else n_bins
            frequencies = (self.n_components + 1) // 2 if self.form == "pair" else self.n_components
            if self.sampling == "structured":
                frequencies = 0  # signs and lengths alone
        return Job(
            features,
            self._n_targets,
            self._fold_count(None),
            mapped,
            frequencies,
            source.row_bytes,
            self._dtype.itemsize,
            source.held_bytes,
            source.from_files,
        )

    def _sample(self, source: Source) -> Any:
        """Rows for what depends on the data, checked: an error names the row of the source."""
        size = min(_SAMPLE_ROWS, max(256, int(_SAMPLE_BYTES / max(1, source.n_features * 4))))
        chosen = choose_rows(source.n_rows, size, self._seed)
        return self._prepare(source.take(chosen), chosen, source.name)

    def _solve(self, moments: FoldMoments, clock: Stopwatch, progress: Progress) -> None:
        whole = moments.whole()
        if len(moments.folds) > 1:
            with clock("choose strength"):
                progress.stage("strength", 7, "strengths")
                self.strength_scores_: StrengthScores | None = choose_strength(
                    moments, whole, self.strengths, lambda strength, error: progress.advance()
                )
                strength = self.strength_scores_.best
        else:
            self.strength_scores_ = None
            auto = isinstance(self.strengths, str) or np.ndim(self.strengths) > 0
            strength = float(whole.scatter_diagonal().mean() or 1.0) if auto else float(self.strengths)
        with clock("solve"):
            found = ridge(whole, strength)
        self._coef, self._intercept, self.strength_ = found.coef, found.intercept, strength
        self.n_rows_ = whole.count
        self._stale = False

    def _refresh(self) -> None:
        """Solve for what ``partial_fit`` has added since the last time."""
        check_is_fitted(self, "features_")
        if self._stale and self._moments is not None:
            with threads(self.n_jobs):
                self._solve(self._moments, Stopwatch(), Progress())

    # --- using

    def _outputs(self, X: Any) -> np.ndarray:
        """f(x) of rows X, (n, t)."""
        self._refresh()
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        return self.predict_source(ArraySource(X))

    def predict_source(self, source: Source, progress: Progress | None = None) -> np.ndarray:
        """Linear outputs f(x) (n, t) of every row of a source, chunk by chunk; float64."""
        self._refresh()
        out = np.empty((source.n_rows, self._coef.shape[1]))
        for start, outputs in self.predict_chunks(source, progress):
            out[start : start + outputs.shape[0]] = outputs
        return out

    def predict_chunks(
        self, source: Source, progress: Progress | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, linear outputs (rows, t) float64) of consecutive rows of a source; memory does not grow
        with it."""
        self._refresh()
        progress = progress or Progress()
        check_width(np.empty((0, source.n_features)), self.n_features_in_, type(self).__name__)
        Z = np.empty((min(_PREDICT_ROWS, source.n_rows), self._coef.shape[0]), dtype=self._dtype)
        coef = self._coef.astype(self._dtype)
        with threads(self.n_jobs), progress:
            progress.stage("predicting", source.n_rows)
            for chunk in chunks_ahead(source, _PREDICT_ROWS):
                rows = self._prepare(chunk.X, chunk.start, source.name)
                z = Z[: rows.shape[0]]
                self.features_.features_into(rows, z)
                yield chunk.start, z @ coef + self._intercept
                progress.advance(rows.shape[0])

    def _prepare(self, X: Any, first_row: int | np.ndarray, name: str) -> Any:
        """Rows checked, in the precision of the model, and l1-normalised if asked."""
        signed = bool(as_kernel(self.kernel, self.gamma).is_signed)
        rows = _arrays.as_rows(X, self._dtype)
        check_histograms(rows, name=name, signed=signed, first_row=first_row)
        if self.normalize is None:
            return rows
        norms = _arrays.row_norms_l1(rows)
        return _arrays.scale_rows(rows, 1 / np.where(norms > 0, norms, 1))

    @property
    def _dtype(self) -> np.dtype:
        return np.dtype(self.precision)

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
    _y_checks: ClassVar[dict[str, Any]]
    _n_targets: int

    @abstractmethod
    def _learn_targets(self, y: Any) -> None:
        """Learn the classes, or the range of the targets, from all of y; set ``_n_targets``."""

    @abstractmethod
    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Targets (n, t), float64."""

    @abstractmethod
    def _target_shift(self) -> np.ndarray:
        """A provisional mean of the targets, (t,)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags
