"""Kernel machines that learn the widths of their kernel: single kernel learning in the Fourier domain (RFF-SKL)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from chimap._validation import DataError, check_choice, check_positive, parse_memory
from chimap.data import ArraySource, Source, split_source
from chimap.data.source import choose_rows
from chimap.engines import Job, Progress, Stopwatch, chunk_rows_within
from chimap.estimators.base import HistogramModel
from chimap.estimators.targets import ClassTargets, RealTargets
from chimap.estimators.width_search import (
    TuningRows,
    WidthObjective,
    WidthPenalty,
    WidthSearch,
    WidthsFound,
)
from chimap.features.base import FeatureSettings
from chimap.features.fourier import WidthFeatures
from chimap.fit.feature_settings import parts_of
from chimap.selection import choose_alpha, fold_count

_LEAST_VALIDATION = 10  # rows: fewer say nothing, and all are used to learn


class KernelLearner(HistogramModel):
    """What the two share: widths first, on a part of the rows and with few features; then a plain fit with them."""

    gamma = "mean"  # of the base class: what the widths start from
    n_principal = None

    def __init__(
        self,
        kernel: Any = "exp-chi2",
        *,
        blocks: Any = None,
        widths: Any = "block",
        n_components: int = 2048,
        n_terms: int = 2,
        map: Any = None,
        sampling: str = "auto",
        form: str = "pair",
        normalize: str | None = None,
        objective: str = "held-out",
        width_penalty: str = "l2",
        width_strength: float = 0.0,
        n_tune_components: int | None = 512,
        n_tune_rows: int | None = 10_000,
        validation_fraction: float = 0.1,
        max_iter: int = 30,
        tol: float = 1e-3,
        patience: int = 5,
        loss: Any = "square",
        alpha: Any = "auto",
        selection: Any = "auto",
        memory: str | int = "1GiB",
        precision: str = "float32",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.widths = widths
        self.n_components = n_components
        self.n_terms = n_terms
        self.map = map
        self.sampling = sampling
        self.form = form
        self.normalize = normalize
        self.objective = objective
        self.width_penalty = width_penalty
        self.width_strength = width_strength
        self.n_tune_components = n_tune_components
        self.n_tune_rows = n_tune_rows
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.loss = loss
        self.alpha = alpha
        self.selection = selection
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- what the base class asks

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice(self.objective, "objective", ("held-out", "training"))
        check_choice(self.width_penalty, "width_penalty", ("l2", "l1"))
        if self.width_strength != 0:
            check_positive(self.width_strength, "width_strength")
        for name in ("n_tune_components", "n_tune_rows"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name, integer=True)
        for name in ("max_iter", "patience"):
            check_positive(getattr(self, name), name, integer=True)
        check_positive(self.tol, "tol")
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction must be at least 0 and below 1; got {self.validation_fraction!r}."
            )
        if self._holds_out and fold_count(self.selection) < 2:
            raise ValueError(f"selection must be at least 2 folds: rows are held out; got {self.selection}.")

    @property
    def _holds_out(self) -> bool:
        """Whether folds are needed even where alpha is given: widths are learned by them."""
        return True

    def _job(self, source: Source) -> Job:
        return self._learning_job(source, self.n_components, self._fold_count(None))

    def _learning_job(self, source: Source, n_components: int, n_folds: int) -> Job:
        """A pass with so many features, whose widths alone go by blocks."""
        settings = FeatureSettings(
            self.kernel, self.gamma, n_components, self.n_terms, self.map, self.sampling, self.form
        )
        return self._job_of(source, parts_of(settings, None, source.n_features), n_folds)

    def _fit_features(self, sample: Any) -> None:
        """Features with the widths to start from; ``_learn_features`` puts those that are learned in their place."""
        self._full = self._width_features(self.n_components).fit(sample)
        self._take(self._full, self._full.start_)

    def _learn_features(self, source: Source, sample: Any, clock: Stopwatch, progress: Progress) -> None:
        features = self._full
        if self.n_tune_components is not None and self.n_tune_components < self.n_components:
            features = self._width_features(self.n_tune_components).fit(sample)
        rows, validation = self._tuning_rows(source, features.n_components, clock)
        if validation is not None and validation.source.n_rows < _LEAST_VALIDATION:
            validation = None
        objective = self._width_objective(features, rows, clock)
        search = WidthSearch(
            objective, validation, hasattr(self, "classes_"), progress, self.max_iter, self.tol, self.patience
        )
        found = search.run(self._first_alpha(features, rows, clock))
        self._remember(found, features.start_, objective.evaluations)
        self._take(self._full, found.log_widths)
        del self._full

    def _width_objective(self, features: Any, rows: TuningRows, clock: Stopwatch) -> WidthObjective:
        """What is minimised over the widths."""
        penalty = WidthPenalty(self.width_penalty, float(self.width_strength))
        return WidthObjective(features, rows, self.objective, penalty)

    # --- the parts of it

    def _width_features(self, n_components: int) -> WidthFeatures:
        return WidthFeatures(
            self.kernel, n_components, widths=self.widths, blocks=self.blocks, map=self.map, n_terms=self.n_terms,
            sampling=self.sampling, form=self.form, random_state=self._seed,
        )  # fmt: skip

    def _take(self, features: WidthFeatures, log_widths: np.ndarray) -> None:
        self.features_ = features.at(log_widths)
        self.kernel_ = self.features_.kernel_
        self.widths_ = np.exp(log_widths)
        self.width_names_, self.width_columns_ = list(features.names_), features.columns_

    def _tuning_rows(
        self, source: Source, n_components: int, clock: Stopwatch
    ) -> tuple[TuningRows, TuningRows | None]:
        """Rows to learn the widths on, and to validate them: a part in memory, or all of the source, read again."""
        whole: Source = source
        if self.n_tune_rows is not None and self.n_tune_rows < source.n_rows:
            chosen = choose_rows(source.n_rows, self.n_tune_rows, self._seed + 1)
            with clock("sample"):
                labels = source.labels()
                assert labels is not None
                whole = ArraySource(source.take(chosen), labels[chosen], f"{source.name}, rows to tune on")
        learning, validation = whole, None
        if round(self.validation_fraction * whole.n_rows) >= _LEAST_VALIDATION:
            learning, validation = split_source(whole, self.validation_fraction, self._seed)
        n_folds = min(fold_count(self.selection), learning.n_rows // 2)
        if n_folds < 2:
            raise DataError(
                f"{source.name}: n_samples = {learning.n_rows} are too few to hold some out, as learning widths does; "
                "4 rows would do."
            )
        job = self._learning_job(source, n_components, n_folds)
        # weights, adjoints and their columns side by side; the rows themselves, where they are a part in memory; and
        # the sample
        kept = whole.n_rows * source.row_bytes if whole is not source else 0.0
        kept += job.n_sampled * job.mapped_row_bytes
        job = replace(job, n_vectors=8 * n_folds, held_bytes=job.held_bytes + kept)
        chunk_rows = chunk_rows_within(job, parse_memory(self.memory))

        def reading(part: Source) -> TuningRows:
            return TuningRows(
                part,
                self._prepare,
                self._encode,
                self._target_shift(),
                self._seed,
                n_folds,
                chunk_rows,
                clock,
            )

        return reading(learning), None if validation is None else reading(validation)

    def _first_alpha(self, features: WidthFeatures, rows: TuningRows, clock: Stopwatch) -> float:
        """The strength given, scaled to the rows that are tuned on; or the best at the widths to start from."""
        if not isinstance(self.alpha, str) and np.ndim(self.alpha) == 0:
            return float(self.alpha)
        moments = rows.moments(features.at(features.start_), self._dtype)
        with clock("choose alpha"):
            return choose_alpha(moments, moments.whole(), self.alpha).best["alpha"]

    def _remember(self, found: WidthsFound, start: np.ndarray, evaluations: int) -> None:
        self.start_widths_, self.history_, self.stopped_ = np.exp(start), found.history, found.reason
        self.n_iter_, self.n_evaluations_ = max(1, len(found.history) - 1), evaluations

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        signed = self.kernel == "gaussian" or getattr(self.kernel, "is_signed", False)
        tags.input_tags.positive_only = not signed
        return tags


class FourierKernelLearner(ClassTargets, KernelLearner):
    """Kernel classifier that learns the widths of its kernel, at a cost linear in the rows: RFF-SKL.

    The kernel is a product over blocks of columns, k(x, y) = prod_j k_{s_j}(x_j, y_j), with an inverse width s_j each:
    for "exp-chi2" it is exp(-sum_j s_j^2/2 D_j^2(x, y)). L-BFGS searches log s with exact gradients, while the weights
    (of all classes, which share the kernel) are in closed form inside. The widths are found on a part of the rows with
    few features; then all rows are read once, as ``HistogramClassifier`` reads them, with the widths folded into its
    features.

    Parameters
    ----------
    kernel : "exp-chi2" and the other exponential kernels, "gaussian", "skewed-chi2", "skewed-intersection", or such an
        object (its width is not used).
    blocks : columns of the descriptors as slices or lists, in a list or a mapping of names; each column in exactly one.
    widths : "block" (one a block), "bin" (one a column), "one", or whole numbers (bins,) that name the group of each
        column.
    objective : "held-out": squared error on folds held out, over that of the mean, exactly, from moments; the strength
        is learned with the widths. "training": squared error with the penalty of the weights (the paper's); it needs a
        penalty on the widths, or the narrowest kernel wins.
    width_penalty, width_strength : "l2" or "l1", and rho: rho sum_j (s_j / start_j)^2, or of the ratios themselves.
    n_tune_components, n_tune_rows : features and rows to learn the widths with; None is all of them (the source is then
        read twice an evaluation).
    validation_fraction : of the rows to tune on: they score each iteration and stop the search early; 0 is none.
    max_iter, tol, patience : iterations at most; least relative decrease of the objective over two iterations;
        iterations without a lower error on the validation rows.
    n_components, n_terms, map, sampling, form, normalize, loss, alpha, selection, memory, precision, n_jobs,
        random_state, verbose : of the fit that follows, as in ``HistogramClassifier``. A ``loss`` other than the square
        is minimised with the widths that the square loss found.

    Learned: ``widths_`` s (r,), ``width_names_``, ``width_columns_`` (the width of each column), ``start_widths_``,
    ``history_``: one dictionary an iteration with "iteration", "objective", "validation_score" (accuracy, or R^2 of a
    regression), "validation_error" (squared, over that of the mean), "strength", "widths", "seconds"; ``stopped_``, why
    it ended; ``n_iter_``, ``n_evaluations_``; and what ``HistogramClassifier`` learns: ``classes_``, ``features_``, ...

    ``fit`` raises ValueError for blocks that overlap or miss columns and for kernels without widths; DataError for a
    block that is constant, too few rows, and whatever ``HistogramClassifier`` refuses; ValueError, naming the width,
    where one leaves the range of the precision.

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.3.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> rows = {f"row {i}": slice(8 * i, 8 * i + 8) for i in range(8)}
    >>> model = FourierKernelLearner(
    ...     blocks=rows, n_components=256, n_tune_components=128, max_iter=3, random_state=0
    ... ).fit(X[:1200], y[:1200])
    >>> model.widths_.shape, bool(model.history_[-1]["objective"] < model.history_[0]["objective"])
    ((8,), True)
    """


class FourierKernelRegressor(RealTargets, KernelLearner):
    """Kernel ridge regression that learns the widths of its kernel; parameters as in ``FourierKernelLearner``.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(6), size=400)
    >>> model = FourierKernelRegressor("gaussian", widths="bin", n_components=128, max_iter=10, random_state=0)
    >>> widths = model.fit(X, np.sin(9 * X[:, 0])).widths_
    >>> int(widths.argmax())  # the first bin is all that matters
    0
    """
