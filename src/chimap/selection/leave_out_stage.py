"""A stage of leaving rows out: settings of an exact machine that are compared on the same rows.

``leave_one_out.LeaveOut`` compares them on more and more rows, and solves the best on all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.selection.climb import Scored, Setting, climb, mean_square
from chimap.selection.learning_curve import leading_sizes, score_if_any
from chimap.selection.left_out_rows import within
from chimap.solvers.exact import DualSolution
from chimap.solvers.observed_exact import ExactRidge

_EXACT = 1e-14  # share of the mean square of the targets below which errors are rounding and count as equal
# Steps of the strength, in half decades or along the given ones, and of gamma, in octaves.
NEIGHBOURS: Sequence[Setting] = ((-1, 0), (0, 1), (1, 0), (0, -1), (-1, 1), (1, -1))


class ExactProblem(Protocol):
    """Rows in the order in which they are left out, and the kernel matrix between them."""

    def ridge(self, rows: np.ndarray | None, octaves: int) -> ExactRidge:
        """Return the machine of these rows, or of all, with 2^octaves times the starting gamma."""

    def gamma(self, octaves: int) -> float | None:
        """Return 2^octaves times the starting gamma; None if the kernel has none."""


class Rule(Protocol):
    """What a stage needs of the rule that it belongs to; see ``leave_one_out.LeaveOut`` for the attributes."""

    problem: ExactProblem
    Y: np.ndarray
    groups: Sequence[np.ndarray] | None
    alphas: Sequence[float] | None
    octaves: int
    weights: np.ndarray | None

    @property
    def score(self) -> Callable[[np.ndarray, np.ndarray], float]:
        """The score of residuals of rows at these places."""
        ...

    @property
    def on_score(self) -> Callable[[float, float], None] | None:
        """Called after each setting, or None."""
        ...

    def alpha(self, place: int, scale: float) -> float | None:
        """Return the strength at a place; None out of range."""
        ...


@dataclass(frozen=True)
class _SettingTrial(Scored):
    alpha: float
    n_rows: int


class Stage:
    """Settings that are compared on the same rows; ``rows`` is None for all. Those from ``first`` on are left out."""

    def __init__(self, rule: Rule, rows: np.ndarray | None, scale: float | None, first: int = 0):
        self.rule, self.rows, self.first = rule, rows, first
        self.trials: dict[Setting, _SettingTrial] = {}
        n = rule.Y.shape[0] if rows is None else rows.size
        self.numbers = np.arange(n) if rows is None else rows
        self.groups = rule.groups if rows is None or rule.groups is None else within(rule.groups, rows)
        # Of the best setting: (rows, score) of machines of fewer rows, and of all.
        self.grown: list[tuple[int, float]] = []
        self.least_error = _EXACT * float(np.nanmean(np.square(rule.Y)))
        self._octaves = 0
        self._kept: tuple[Setting, DualSolution, np.ndarray, np.ndarray] | None = None
        self.scale: float = scale or max(self._ridge(0).scale(), float(np.finfo(np.float32).eps))

    def search(self) -> Setting:
        """Return the best setting: descend by decades, or over the given strengths, then climb step by step."""
        if self.rule.alphas is not None:
            best = len(self.rule.alphas) - 1, 0
            for place in range(best[0] - 1, -1, -1):
                best = (place, 0) if self.better((place, 0), best) else best
            return self.climb(best)
        best = (self._ridge(0).begins_at, 0)
        while self.better((best[0] - 2, 0), best):
            best = best[0] - 2, 0
        return self.climb(best)

    def weakest_solved(self, setting: Setting) -> Setting:
        """Return the smallest strength, from that of ``setting`` upwards, that can be solved."""
        place, octaves = setting
        while self.trial((place, octaves)) is not None:
            if self._is_solved((place, octaves)):
                return place, octaves
            place += 1
        raise self._singular()

    def climb(self, best: Setting, steps: Sequence[Setting] = NEIGHBOURS) -> Setting:
        """Climb from a setting to the best of those a step away, until none is better.

        Where rounding makes the matrix singular at all of them, the climb begins at the smallest strength above.
        """
        best = climb(self.better, best, steps)
        return best if self._is_solved(best) else climb(self.better, self.weakest_solved(best), steps)

    def _is_solved(self, setting: Setting) -> bool:
        """Whether a setting is in range and has a finite score."""
        trial = self.trial(setting)
        return trial is not None and bool(np.isfinite(trial.score))

    def _singular(self) -> DataError:
        """Return the error for a matrix that no strength makes regular."""
        alphas = sorted({t.alpha for t in self.trials.values()})
        if self.rule.alphas is None:
            return DataError(
                Message(
                    "no strength up to {:.3g} makes the kernel matrix regular to rounding: to this kernel all rows are "
                    "nearly equal. Give a larger {gamma}, or {precision='float64'}.",
                    alphas[-1],
                )
            )
        return DataError(
            Message(
                "none of the strengths {} is large enough: the kernel matrix is singular to rounding. Give larger "
                "ones, {alpha='auto'} or {precision='float64'}.",
                alphas,
            )
        )

    def better(self, setting: Setting, best: Setting) -> bool:
        """Whether a setting is in range and beats another."""
        # The best so far is tried before the new setting, so that its solution is the one kept.
        incumbent = self.trial(best)
        candidate = self.trial(setting)
        return candidate is not None and incumbent is not None and candidate.beats(incumbent)

    def trial(self, setting: Setting) -> _SettingTrial | None:
        """Return the score of a setting; None out of range."""
        alpha = self.rule.alpha(setting[0], self.scale)
        if alpha is None or abs(setting[1]) > self.rule.octaves:
            return None
        if setting not in self.trials:
            self._try(setting, alpha)
        return self.trials[setting]

    def _try(self, setting: Setting, alpha: float) -> None:
        """Score a setting, and keep its solution if it is the best so far."""
        n_rows = self.numbers.size
        solution = self._ridge(setting[1]).solve(alpha)
        if solution is None:
            self.trials[setting] = _SettingTrial(-np.inf, np.inf, alpha, n_rows)
            return
        residuals, scored = self._residuals(solution, self.first)
        score = self.rule.score(residuals, self.numbers[scored])
        if (np.isnan(residuals) & ~np.isnan(self.rule.Y[self.numbers[scored]])).any():
            score = -np.inf  # there are rows whose left-out outputs are not known
        weights = None if self.rule.weights is None else self.rule.weights[self.numbers[scored]]
        error = max(mean_square(residuals, weights), self.least_error)
        trial = _SettingTrial(score if np.isfinite(score) else -np.inf, error, alpha, n_rows)
        if self._kept is None or trial.beats(self.trials[self._kept[0]]):
            self._kept = setting, solution, residuals, scored
            if self.rows is None:  # the curve is that of the machine of all rows
                self.grown = self._grown(self._ridge(setting[1]), residuals, scored)
        self.trials[setting] = trial
        if self.rule.on_score is not None:
            self.rule.on_score(alpha, trial.score)

    def _grown(self, ridge: ExactRidge, residuals: np.ndarray, scored: np.ndarray) -> list[tuple[int, float]]:
        """Return the scores of machines of the first rows, and of all, for left-out rows of the second half."""
        n = self.numbers.size
        starts = None if self.groups is None else np.array([group[0] for group in self.groups])
        sizes = leading_sizes(n, starts)
        is_scored = scored >= max(sizes, default=n)
        if not sizes or not is_scored.any():
            return []
        rows, first = self.numbers[scored[is_scored]], int(scored[is_scored].min())
        grown = []
        for size in sizes:
            smaller = ridge.of_leading(size, first)
            if smaller is None:
                return []
            grown.append((size, smaller[scored[is_scored] - first]))
        grown.append((n, residuals[is_scored]))
        return [(size, score_if_any(partial(self.rule.score, outputs, rows))) for size, outputs in grown]

    def left_out(self, setting: Setting) -> tuple[DualSolution, np.ndarray, np.ndarray]:
        """Return the solution of the best setting, the residuals of left-out rows, and the places of these rows.

        They were kept when the setting was tried, as another factor has since replaced its factor.
        """
        assert self._kept is not None
        assert self._kept[0] == setting  # the best solution is the one kept
        return self._kept[1:]

    def finished(self, setting: Setting, solution: DualSolution) -> DualSolution:
        """See ``ExactRidge``."""
        return self._ridge(setting[1]).finished(solution)

    def _residuals(self, solution: DualSolution, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals of rows from ``first`` on, or of the groups that begin there, and the places of the rows."""
        ridge = self._ridge(self._octaves)
        if self.groups is None:
            return ridge.leave_one_out(solution, first), np.arange(first, self.numbers.size)
        groups = [group for group in self.groups if group[0] >= first] or self.groups[-1:]
        return np.concatenate(ridge.leave_out(solution, groups)), np.concatenate(groups)

    def _ridge(self, octaves: int) -> ExactRidge:
        self._octaves = octaves
        # Not an attribute: it would keep the matrix of other rows in memory.
        return self.rule.problem.ridge(self.rows, octaves)
