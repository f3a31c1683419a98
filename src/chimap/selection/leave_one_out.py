"""Strength and gamma of an exact machine by the user's score of predictions for rows, or groups, that are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from chimap.selection.base import SelectionResult
from chimap.selection.climb import Setting
from chimap.selection.learning_curve import LearningCurve, curve_of
from chimap.selection.leave_out_stage import Stage
from chimap.selection.left_out_rows import few_of_parts, parts_of
from chimap.solvers.exact import DualSolution
from chimap.solvers.observed_exact import ExactRidge, is_shared

FEW_ROWS = 3000  # that settings are compared on first, and up to which all are compared on all rows
OCTAVES = 2  # gamma is looked for in a quarter to four times where it starts
_HALF_DECADES = 12  # strengths are looked for so far from the scale of the kernel


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
        stages = [Stage(self, _spread(n, n_few), None)]
        best = stages[0].search()
        if n == n_few:
            return self._chosen(stages[0], best, stages)
        if shared and n // 2 > n_few:
            half = Stage(self, _spread(n, n // 2), stages[0].scale)
            best = half.climb(best, diagonally=False)
            stages.append(half)
        whole = self._of_all(stages[0].scale)
        best = whole.weakest_solved(best)
        return self._chosen(whole, best, [*stages, whole])

    def _of_all(self, scale: float | None) -> Stage:
        """All rows; of many the last alone are left out where that is much work, or is done for calibration alone."""
        n = self.Y.shape[0]
        whole = Stage(self, None, scale)
        if self.is_settled:
            whole.first = max(0, n - FEW_ROWS)
        elif n > FEW_ROWS and not is_shared(self.Y, self.weights):
            whole.first = n // 2
        return whole

    def _chosen(self, stage: Stage, best: Setting, stages: list[Stage]) -> Choice:
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
