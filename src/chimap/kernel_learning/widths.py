"""The search for widths: the objective, L-BFGS or rounds of slopes that lower it, the learner and its features."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

import numpy as np
from scipy.optimize import minimize

from chimap import _arrays, _threads
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike, Parameters, Rows
from chimap._validation import DataError, ParameterError, check_choice, check_positive
from chimap.data import ArraySource, Source
from chimap.data.source import choose_rows
from chimap.data.split import split_source
from chimap.engines import Job, Progress, Stopwatch, chunk_rows_within
from chimap.features.base import FittedFeatures
from chimap.features.fourier import WidthFeatures
from chimap.features.fourier.base import Slopes
from chimap.features.fourier.features import FourierFeatures
from chimap.features.fourier.skewed import SkewedFourierFeatures
from chimap.features.mapped_functions import Waves
from chimap.features.scaled import Scale, ScaledWidths
from chimap.features.weighted import Half, Relevance, output_mixtures
from chimap.kernel_learning.tuning import TuningRows
from chimap.losses import Loss
from chimap.machines.jobs import job_of
from chimap.machines.method import LearnedWidths, Method
from chimap.machines.objective import PenalisedLoss
from chimap.machines.rows import PreparedRows
from chimap.moments import FoldMoments, Moments
from chimap.recipe import Recipe
from chimap.recipe.parts import FeatureBlock, parts_of
from chimap.selection.base import OpenSettings, checked_alpha, fold_count
from chimap.selection.choose import compare
from chimap.selection.climb import Scored, Setting, climb
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.lbfgs import stop_reason
from chimap.solvers.ridge import LinearSolution, ridge
from chimap.solvers.widths import ObjectiveSlopes, held_out, total_scatter, training

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult
    from sklearn.base import BaseEstimator


class Adaptable(Protocol):
    """Fitted features that can take any widths; see ``WidthFeatures``."""

    @property
    def start_(self) -> np.ndarray:
        """Log widths (r,) from which the search starts."""
        ...

    @property
    def names_(self) -> list[str]:
        """Names of the widths."""
        ...

    @property
    def columns_(self) -> np.ndarray:
        """Index of the width of each column, (bins,)."""
        ...

    @property
    def unit_(self) -> FourierFeatures | SkewedFourierFeatures:
        """The features with all widths at 1."""
        ...

    @property
    def n_components(self) -> int:
        """Number of features."""
        ...

    @property
    def n_widths(self) -> int:
        """Number of widths, r."""
        ...

    def at(self, log_widths: np.ndarray) -> Any:
        """Return plain features with these log widths (r,)."""
        ...

    def pullback_at(self, features: Any, rows: Rows, slopes: Slopes) -> np.ndarray:
        """Return dL/d log s (r,) for checked rows."""
        ...


# Log of the largest factor by which a width, or the strength, may leave its start: beyond it, a block has no effect
# or is the only one that has.
LOG_REACH = np.log(1e4)
FIRST_STEP = 0.7  # first step of the log width with the steepest slope: a factor of two


@dataclass(frozen=True)
class WidthPenalty:
    """rho sum_j r_j^2 ("l2") or rho sum_j r_j ("l1"), with r_j the widths relative to those where the search starts."""

    kind: str
    rho: float

    def value_and_slope(self, ratios: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the penalty, and its derivative with respect to log r, (r,)."""
        power = 2 if self.kind == "l2" else 1
        terms = self.rho * ratios**power
        return float(terms.sum()), power * terms


class WidthObjective:
    """The objective and its gradient in x = [log widths (r,), log strength], in two passes over the rows.

    kind: "held-out" (the strength is learned too) or "training" (it is fixed: minimising would drive it to zero).
    """

    def __init__(self, features: Adaptable, rows: TuningRows, kind: str, penalty: WidthPenalty):
        self.features, self.rows, self.kind, self.penalty = features, rows, kind, penalty
        self.dtype = features.unit_.projection_.matrix.dtype
        self.evaluations = 0
        self.whole: Moments | None = None  # moments of the last evaluation

    def outcome(self, x: np.ndarray) -> tuple[FittedFeatures, ObjectiveSlopes]:
        """Return the features at these widths, and the objective without the penalty, in one pass."""
        plain = self.features.at(x[:-1])
        moments = self.rows.moments(plain, self.dtype)
        whole, alpha = moments.whole(), float(np.exp(x[-1]))
        with self.rows.clock("solve"):
            value = held_out(moments, whole, alpha) if self.kind == "held-out" else training(whole, alpha)
        self.whole = whole
        return plain, value

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient, in two passes.

        Raise DataError, naming a parameter, if one is not finite.
        """
        self.evaluations += 1
        plain, held = self.outcome(x)
        gradient = np.zeros(x.size)
        with self.rows.clock("gradient"):
            for rows, targets, folds, weights in self.rows.chunks():

                def slopes(
                    part: slice,
                    psi: np.ndarray,
                    Y: np.ndarray = targets,
                    f: np.ndarray = folds,
                    w: np.ndarray = weights,
                ) -> np.ndarray:
                    slope = held.slopes.of(psi, Y[part], f[part])
                    slope *= w[part, None].astype(slope.dtype)
                    return slope

                gradient[:-1] += self.features.pullback_at(plain, rows, slopes)
        gradient[-1] = held.alpha_slope if self.kind == "held-out" else 0.0
        penalty, slope = self.penalty.value_and_slope(np.exp(x[:-1] - self.features.start_))
        gradient[:-1] += slope
        value = held.value + penalty
        self._check_finite(value, gradient, x)
        return value, gradient

    def weights(self, x: np.ndarray) -> LinearSolution:
        """Return the weights fitted on all tuning rows where the objective was evaluated last."""
        assert self.whole is not None
        return ridge(self.whole, float(np.exp(x[-1])))

    def _check_finite(self, value: float, gradient: np.ndarray, x: np.ndarray) -> None:
        if np.isfinite(value) and np.isfinite(gradient).all():
            return
        names = [f"the width of {name!r}" for name in self.features.names_] + ["the strength"]
        bad = np.flatnonzero(~np.isfinite(gradient))
        j = int(bad[0]) if bad.size == 1 else int(np.argmax(np.abs(x - np.append(self.features.start_, 0))))
        raise DataError(
            Message(
                "the objective of the widths is {:g}, with a gradient of {:g} in {}, which is {:.3g} here. Use "
                "{precision='float64'}, a larger strength, or leave its columns out.",
                value,
                gradient[j],
                names[j],
                np.exp(x[j]),
            )
        )


def least_alpha(moments: Moments, dtype: np.dtype) -> float:
    """Return the strength below which products in this precision may fail to stay positive definite."""
    trace = float(moments.scatter_diagonal().sum())
    return float(np.finfo(dtype).eps) * max(trace, float(np.finfo(float).tiny))


@dataclass(frozen=True)
class WidthsFound:
    """The result of a search: log_widths (r,), the strength, the history and the reason why it stopped.

    history: one dictionary per iteration, see ``FourierKernelLearner``.
    """

    log_widths: np.ndarray
    alpha: float
    history: list[Parameters]
    reason: str


class WidthSearch:
    """L-BFGS from the widths of the features, with a record of each iteration and early stopping.

    validation: rows that only score each iteration, or None. is_classifier: whether their score is accuracy, or R^2.
    max_iter: most iterations. tol: least relative decrease of the objective over two iterations. patience: iterations
    without a lower validation error. keeps_alpha: whether the strength is fixed.
    """

    def __init__(
        self,
        objective: WidthObjective,
        validation: TuningRows | None,
        is_classifier: bool,
        progress: Progress,
        max_iter: int,
        tol: float,
        patience: int,
        keeps_alpha: bool = False,
    ):
        self.objective, self.validation, self.is_classifier = objective, validation, is_classifier
        self.progress, self.max_iter, self.tol, self.patience = progress, max_iter, tol, patience
        self.keeps_alpha = keeps_alpha
        self.history: list[Parameters] = []
        self.reason = ""
        self._last: tuple[np.ndarray, float, np.ndarray] | None = None

    def run(self, alpha: float) -> WidthsFound:
        """Search from the widths of the features and this strength."""
        start = np.append(self.objective.features.start_, np.log(alpha))
        self._began = time.perf_counter()
        self.progress.stage("widths", self.max_iter, "iterations")
        _, gradient = self._evaluate(start)
        self._record(start)
        bounds = [(v - LOG_REACH, v + LOG_REACH) for v in start]
        assert self.objective.whole is not None
        least = np.log(least_alpha(self.objective.whole, self.objective.dtype))
        bounds[-1] = (min(start[-1], max(bounds[-1][0], least)), bounds[-1][1])
        # The first step of L-BFGS-B is minus the gradient: the objective is scaled to give it a suitable length.
        steepest = float(np.abs(gradient).max())
        scale = FIRST_STEP / steepest if steepest > 0 else 1.0

        def scaled(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self._evaluate(x)
            return scale * value, scale * gradient

        end = minimize(
            scaled,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=self._stop,
            options={"maxiter": self.max_iter, "maxfun": 3 * self.max_iter + 3, "ftol": 0.0, "gtol": 1e-9, "maxls": 10},
        )
        best = min(self.history, key=lambda step: step["validation_error"] if self.validation else step["objective"])
        reason = self.reason or stop_reason(end)
        return WidthsFound(np.log(best["widths"]), best["alpha"], self.history, reason)

    def _evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if self._last is None or not np.array_equal(self._last[0], x):
            self._last = (x.copy(), *self.objective(x))
        return self._last[1], self._last[2]

    def _stop(self, intermediate_result: OptimizeResult) -> None:
        """Record an iteration, and end the search if it no longer gains."""
        self._record(intermediate_result.x)
        self.progress.advance()
        values = [step["objective"] for step in self.history]
        if len(values) > 2 and values[-3] - values[-1] <= self.tol * abs(values[-3]):
            self.reason = "the objective no longer falls"
        errors = [step["validation_error"] for step in self.history]
        if self.validation is not None and len(errors) - 1 - int(np.argmin(errors)) >= self.patience:
            self.reason = f"the error on validation rows has not fallen for {self.patience} iterations"
        if self.reason:
            raise StopIteration

    def _record(self, x: np.ndarray) -> None:
        value, _ = self._evaluate(x)
        error, score = self._validated(x)
        step = {
            "iteration": len(self.history),
            "objective": value,
            "validation_error": error,
            "validation_score": score,
            "alpha": float(np.exp(x[-1])),
            "widths": np.exp(x[:-1]),
            "seconds": time.perf_counter() - self._began,
        }
        self.history.append(step)
        measure = "accuracy" if self.is_classifier else "R²"
        validated = "" if score is None else f", validation {measure} {score:.4f}"
        self.progress.note(f"iteration {step['iteration']:>3}: objective {value:.5f}{validated}")

    def _validated(self, x: np.ndarray) -> tuple[float | None, float | None]:
        """Return the error (relative to that of the mean) and the score on the validation rows.

        They are those of the weights fitted on all tuning rows.
        """
        if self.validation is None:
            return None, None
        whole = self.objective.whole
        assert whole is not None
        plain = self.objective.features.at(x[:-1])
        weights = self.objective.weights(x)
        squares, n_right, n = 0.0, 0.0, 0.0
        for rows, Y, _, row_weights in self.validation.chunks():
            Z = np.empty((rows.shape[0], whole.n_features), dtype=self.objective.dtype)
            plain.features_into(rows, Z)
            outputs = Z @ weights.coef.astype(Z.dtype) + weights.intercept
            squares += float(row_weights @ np.square(outputs - Y).sum(axis=1))
            n_right += float(row_weights @ _same_side(outputs, Y))
            n += float(row_weights.sum())
        error = squares / (n * total_scatter(whole) / whole.count)
        return error, n_right / n if self.is_classifier else 1 - error


def _same_side(outputs: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return whether the outputs (n, t) choose the class of the targets 1 and -1."""
    if Y.shape[1] == 1:
        return (outputs[:, 0] > 0) == (Y[:, 0] > 0)
    return outputs.argmax(axis=1) == Y.argmax(axis=1)


SLOPE_ROWS = 400  # rows at which slopes are evaluated
SPLITS_OF_FOLDS = 4  # splits of the folds into halves
MOST_OCTAVES = 8  # octaves of gamma by which a round may move
# Weight of a group on which no score depends, relative to a mean of 1: the group may matter in the next round.
LEAST_WEIGHT = 1e-6


class WidthRounds(WidthSearch):
    """Rounds of widths, each derived from the slopes of the model with the last widths.

    A group j of bins with width s_j gets s_j^2 in proportion to sqrt(G_j). Here G_j is the mean over its bins and over
    rows of sum_c (df_c/du)^2, minus what is due to chance (``Relevance`` compares models of two halves of the folds).
    The strength and the overall width of each round have the least error on held-out folds, found step by step. Rounds
    go on while the validation score rises.

    Source: Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning, Science 2024.
    """

    def run(self, alpha: float) -> WidthsFound:
        """Run the rounds from the widths of the features and this strength."""
        self._began = time.perf_counter()
        self.progress.stage("widths", self.max_iter, "rounds")
        rows = self._slope_rows()
        x = self._best_scale(np.append(self.objective.features.start_, np.log(alpha)))
        self._record(x)
        for _ in range(self.max_iter):
            x = self._best_scale(self._next_widths(x, rows))
            self._record(x)
            self.progress.advance()
            if not self._score_of(-1).beats(self._score_of(-2)):
                self.reason = "the score no longer rises"
                break
        best = 0
        for i in range(1, len(self.history)):
            best = i if self._score_of(i).beats(self._score_of(best)) else best
        step = self.history[best]
        return WidthsFound(np.log(step["widths"]), step["alpha"], self.history, self.reason or "max_iter rounds")

    def _score_of(self, i: int) -> Scored:
        """Return the score of a round: on the validation rows, or on the folds if there are none."""
        step = self.history[i]
        if step["validation_score"] is None:
            return Scored(-step["objective"], step["objective"])
        return Scored(step["validation_score"], step["validation_error"])

    def _best_scale(self, x: np.ndarray) -> np.ndarray:
        """Return the overall width and strength of the least held-out error, climbed to from x; keep its moments."""
        tried: dict[int, tuple[float, float]] = {}
        least = np.inf

        def at(octave: int) -> tuple[float, float]:
            nonlocal least
            if octave not in tried:
                value, log_alpha, moments = self._with_alpha(x[:-1] + octave * np.log(2) / 2, x[-1])
                tried[octave] = value, log_alpha
                if value < least or len(tried) == 1:  # the moments of others are freed
                    least, self._moments = value, moments
            return tried[octave]

        def better(setting: Setting, best: Setting) -> bool:
            return abs(setting[1]) <= MOST_OCTAVES and at(setting[1])[0] < at(best[1])[0]

        octave = climb(better, (0, 0), [(0, -1), (0, 1)])[1]
        value, log_alpha = at(octave)
        self.objective.whole = self._moments.whole()
        point = np.append(x[:-1] + octave * np.log(2) / 2, log_alpha)
        self._last = point, value, np.zeros(x.size)
        return point

    def _with_alpha(self, log_widths: np.ndarray, log_alpha: float) -> tuple[float, float, FoldMoments]:
        """Return the held-out squared error relative to that of the mean, the log strength and the moments.

        They are those of the best strength at these widths.
        """
        self.objective.evaluations += 1
        moments = self.objective.rows.moments(self.objective.features.at(log_widths), self.objective.dtype)
        alpha = float(np.exp(log_alpha))
        with self.objective.rows.clock("solve"):
            problem = RidgeProblem(moments, spans=False)
            least = least_alpha(problem.whole, self.objective.dtype)
            open = OpenSettings((alpha,)) if self.keeps_alpha else OpenSettings(None, near=alpha, least=least)
            compared, alpha = compare(problem, open)
        assert compared.result is not None
        error = float(compared.result.means[compared.result.chosen]) / (compared.result.baseline or 1.0)
        return error, float(np.log(alpha)), moments

    def _slope_rows(self) -> Rows:
        """Return rows evenly spread over those to learn from."""
        step, first, taken = max(1, self.objective.rows.n_rows // SLOPE_ROWS), 0, []
        for rows, *_ in self.objective.rows.chunks():
            taken.append(_arrays.take_rows(rows, slice(-first % step, None, step)))
            first += rows.shape[0]
        return _arrays.stack_rows(taken)

    def _next_widths(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the widths that the slopes at x suggest, with the same mean exponent; the strength stays."""
        features = self.objective.features
        with self.objective.rows.clock("gradient"):
            bins, mapped, relevance = self._relevance(x, rows)
            groups, n = features.columns_[bins], features.n_widths
            G = relevance.summed(groups, n).above_noise() / np.bincount(groups, minlength=n)
        weights = np.sqrt(G)
        if not weights.any():
            return x
        weights = np.maximum(weights / weights.mean(), LEAST_WEIGHT)
        spread = np.bincount(groups, weights=mapped.var(axis=0), minlength=n)
        total = float(np.exp(2 * x[:-1]) @ spread)
        return np.append((np.log(weights) + np.log(total / (weights @ spread))) / 2, x[-1])

    def _relevance(self, x: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray, Relevance]:
        """Return the bin of each coordinate (p,), the mapped rows (r, p), and how relevant the coordinates are."""
        dtype, folds = self.objective.dtype, self._moments.folds
        model = self.objective.features.at(x[:-1]).mapped_model(*self._weights(folds, x[-1]))
        assert model is not None
        mapped, waves = model.rows(rows), cast(Waves, model.function)
        frequencies = np.ascontiguousarray(waves.frequencies.T, dtype)
        slopes = waves.slopes(mapped).astype(dtype)
        mixtures = output_mixtures(folds[0].n_targets, np.random.default_rng(0))
        scale = np.sqrt(2.0 / self.objective.features.n_components)
        gradients = []
        for k in range(min(SPLITS_OF_FOLDS, len(folds))):
            turned, middle = [*folds[k:], *folds[:k]], len(folds) // 2
            coefs = (self._weights(half, x[-1])[0] for half in (turned[:middle], turned[middle:]))
            halves = [Half(frequencies, (scale * coef @ mixtures).astype(dtype), slopes) for coef in coefs]
            gradients.append(Relevance.of(*halves))
        return model.bins, mapped, reduce(add, gradients)

    def _weights(self, folds: Sequence[Moments], log_alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of ridge on some folds."""
        solution = ridge(FoldMoments.of(folds, self.objective.dtype).whole(), float(np.exp(log_alpha)))
        return solution.coef, solution.intercept


MOST_ENTRIES_OF_ONE_THREAD = 2**19  # with so few entries of features, one thread is done before two have synchronised
FEWEST_COMPONENTS = 128  # smallest number of features to learn widths with; above it, no more than rows are useful
# With fewer validation rows, all rows are used to learn; fewer rows than those have none to spare.
FEWEST_VALIDATION_ROWS, _FEWEST_TO_VALIDATE = 10, 40


SEARCHES: dict[str, type[WidthSearch]] = {"held-out": WidthSearch, "training": WidthSearch, "gradients": WidthRounds}
"""How widths are found, by the name of the objective."""


@dataclass(frozen=True, eq=False)
class WidthLearner:
    """Learns the widths of a kernel before the weights. ``FourierKernelLearner`` documents the fields."""

    losses_not_taken: ClassVar[tuple[str, ...]] = ()
    widths: str | ArrayLike
    objective: str
    width_penalty: str
    width_strength: float
    n_tune_components: int | None
    n_tune_rows: int | None
    validation_fraction: float
    max_iter: int
    tol: float
    patience: int

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """Return the settings that an estimator has as parameters."""
        return cls(**{each.name: getattr(estimator, each.name) for each in fields(cls) if each.init})

    def method_for(self, recipe: Recipe) -> type[WidthMethod]:
        """See ``Learner``."""
        check_choice(self.objective, "objective", tuple(SEARCHES))
        self.check(recipe, holds_out=True)
        return WidthMethod

    def objective_for(self, recipe: Recipe, loss: str | Loss) -> PenalisedLoss:
        """See ``Learner``."""
        return PenalisedLoss(loss, OpenSettings(checked_alpha(recipe.alpha)))

    def check(self, recipe: Recipe, *, holds_out: bool) -> None:
        """Raise ValueError for a wrong setting. holds_out: whether folds are needed even if alpha is given."""
        check_choice(self.width_penalty, "width_penalty", ("l2", "l1"))
        if self.width_strength != 0:
            check_positive(self.width_strength, "width_strength")
            if self.objective == "gradients":
                raise InputError(
                    Message(
                        "{width_strength=!s} is a penalty of an objective that is minimised, but "
                        "{objective='gradients'} takes widths from slopes. Leave {width_strength} at 0.",
                        self.width_strength,
                    )
                )
        for name in ("n_tune_components", "n_tune_rows"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name, integer=True)
        for name in ("max_iter", "patience"):
            check_positive(getattr(self, name), name, integer=True)
        check_positive(self.tol, "tol")
        if not 0 < self.validation_fraction < 1:
            wanted = "above 0 and below 1, such as 0.1: widths that no validation rows stop learn labels by heart"
            raise ParameterError("validation_fraction", self.validation_fraction, wanted)
        checked_alpha(recipe.alpha)
        fold_count(recipe.selection, 2 if holds_out else 1)

    @property
    def penalty(self) -> WidthPenalty:
        """The penalty on the widths."""
        return WidthPenalty(self.width_penalty, float(self.width_strength))


@dataclass(frozen=True, eq=False)
class WidthMethod(Method):
    """``WidthFeatures``: one kernel over all columns, with widths by blocks, bins or groups."""

    @property
    def learner(self) -> WidthLearner:
        """The settings of the widths."""
        return cast(WidthLearner, self.recipe.learner)

    @property
    def fixed_alpha(self) -> float | None:
        """The strength, if one is given."""
        alpha = self.objective.open.alpha
        return alpha if isinstance(alpha, float) else None

    def sized(self, n_columns: int) -> list[FeatureBlock]:
        """See ``Method``: only the widths depend on the blocks."""
        return parts_of(self.recipe, None, n_columns)

    def features(self, sample: Rows, sample_weight: np.ndarray | None = None) -> Adaptable:
        """Return features with the widths to start from, which ``adapted`` replaces."""
        return self.adaptable(int(self.recipe.n_components), sample)

    def adaptable(self, n_components: int, sample: Rows) -> Any:
        """Return features that can take any widths, fitted on rows."""
        kernel = self.recipe.exact_kernel
        scale = Scale.of(sample, [kernel])
        features = WidthFeatures(
            scale.kernel(kernel),
            n_components,
            widths=self.learner.widths,
            blocks=self.blocks,
            map=self.recipe.map,
            n_terms=int(self.recipe.n_terms),
            sampling=self.recipe.sampling,
            form=self.recipe.form,
            random_state=self.recipe.seed,
        )
        return (ScaledWidths(features, scale) if scale.exponent else features).fit(sample)

    def adapted(
        self, features: Adaptable, rows: PreparedRows, sample: Rows, clock: Stopwatch, progress: Progress
    ) -> tuple[FittedFeatures, LearnedWidths]:
        learner, full = self.learner, features
        n_rows = min(rows.source.n_rows, learner.n_tune_rows or rows.source.n_rows)
        n_components = tune_components(learner.n_tune_components, n_rows)
        if n_components is not None and n_components < int(self.recipe.n_components):
            features = self.adaptable(n_components, sample)
        tuned, validation = self._tuning_rows(rows, features.n_components, clock)
        if validation is not None and validation.n_rows < FEWEST_VALIDATION_ROWS:
            validation = None
        objective = self.width_objective(features, tuned)
        search = SEARCHES[learner.objective](
            objective,
            validation,
            self.recipe.is_classifier,
            progress,
            learner.max_iter,
            learner.tol,
            learner.patience,
            self.fixed_alpha is not None,
        )
        is_small = tuned.n_rows * features.n_components <= MOST_ENTRIES_OF_ONE_THREAD
        with _threads.one_thread() if is_small else nullcontext():
            widths = search.run(self.first_alpha(features, tuned))
        return full.at(widths.log_widths), LearnedWidths(
            np.exp(widths.log_widths),
            list(full.names_),
            full.columns_,
            np.exp(features.start_),
            widths.history,
            widths.reason,
            max(1, len(widths.history) - 1),
            objective.evaluations,
        )

    def width_objective(self, features: Adaptable, rows: TuningRows) -> WidthObjective:
        """Return the function of the widths to minimise."""
        return WidthObjective(features, rows, self.learner.objective, self.learner.penalty)

    def first_alpha(self, features: Adaptable, rows: TuningRows) -> float:
        """Return the given strength, or the best one at the widths to start from."""
        if self.fixed_alpha is not None:
            return self.fixed_alpha
        moments = rows.moments(features.at(features.start_), self.recipe.dtype)
        whole = moments.whole()
        with rows.clock("choose alpha"):
            _, best = compare(RidgeProblem(moments, spans=False), self.objective.open)
        return max(best, least_alpha(whole, self.recipe.dtype))

    def tuning_job(self, rows: PreparedRows, n_components: int, n_folds: int) -> Job:
        """Return the plan of a pass with ``n_components`` features."""
        parts = parts_of(replace(self.recipe, n_components=n_components), None, rows.source.n_features)
        dtype = self.recipe.dtype
        return job_of(rows.source, parts, rows.codec.n_targets, n_folds, dtype, normalises=self.changes_rows)

    def _tuning_rows(
        self, rows: PreparedRows, n_components: int, clock: Stopwatch
    ) -> tuple[TuningRows, TuningRows | None]:
        """Return rows to learn the widths on, and rows to validate them or None.

        They are a part of the source in memory, or the whole source, read again. Rows in groups are drawn and held
        out by whole groups.
        """
        most, share = self.learner.n_tune_rows, self.learner.validation_fraction
        source, groups = rows.source, rows.groups
        whole: Source = source
        if most is not None and most < source.n_rows:
            if groups is None:
                chosen = choose_rows(source.n_rows, most, self.recipe.seed + 1)
            else:
                chosen = rows_of_groups(groups, most, self.recipe.seed + 1)
                groups = groups[chosen]
            with clock("sample"):
                labels = source.labels()
                whole = ArraySource(source.take(chosen), np.asarray(labels)[chosen], f"{source.name}, rows to tune on")
                whole.weights = None if source.weights is None else source.weights[chosen]
        learning, validation = whole, None
        can_validate = groups is None or np.unique(groups).size > 2
        if can_validate and whole.n_rows >= _FEWEST_TO_VALIDATE:
            share = max(share, FEWEST_VALIDATION_ROWS / whole.n_rows)
            learning, validation = split_source(whole, share, self.recipe.seed, groups)
            groups = None if groups is None else groups[learning.places]
        n_folds = min(fold_count(self.recipe.selection), learning.n_rows // 2)
        if groups is not None:
            names, groups = np.unique(groups, return_inverse=True)
            n_folds = min(n_folds, names.size)
        if n_folds < 2:
            raise DataError(
                f"{source.name}: n_samples = {learning.n_rows} are too few to hold some out, which learning widths "
                "needs; 4 rows suffice."
            )
        job = self.tuning_job(rows, n_components, n_folds)
        # Memory holds weights, adjoints and their columns side by side; the rows, if they are a part in memory; and
        # the sample.
        kept_bytes = whole.n_rows * source.row_bytes if whole is not source else 0.0
        kept_bytes += job.n_sampled * job.mapped_row_bytes
        job = replace(job, n_vectors=8 * n_folds, held_bytes=job.held_bytes + kept_bytes)
        chunk_rows = chunk_rows_within(job, self.recipe.budget)

        tuned = TuningRows(rows.over(learning, n_folds, groups), chunk_rows, clock)
        if validation is None:
            return tuned, None
        return tuned, TuningRows(rows.over(validation, n_folds), chunk_rows, clock)


def rows_of_groups(groups: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Return the sorted places of whole random groups: as many as have ``n_rows`` rows at most, but two at least.

    >>> rows_of_groups(np.array([0, 0, 1, 1, 2, 2, 3, 3]), 5, seed=0).size
    4
    """
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(sizes.size)
    n_drawn = int(np.searchsorted(np.cumsum(sizes[order]), n_rows, side="right"))
    return np.flatnonzero(np.isin(groups, order[: max(2, n_drawn)]))


def tune_components(asked: int | None, n_rows: int) -> int | None:
    """Return the number of features to learn widths with on ``n_rows`` rows; None is as many as the model has."""
    return None if asked is None else min(asked, max(FEWEST_COMPONENTS, n_rows))
