"""Strength and gamma of an exact machine by the user's score of predictions for rows, or groups, that are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from chimap._validation import DataError
from chimap.selection.base import SelectionResult
from chimap.selection.climb import Scored, Setting, climb, mean_square
from chimap.selection.learning_curve import LearningCurve, curve_of, leading_sizes, score_if_any
from chimap.selection.left_out_rows import few_of_parts, parts_of, within
from chimap.solvers.exact import DualSolution
from chimap.solvers.observed_exact import ExactRidge, is_shared

FEW_ROWS = 3000  # that settings are compared on first, and up to which all are compared on all rows
OCTAVES = 2  # gamma is looked for in a quarter to four times where it starts
_HALF_DECADES = 12  # strengths are looked for so far from the scale of the kernel
_EXACT = 1e-14  # of the mean square of the targets: smaller errors are rounding, and are equal


class ExactProblem(Protocol):
    """Rows in the order in which they are left out, and the kernel among them."""

    def ridge(self, rows: np.ndarray | None, octaves: int) -> ExactRidge:
        """Of these rows, or of all, with gamma 2^octaves times where it starts."""

    def gamma(self, octaves: int) -> float | None:
        """Gamma itself; None where the kernel has none."""


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it says of each row when it is left out: ``held_out`` (n, t), outputs, NaN of rows that
    were not. curve: how its score grows with the rows, or None where they are too few."""

    solution: DualSolution
    octaves: int
    held_out: np.ndarray
    result: SelectionResult
    curve: LearningCurve | None = None


@dataclass(frozen=True)
class _Trial(Scored):
    alpha: float
    n_rows: int


@dataclass
class LeaveOut:
    """Choose the strength and gamma of an exact machine by what it says of rows that are left out.

    problem: the rows and the kernel. Y (n, t): targets. score: of residuals (m, t) of given rows, greater is better.
    groups: None for single rows, or arrays of rows that cover all in their order, left out together. alphas: to choose
    from, or None to look for them: half decades of the kernel's scale. octaves: gamma may be 2^-octaves to 2^octaves
    times where it starts. weights (n,): of the rows in the squared error, or None. is_settled: whether the choice was
    made elsewhere, so that the first of ``alphas`` that can be solved is taken. Of many rows only the last
    ``FEW_ROWS`` are then left out: all would take as long as the solution, and these calibrate as well.

    Targets with missing entries, NaN in Y, or with weights of their own take a solution for every part of the rows that
    is left out: rows, or groups, are then left out in as many parts as are little work, a fifth of the rows each at
    most, and the best setting of few rows is not compared with others on all rows.

    Up to ``FEW_ROWS`` rows all settings are compared on all of them. Of more, they are compared on as many that are
    spread over all, and the best is compared with those beside it on half of the rows, where a machine costs an eighth
    of one of all rows. The best of the half is solved once on all rows, whose factor is then still in memory. Of equal
    scores the one of the smaller squared error is better.
    """

    problem: ExactProblem
    Y: np.ndarray
    score: Callable[[np.ndarray, Any], float]
    groups: Sequence[np.ndarray] | None = None
    alphas: Sequence[float] | None = None
    octaves: int = OCTAVES
    on_score: Callable[[float, float], None] | None = None
    weights: np.ndarray | None = None
    is_settled: bool = False

    def choose(self) -> Choice:
        """Compare settings. Raises DataError where no strength makes the matrix positive definite to rounding."""
        n, shared = self.Y.shape[0], is_shared(self.Y, self.weights)
        if not shared:
            self.groups = parts_of(self.groups, *self.Y.shape)
        if self.is_settled:
            whole = self._of_all(None)
            return self._chosen(whole, whole.weakest_solved((0, 0)), [whole])
        if self.alphas is not None and len(self.alphas) == 1 and not self.octaves:
            whole = self._of_all(None)
            return self._chosen(whole, whole.search(), [whole])
        n_few = min(n, FEW_ROWS if shared else few_of_parts(FEW_ROWS, self.Y.shape[1]))
        stages = [_Stage(self, _spread(n, n_few), None)]
        best = stages[0].search()
        if n == n_few:
            return self._chosen(stages[0], best, stages)
        if shared and n // 2 > n_few:
            half = _Stage(self, _spread(n, n // 2), stages[0].scale)
            best = half.climb(best, diagonally=False)
            stages.append(half)
        whole = self._of_all(stages[0].scale)
        best = whole.weakest_solved(best)
        return self._chosen(whole, best, [*stages, whole])

    def _of_all(self, scale: float | None) -> _Stage:
        """All rows; of many the last alone are left out where that is much work, or is done for calibration alone."""
        n = self.Y.shape[0]
        whole = _Stage(self, None, scale)
        if self.is_settled:
            whole.first = max(0, n - FEW_ROWS)
        elif n > FEW_ROWS and not is_shared(self.Y, self.weights):
            whole.first = n // 2
        return whole

    def _chosen(self, stage: _Stage, best: Setting, stages: list[_Stage]) -> Choice:
        solution, residuals, rows = stage.left_out(best)
        solution = stage.finished(best, solution)
        held_out = np.full(self.Y.shape, np.nan)
        held_out[rows] = self.Y[rows] - residuals
        trials = [(setting, trial) for own in stages for setting, trial in own.trials.items()]
        settings: dict[str, np.ndarray] = {"alpha": np.array([trial.alpha for _, trial in trials])}
        if self.problem.gamma(0) is not None:
            settings["gamma"] = np.array([self.problem.gamma(octaves) for (_, octaves), _ in trials])
        settings["n_rows"] = np.array([trial.n_rows for _, trial in trials])
        places = [i for i, (setting, trial) in enumerate(trials) if setting == best]
        result = SelectionResult(
            self._name,
            settings,
            np.array([[trial.score] for _, trial in trials]),
            np.ones(1),
            places[-1],
            getattr(self.score, "name", "score"),
            greater_is_better=True,
        )
        return Choice(solution, best[1], held_out, result, curve_of(result.measure, stage.grown))

    @property
    def _name(self) -> str:
        if not is_shared(self.Y, self.weights):
            return "leave-part-out"
        return "leave-one-out" if self.groups is None else "leave-group-out"

    def alpha(self, place: int, scale: float) -> float | None:
        """The strength of a place; None beyond the last."""
        if self.alphas is None:
            return scale * 10 ** (place / 2) if abs(place) <= _HALF_DECADES else None
        return float(self.alphas[place]) if 0 <= place < len(self.alphas) else None


def _spread(n: int, n_some: int) -> np.ndarray | None:
    """So many rows of n, spread over all; None for all."""
    return np.linspace(0, n - 1, n_some).astype(np.intp) if n > n_some else None


class _Stage:
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
