"""The search for widths: L-BFGS over log widths and log strength, with the weights in closed form inside."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from chimap._messages import Message
from chimap._types import Parameters
from chimap._validation import DataError
from chimap.engines import Progress
from chimap.features.base import FittedFeatures
from chimap.kernel_learning.adaptable import Adaptable
from chimap.kernel_learning.tuning_rows import TuningRows
from chimap.moments import Moments
from chimap.solvers import LinearSolution, ridge
from chimap.solvers.lbfgs import stop_reason
from chimap.solvers.widths import ObjectiveSlopes, held_out, total_scatter, training

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


# Log of the largest factor by which a width, or the strength, may leave its start: beyond it, a block has no effect
# or is the only one that has.
_REACH = np.log(1e4)
_FIRST_STEP = 0.7  # first step of the log width with the steepest slope: a factor of two


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
        bounds = [(v - _REACH, v + _REACH) for v in start]
        assert self.objective.whole is not None
        least = np.log(least_alpha(self.objective.whole, self.objective.dtype))
        bounds[-1] = (min(start[-1], max(bounds[-1][0], least)), bounds[-1][1])
        # The first step of L-BFGS-B is minus the gradient: the objective is scaled to give it a suitable length.
        steepest = float(np.abs(gradient).max())
        scale = _FIRST_STEP / steepest if steepest > 0 else 1.0

        def scaled(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self._evaluate(x)
            return scale * value, scale * gradient

        end = minimize(
            scaled, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=self._stop,
            options={"maxiter": self.max_iter, "maxfun": 3 * self.max_iter + 3, "ftol": 0.0, "gtol": 1e-9, "maxls": 10},
        )  # fmt: skip
        best = min(
            self.history, key=lambda step: step["validation_error"] if self.validation else step["objective"]
        )
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
