"""A stage of leaving rows out: settings of an exact machine that are compared on the same rows.

``leave_one_out.LeaveOut`` compares them on few rows first, then on half of the rows, and solves the best on all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from chimap._validation import DataError
from chimap.selection.climb import Scored, Setting, climb, mean_square
from chimap.selection.learning_curve import leading_sizes, score_if_any
from chimap.selection.left_out_rows import within
from chimap.solvers.exact import DualSolution
from chimap.solvers.observed_exact import ExactRidge

if TYPE_CHECKING:
    from chimap.selection.leave_one_out import LeaveOut

_EXACT = 1e-14  # of the mean square of the targets: smaller errors are rounding, and are equal


@dataclass(frozen=True)
class _Trial(Scored):
    alpha: float
    n_rows: int


class Stage:
    """Settings that are compared on the same rows; None is all rows."""

    def __init__(self, rule: LeaveOut, rows: np.ndarray | None, scale: float | None):
        self.rule, self.rows = rule, rows
        self.trials: dict[Setting, _Trial] = {}
        n = rule.Y.shape[0] if rows is None else rows.size
        self.numbers = np.arange(n) if rows is None else rows
        self.groups = rule.groups if rows is None or rule.groups is None else within(rule.groups, rows)
        self.first = 0  # of the rows that are left out
        self.grown: list[
            tuple[int, float]
        ] = []  # of the best setting: scores of machines of fewer rows, and of all
        self.least_error = _EXACT * float(np.nanmean(np.square(rule.Y)))
        self._octaves = 0
        self._kept: tuple[Setting, DualSolution, np.ndarray, np.ndarray] | None = None
        self.scale: float = scale or max(self._ridge(0).scale(), float(np.finfo(np.float32).eps))

    def search(self) -> Setting:
        """Down by decades while it gets better, then uphill step by step."""
        if self.rule.alphas is not None:
            best = len(self.rule.alphas) - 1, 0
            for place in range(best[0] - 1, -1, -1):
                best = (place, 0) if self.better((place, 0), best) else best
            return self.climb(best, diagonally=True)
        best = (self._ridge(0).begins_at, 0)
        while self.better((best[0] - 2, 0), best):
            best = best[0] - 2, 0
        return self.climb(best, diagonally=True)

    def weakest_solved(self, setting: Setting) -> Setting:
        """The smallest strength from that of a setting on that can be solved."""
        place, octaves = setting
        while self.trial((place, octaves)) is not None:
            if self._is_solved((place, octaves)):
                return place, octaves
            place += 1
        raise self._singular()

    def climb(self, best: Setting, *, diagonally: bool) -> Setting:
        """From a setting to the best of those beside it, until none is better."""
        steps = [(-1, 0), (0, 1), (1, 0), (0, -1)] + [(-1, 1), (1, -1)] * diagonally
        best = climb(self.better, best, steps)
        if not self._is_solved(best):
            raise self._singular()
        return best

    def _is_solved(self, setting: Setting) -> bool:
        trial = self.trial(setting)
        return trial is not None and bool(np.isfinite(trial.score))

    def _singular(self) -> DataError:
        return DataError(
            f"none of the strengths {sorted({t.alpha for t in self.trials.values()})} is large enough: the kernel "
            "matrix is singular to rounding. Give larger ones, or alpha='auto'."
        )

    def better(self, setting: Setting, best: Setting) -> bool:
        """Whether a setting is in range and beats another."""
        other = self.trial(best)  # before the new one, so that the best so far is the one kept
        one = self.trial(setting)
        return one is not None and other is not None and one.beats(other)

    def trial(self, setting: Setting) -> _Trial | None:
        """How it fares; None out of range."""
        alpha = self.rule.alpha(setting[0], self.scale)
        if alpha is None or abs(setting[1]) > self.rule.octaves:
            return None
        if setting not in self.trials:
            self._try(setting, alpha)
        return self.trials[setting]

    def _try(self, setting: Setting, alpha: float) -> None:
        n_rows = self.numbers.size
        solution = self._ridge(setting[1]).solve(alpha)
        if solution is None:
            self.trials[setting] = _Trial(-np.inf, np.inf, alpha, n_rows)
            return
        residuals, scored = self._residuals(solution, self.first)
        score = self.rule.score(residuals, self.numbers[scored])
        if (np.isnan(residuals) & ~np.isnan(self.rule.Y[self.numbers[scored]])).any():
            score = -np.inf  # it is not known what the machine says of rows that it has not seen
        weights = None if self.rule.weights is None else self.rule.weights[self.numbers[scored]]
        error = max(mean_square(residuals, weights), self.least_error)
        trial = _Trial(score if np.isfinite(score) else -np.inf, error, alpha, n_rows)
        if self._kept is None or trial.beats(self.trials[self._kept[0]]):
            self._kept = setting, solution, residuals, scored
            self.grown = self._grown(self._ridge(setting[1]), residuals, scored)
        self.trials[setting] = trial
        if self.rule.on_score is not None:
            self.rule.on_score(alpha, trial.score)

    def _grown(self, ridge: ExactRidge, residuals: np.ndarray, scored: np.ndarray) -> list[tuple[int, float]]:
        """Scores of machines of the first rows, and of all, for rows of the second half that are left out."""
        n = self.numbers.size
        starts = None if self.groups is None else np.array([group[0] for group in self.groups])
        sizes = leading_sizes(n, starts)
        own = scored >= max(sizes, default=n)
        if not sizes or not own.any():
            return []
        rows, first = self.numbers[scored[own]], int(scored[own].min())
        grown = []
        for size in sizes:
            smaller = ridge.of_leading(size, first)
            if smaller is None:
                return []
            grown.append((size, smaller[scored[own] - first]))
        grown.append((n, residuals[own]))
        return [(size, score_if_any(partial(self.rule.score, each, rows))) for size, each in grown]

    def left_out(self, setting: Setting) -> tuple[DualSolution, np.ndarray, np.ndarray]:
        """The solution of the best setting, and residuals of rows that are left out, with their places: of its trial,
        as another factor has taken the place of its own."""
        assert self._kept is not None
        assert self._kept[0] == setting  # the best is kept
        return self._kept[1:]

    def finished(self, setting: Setting, solution: DualSolution) -> DualSolution:
        """See ``ExactRidge``."""
        return self._ridge(setting[1]).finished(solution)

    def _residuals(self, solution: DualSolution, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Of rows from ``first`` on, or of the groups that begin there, with their places."""
        ridge = self._ridge(self._octaves)
        if self.groups is None:
            return ridge.leave_one_out(solution, first), np.arange(first, self.numbers.size)
        groups = [group for group in self.groups if group[0] >= first] or self.groups[-1:]
        return np.concatenate(ridge.leave_out(solution, groups)), np.concatenate(groups)

    def _ridge(self, octaves: int) -> ExactRidge:
        self._octaves = octaves
        # not kept: a matrix of other rows would be held in memory
        return self.rule.problem.ridge(self.rows, octaves)
