"""Strength and gamma of an exact machine, chosen by the user's score of rows, or groups, that are left out.

``fit.exact`` calls ``LeaveOut`` for machines on the kernel matrix of all rows. It compares settings in stages on more
and more rows (``leave_out_stage``), and returns the solution on all rows with the left-out outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap.selection.base import SelectionResult
from chimap.selection.climb import Setting
from chimap.selection.learning_curve import LearningCurve, curve_of
from chimap.selection.leave_out_stage import NEIGHBOURS, ExactProblem, Stage
from chimap.selection.left_out_rows import few_of_parts, parts_of
from chimap.solvers.exact import DualSolution
from chimap.solvers.observed_exact import is_shared

FEW_ROWS = 3000  # up to as many rows, all settings are compared on all rows
_COMPARED = 0.3  # share of more rows on which settings are compared: seven machines of these cost a fifth of one of all
_SEARCHED = 3  # the search begins on a third of these rows, where a machine costs a 27th
_NARROWER = ((0, 1),)  # more rows leave the strength but bear a narrower kernel, of a larger gamma
OCTAVES = 2  # gamma is searched from a quarter to four times its starting value
_HALF_DECADES = 12  # distance from the scale of the kernel within which strengths are searched


@dataclass(frozen=True)
class ChosenSetting:
    """The chosen setting.

    Parameters
    ----------
    solution : DualSolution
        The solution on all rows.
    octaves : int
        Octaves from the starting gamma.
    held_out : array of shape (n, t)
        Outputs for each row when it is left out; NaN for rows that never are.
    result : SelectionResult
        The settings that were compared.
    curve : LearningCurve or None, default=None
        How the score grows with the rows; None if they are too few.
    """

    solution: DualSolution
    octaves: int
    held_out: np.ndarray
    result: SelectionResult
    curve: LearningCurve | None = None


@dataclass
class LeaveOut:
    """Choose the strength and gamma of an exact machine by its outputs for rows that are left out.

    Up to ``FEW_ROWS`` rows, all settings are compared on all rows. Of more rows, three tenths, spread over all, or
    ``FEW_ROWS`` if that is more, serve to compare them: a search on a third of these finds where to begin, and its best
    setting is compared with its neighbours on all of these. More rows bear a narrower kernel: half of all rows decide
    whether gamma rises. On more than ``FEW_ROWS`` rows, only the last ``FEW_ROWS`` are left out. The best setting is
    solved once on all rows, all of which are left out, and whose factor then stays in memory. Of equal scores, that
    with the smaller squared error is better.

    Targets with missing entries (NaN in ``Y``) or with separate weights take a solution for every part of the rows that
    is left out. Rows, or groups, are then left out in as many parts as take little work, at most a fifth of the rows
    each, and the best setting of few rows is not compared with others on all rows.

    Parameters
    ----------
    problem : ExactProblem
        The rows and the kernel.
    Y : array of shape (n, t)
        Targets.
    score : callable
        Called as ``score(residuals, rows)`` with residuals (m, t) of these rows; greater is better.
    groups : sequence of arrays or None, default=None
        Rows that are left out together; the groups cover all rows in order. None for single rows.
    alphas : sequence of float or None, default=None
        Strengths to choose from; None for a search in half decades of the kernel's scale.
    octaves : int, default=2
        Gamma may be 2^-octaves to 2^octaves times its starting value.
    on_score : callable or None, default=None
        Called as ``on_score(alpha, score)`` after each setting.
    weights : array of shape (n,) or (n, t), or None, default=None
        Weights in the squared error.
    is_settled : bool, default=False
        Whether the choice has been made elsewhere: the first of ``alphas`` that can be solved is taken. Only the last
        ``FEW_ROWS`` of many rows are then left out. Leaving out all would take as long as the solution, and these
        calibrate as well.
    leaves_all : bool, default=False
        Whether all rows are left out even if the choice is settled, as a rare class needs.
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
    leaves_all: bool = False

    def choose(self) -> ChosenSetting:
        """Compare settings. Raises DataError if no strength makes the matrix positive definite to rounding."""
        n, shared = self.Y.shape[0], is_shared(self.Y, self.weights)
        if not shared:
            self.groups = parts_of(self.groups, *self.Y.shape)
        if self.is_settled:
            whole = self._of_all(None)
            return self._chosen(whole, whole.weakest_solved((0, 0)), [whole])
        if self.alphas is not None and len(self.alphas) == 1 and not self.octaves:
            whole = self._of_all(None)
            return self._chosen(whole, whole.search(), [whole])
        (n_first, _), *later = self._climbs(n, shared)
        stages = [Stage(self, _spread(n, n_first), None)]
        best = stages[0].search()
        if n == n_first:
            return self._chosen(stages[0], best, stages)
        for n_rows, steps in later:
            stages.append(Stage(self, _spread(n, n_rows), stages[0].scale, max(0, n_rows - FEW_ROWS)))
            best = stages[-1].climb(best, steps)
        whole = self._of_all(stages[0].scale)
        best = whole.weakest_solved(best)
        return self._chosen(whole, best, [*stages, whole])

    def _climbs(self, n: int, shared: bool) -> list[tuple[int, Sequence[Setting]]]:
        """Return the rows of each stage that compares settings, and the steps that it takes from the best so far."""
        if not shared:
            return [(min(n, few_of_parts(FEW_ROWS, self.Y.shape[1])), NEIGHBOURS)]
        if n <= FEW_ROWS:
            return [(n, NEIGHBOURS)]
        most = max(FEW_ROWS, int(_COMPARED * n))
        narrows = self.octaves > 0 and n // 2 > most
        return [(most // _SEARCHED, NEIGHBOURS), (most, NEIGHBOURS)] + [(n // 2, _NARROWER)] * narrows

    def _of_all(self, scale: float | None) -> Stage:
        """Return the stage of all rows, which leaves out only the last ones where more is too much work.

        That is the case if the choice is settled, so that they only serve calibration, and for many rows of targets
        that take a solution for each part.
        """
        n = self.Y.shape[0]
        if self.is_settled:
            return Stage(self, None, scale, 0 if self.leaves_all else max(0, n - FEW_ROWS))
        if n > FEW_ROWS and not is_shared(self.Y, self.weights):
            return Stage(self, None, scale, n // 2)
        return Stage(self, None, scale)

    def _chosen(self, stage: Stage, best: Setting, stages: list[Stage]) -> ChosenSetting:
        """Return the choice: the best setting of the last stage, and all that were tried."""
        solution, residuals, rows = stage.left_out(best)
        solution = stage.finished(best, solution)
        held_out = np.full(self.Y.shape, np.nan)
        held_out[rows] = self.Y[rows] - residuals
        trials = [(setting, trial) for tried_stage in stages for setting, trial in tried_stage.trials.items()]
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
        return ChosenSetting(solution, best[1], held_out, result, curve_of(result.measure, stage.grown))

    @property
    def _name(self) -> str:
        """The name of the rule."""
        if not is_shared(self.Y, self.weights):
            return "leave-part-out"
        return "leave-one-out" if self.groups is None else "leave-group-out"

    def alpha(self, place: int, scale: float) -> float | None:
        """Return the strength at a place; None out of range."""
        if self.alphas is None:
            return scale * 10 ** (place / 2) if abs(place) <= _HALF_DECADES else None
        return float(self.alphas[place]) if 0 <= place < len(self.alphas) else None


def _spread(n: int, n_some: int) -> np.ndarray | None:
    """Return ``n_some`` rows of n, spread over all; None if these are all."""
    return np.linspace(0, n - 1, n_some).astype(np.intp) if n > n_some else None
