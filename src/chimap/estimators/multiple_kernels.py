"""Kernels of several channels, weighted by learning: RFF-MKL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from chimap._validation import DataError, check_choice, check_positive
from chimap.data import Source
from chimap.engines import Job, Progress, Stopwatch
from chimap.engines.rows import FeatureRows
from chimap.estimators.base import HistogramModel
from chimap.estimators.channel_widths import ChannelObjective, ChannelWidths
from chimap.estimators.kernel_learning import KernelLearner
from chimap.estimators.targets import ClassTargets, RealTargets
from chimap.estimators.width_search import TuningRows, WidthPenalty
from chimap.features.fourier.widths import partition
from chimap.fit.feature_settings import features_of
from chimap.fit.smooth import named_loss, unshifted
from chimap.losses import CATALOGUE as LOSSES
from chimap.losses import Loss, LossAt, LossSums, Square
from chimap.moments import FoldMoments, Moments, Symmetric
from chimap.penalties import L21
from chimap.selection import SelectionResult, of_path
from chimap.solvers import GroupSolution, LinearSolution, LossProblem, SquareProblem, follow
from chimap.solvers.group_passes import metric_of
from chimap.solvers.group_path import KernelPath, held_out_errors, largest_alpha
from chimap.solvers.sparse import alphas_below

_SEARCH_TOLERANCE = 1e-3  # of residuals while strengths are compared
_SEARCH_PASSES = 60  # a strength at most, while strengths are compared
_SMALLEST = (
    1e-2  # of the largest strength: the end of a path by passes, whose number grows as the strength falls
)
_MOST_JOINT = 0.3  # of the largest strength: what widths are learned at
_PATIENCE = 4  # strengths without a lower held-out loss, after which a search by passes ends


class MultipleKernelModel(KernelLearner):
    """A sum of kernels, one a channel, whose weights are learned. See ``MultipleKernelLearner``."""

    map = None  # of the base class, which has more settings
    objective = "training"

    def __init__(
        self,
        kernel: Any = "exp-chi2",
        *,
        blocks: Any = None,
        features: Any = "auto",
        gamma: Any = "mean",
        n_components: int = 512,
        n_terms: int = 2,
        sampling: str = "auto",
        form: str = "pair",
        normalize: str | None = None,
        loss: Any = "square",
        shared: bool = False,
        group_weights: Sequence[float] | None = None,
        joint: bool = False,
        widths: str = "block",
        width_penalty: str = "l2",
        width_strength: float = 0.0,
        n_tune_components: int | None = 256,
        n_tune_rows: int | None = 10_000,
        validation_fraction: float = 0.1,
        max_iter: int = 30,
        tol: float = 1e-3,
        patience: int = 5,
        alpha: Any = "auto",
        n_alphas: int = 30,
        selection: Any = "auto",
        memory: str | int = "1GiB",
        precision: str = "float32",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.features = features
        self.gamma = gamma
        self.n_components = n_components
        self.n_terms = n_terms
        self.sampling = sampling
        self.form = form
        self.normalize = normalize
        self.loss = loss
        self.shared = shared
        self.group_weights = group_weights
        self.joint = joint
        self.widths = widths
        self.width_penalty = width_penalty
        self.width_strength = width_strength
        self.n_tune_components = n_tune_components
        self.n_tune_rows = n_tune_rows
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.alpha = alpha
        self.n_alphas = n_alphas
        self.selection = selection
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- what the fit asks for

    def _check_settings(self) -> None:
        super()._check_settings()
        check_positive(self.n_alphas, "n_alphas", integer=True)
        for name in ("shared", "joint"):
            check_choice(getattr(self, name), name, (False, True))
        check_choice(self.widths, "widths", ("block", "bin"))

    @property
    def _holds_out(self) -> bool:
        return (
            self.joint
        )  # kernel weights alone take no folds where alpha is given; where it is not, they are counted

    def _fit_features(self, sample: Any) -> None:
        partition(self.blocks, sample.shape[1])  # each column belongs to one kernel
        if self.joint:
            self._bins = sample.shape[1]
            super()._fit_features(sample)
            return
        self.features_ = features_of(self._parts(sample.shape[1]), self._seed).fit(sample)
        self.kernel_ = self.features_.kernel_

    def _job(self, source: Source) -> Job:
        job = HistogramModel._job(self, source)
        each = [part.footprint.features for part in self._parts(source.n_features)]
        # the moments of the rows outside a fold; eigenvectors of the blocks, with the workspace of the largest
        rest = Symmetric.nbytes(job.n_features) if job.n_folds > 1 else 0
        return replace(job, solver_bytes=rest + 8 * (sum(m * m for m in each) + 3 * max(each) ** 2))

    # --- widths

    def _learn_features(self, source: Source, sample: Any, clock: Stopwatch, progress: Progress) -> None:
        if self.joint:
            super()._learn_features(source, sample, clock, progress)

    def _width_features(self, n_components: int) -> Any:
        return ChannelWidths(self._parts(self._bins), n_components, self.widths, self._seed)

    def _learning_job(self, source: Source, n_components: int, n_folds: int) -> Job:
        parts = [
            replace(part, settings=replace(part.settings, n_components=n_components))
            for part in self._parts(source.n_features)
        ]
        job = self._job_of(source, parts, n_folds)
        if self._is_ridge():
            return job
        # features of the rows to tune on stay while the weights are found
        n_rows = source.n_rows if self.n_tune_rows is None else min(self.n_tune_rows, source.n_rows)
        return replace(job, n_kept=n_rows, kept_itemsize=self._dtype.itemsize)

    def _first_alpha(self, features: Any, rows: TuningRows, clock: Stopwatch) -> float:
        """The strength given, or the best by folds of the rows to tune on, at the widths to start from."""
        if not isinstance(self.alpha, str) and np.ndim(self.alpha) == 0:
            return float(self.alpha)
        plain = features.at(features.start_)
        moments = rows.moments(plain, self._dtype)
        with clock("choose alpha"):
            whole, penalty = moments.whole(), self._penalty(plain)
            largest = largest_alpha(whole, penalty)
            # at the largest no kernel is used, and a width that is not used has no gradient
            alphas = np.minimum(self._alphas(largest, _SMALLEST), _MOST_JOINT * largest)
            errors = held_out_errors(moments, whole, penalty, alphas, _SEARCH_TOLERANCE)
            return float(of_path(moments, whole, alphas, errors).best["alpha"])

    def _width_objective(self, features: Any, rows: TuningRows, clock: Stopwatch) -> ChannelObjective:
        plain = features.at(features.start_)
        whole = rows.moments(plain, self._dtype).whole()
        penalty = WidthPenalty(self.width_penalty, float(self.width_strength))
        return ChannelObjective(features, rows, self._penalty(plain), self._loss_of(whole), penalty)

    # --- what the weights are found from

    def _loss_of(self, whole: Moments) -> Loss:
        return named_loss(self.loss, whole) if isinstance(self.loss, str) else self.loss

    def _penalty(self, features: Any = None) -> L21:
        borders = (features or self.features_).borders_.tolist()
        groups = [slice(a, b) for a, b in pairwise(borders)]
        return L21(1.0, groups, borders[-1], self.group_weights, bool(self.shared))

    # --- from moments

    def _solve(self, moments: FoldMoments, clock: Stopwatch, progress: Progress) -> None:
        whole, penalty = moments.whole(), self._penalty()
        alphas = self._alphas(largest_alpha(whole, penalty), 1e-3)
        errors = None
        if len(moments.folds) > 1:
            with clock("choose alpha"):
                progress.stage("alpha", len(moments.folds) * alphas.size, "alpha")
                errors = held_out_errors(
                    moments, whole, penalty, alphas, _SEARCH_TOLERANCE, lambda found: progress.advance()
                )
        with clock("solve"):
            progress.stage("path", alphas.size, "alpha")
            path = follow(SquareProblem(whole, penalty), alphas, lambda found: progress.advance())
        self.selection_ = None if errors is None else of_path(moments, whole, alphas, errors)
        # too few rows for folds: the middle of the path
        chosen = alphas.size // 2 if self.selection_ is None else self.selection_.chosen
        self.n_passes_, self.loss_ = 1, Square()
        self._learned(path[chosen], path[chosen], whole, path, chosen)

    def _alphas(self, largest: float, share: float) -> np.ndarray:
        """Descending: those given, or a path from the largest to a share of it."""
        if isinstance(self.alpha, str):
            return alphas_below(largest, self.n_alphas, share)
        return np.sort(np.atleast_1d(np.asarray(self.alpha, dtype=np.float64)))[::-1]

    # --- by passes

    def _solve_loss(
        self, moments: FoldMoments, rows: FeatureRows, clock: Stopwatch, progress: Progress
    ) -> None:
        whole, penalty = moments.whole(), self._penalty()
        self.loss_ = loss = self._loss_of(whole)
        n_folds = len(moments.folds)
        self.n_passes_ = 0
        with clock("solve"):
            metric = metric_of(whole, penalty)

        def problem_of(folds: Sequence[int], is_search: bool) -> LossProblem:
            def sums(at: LossAt) -> LossSums:
                self.n_passes_ += 1
                progress.advance()
                return rows.sums(at, folds)

            if not is_search:
                return LossProblem(loss, sums, whole, penalty, metric=metric)
            return LossProblem(
                loss, sums, whole, penalty, _SEARCH_TOLERANCE, _SEARCH_PASSES, metric, warns=False
            )

        everything = problem_of(range(n_folds), False)
        errors: list[float] = []
        if n_folds == 1:
            with clock("passes"):
                progress.stage("passes", None, "passes")
                alphas = self._alphas(everything.largest, _SMALLEST)
                path = follow(everything, alphas if alphas.size == 1 else alphas[: alphas.size // 2 + 1])
                chosen, found = len(path) - 1, path[-1]
        else:
            with clock("choose alpha"):
                progress.stage("alpha", None, "passes")
                part = problem_of(range(1, n_folds), True)

                def is_enough(found: GroupSolution) -> bool:
                    errors.append(held_out_loss(loss, rows, found))
                    return len(errors) - 1 - int(np.argmin(errors)) >= _PATIENCE

                path = follow(part, self._alphas(part.largest, _SMALLEST), is_enough)
                chosen = int(np.argmin(errors))
            with clock("passes"):
                progress.stage("passes", None, "passes")
                found = everything.solve(path[chosen].alpha, path[chosen])
        self.selection_ = None
        if errors:
            tried = {"alpha": np.array([one.alpha for one in path])}
            scores = np.array(errors)[:, None]
            self.selection_ = SelectionResult("holdout", tried, scores, np.ones(1), chosen, measure="loss")
        self._learned(found, unshifted(found, whole), whole, path, chosen)

    def _learned(
        self, found: GroupSolution, plain: LinearSolution, whole: Moments, path: list[GroupSolution],
        chosen: int,
    ) -> None:  # fmt: skip
        penalty = self._penalty()
        if not self.joint:
            self.n_iter_ = self.n_passes_

        def weights(solution: LinearSolution) -> np.ndarray:
            return np.ascontiguousarray(penalty.norms(solution.coef).T) / np.sqrt(2)

        self._coef, self._intercept, self.alpha_ = plain.coef, plain.intercept, found.alpha
        self.kernel_weights_ = weights(found)
        self.kkt_residual_, self.objective_ = found.residual, found.objective
        self.path_ = KernelPath(
            np.array([one.alpha for one in path]), np.array([weights(one) for one in path]),
            np.array([one.objective for one in path]), np.array([one.residual for one in path]), chosen,
        )  # fmt: skip
        self.n_rows_ = whole.count
        self._stale = False

    @property
    def channels_(self) -> list[str]:
        """Names of the channels, in the order of ``kernel_weights_``."""
        return list(self.features_.names_)

    def describe(self) -> dict[str, Any]:
        """See ``HistogramClassifier``; and of each channel its share of the kernel weights, summed over the targets."""
        totals = self.kernel_weights_.sum(axis=0)
        shares = totals / (totals.sum() or 1.0)
        return super().describe() | {
            "channels": dict(zip(self.channels_, shares.tolist(), strict=True)),
        }


def held_out_loss(loss: Loss, rows: FeatureRows, found: LinearSolution) -> float:
    """Mean loss over the rows of fold 0, summed over targets. Raises DataError where there are none."""
    sums = rows.sums(LossAt(loss, found.coef, found.intercept), [0])
    if sums.count == 0:
        raise DataError(
            "fold 0 holds no rows: too few to choose a strength by. Use fewer folds, or give one."
        )
    return float(sums.values.sum()) / sums.count


class MultipleKernelLearner(ClassTargets, MultipleKernelModel):
    """Classifier on a weighted sum of kernels, one a channel, whose weights are learned at linear cost (RFF-MKL).

    Each channel, a block of columns such as a descriptor, gets random features z_j of its own kernel; weights minimise

        sum loss(y, sum_j z_j'w_j + b) + alpha sum_j |w_j|_2,

    one class versus the others each. The norms make channels that do not help vanish as a whole. It is multiple kernel
    learning with the l1 norm on the weights d_j of the kernels, sum_j d_j k_j: d_j = |w_j| / sqrt(2), at the strength
    sqrt(2) / C (GMKL; ``solvers.gmkl`` is the exact counterpart).

    With the square loss one pass over the rows gives their moments, and the moments the whole path of strengths, from
    the least at which no kernel is used downwards, and its exact cross-validation. Other losses pass over the rows
    again, from features in memory where they fit the budget; their strength is chosen on one fold held out.

    Parameters
    ----------
    kernel : one, or a list of one a channel; see ``HistogramClassifier``.
    blocks : the channels: columns as slices or lists, in a list or a mapping of names. Each column must be in exactly
        one. None is a single channel.
    gamma, n_terms, sampling, form, normalize : see ``HistogramClassifier``.
    n_components : random features of each channel.
    loss : "square", "logistic", "squared_hinge", "smooth_hinge", or an object of ``chimap.losses``.
    joint : whether widths are learned with the weights (the joint form), or the weights alone (the average form). The
        widths minimise the same objective, on a part of the rows with few features, by L-BFGS, from those of
        gamma="mean" on; the weights are at their optimum all the while. Then all rows are read with these widths.
    widths : of the joint form: "block", one a channel, or "bin", one a column.
    width_penalty, width_strength, n_tune_components (a channel), n_tune_rows, validation_fraction, max_iter, tol,
        patience : of the joint form; see ``FourierKernelLearner``. Without a penalty on the widths it is the
        validation rows that keep kernels from becoming too narrow.
    shared : whether all classes use the same kernels: the norm is then over a channel's weights for all classes.
    group_weights : of the channels in the penalty, one positive number each; None is 1. A channel of larger weight has
        to help more.
    alpha : "auto" (a path of ``n_alphas`` from the largest, at which no kernel is used, to a thousandth of it,
        of which the folds choose one; to a hundredth, or until the held-out loss has risen four times, for losses other
        than the square), numbers to choose from, or one number.
    selection, memory, precision, n_jobs, random_state, verbose : see ``HistogramClassifier``.

    Learned: ``kernel_weights_`` (t, r), d_j of each class (one row for two classes, or if ``shared``);
    ``channels_``, their names; ``path_``, a ``KernelPath``; ``kkt_residual_``, the largest violation of an optimality
    condition over the strength; ``objective_``; ``alpha_``, ``coef_``, ``intercept_``, ``features_``, ``kernel_``
    (the plain sum), ``classes_``, ``n_passes_``, ``n_iter_`` (passes; steps of the joint form). Of the joint form
    ``widths_``, ``width_names_``, ``width_columns_``, ``start_widths_``, ``history_``, ``stopped_`` as in
    ``FourierKernelLearner``.

    ``fit`` raises ValueError for channels that overlap or miss columns and for group weights that are not positive, one
    a channel; DataError for a fold without rows; and what ``HistogramClassifier`` does.

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.4; Varma and Babu, More generality in
    efficient multiple kernel learning (GMKL).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.dirichlet(np.ones(4), size=(300, 3)).reshape(300, 12), rng.integers(0, 2, 300)
    >>> X[:, 4:8] = np.where(y[:, None] == 0, X[:, 4:8], rng.dirichlet([4, 4, 1, 1], size=300))  # one says something
    >>> channels = {"colour": slice(0, 4), "shape": slice(4, 8), "size": slice(8, 12)}
    >>> model = MultipleKernelLearner(blocks=channels, n_components=64, random_state=0).fit(X, y)
    >>> model.channels_[int(model.kernel_weights_[0].argmax())]
    'shape'
    """

    _losses: ClassVar[tuple[str, ...]] = (
        "square",
        *(n for n, loss in LOSSES.items() if loss.domain == "sign"),
    )


class MultipleKernelRegressor(RealTargets, MultipleKernelModel):
    """Regression on a weighted sum of kernels whose weights are learned; parameters as in ``MultipleKernelLearner``.

    loss is "square" or "epsilon_insensitive" (0.1 of the targets' standard deviation), or an object
    ``losses.EpsilonInsensitive``, as in the paper.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=(300, 2)).reshape(300, 8)
    >>> y = np.sqrt(X[:, 0]) - X[:, 1]
    >>> model = MultipleKernelRegressor(blocks=[slice(0, 4), slice(4, 8)], n_components=64, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.kernel_weights_[0, 0] > 10 * model.kernel_weights_[0, 1])
    (True, True)
    """
