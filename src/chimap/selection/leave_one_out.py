"""Strength and gamma of an exact machine, chosen by the user's score of rows, or groups, that are left out.

``LeaveOut`` is the rule of machines on the kernel matrix of all rows. It compares settings in stages on more and more
rows (``Stage``), and returns the solution on all rows with the left-out outputs. Rows that are left out together are
adjacent in the order of a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, cast

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.selection.base import Compared, OpenSettings, Selection, SelectionResult
from chimap.selection.climb import Scored, Setting, SettingSearch, climb, mean_square
from chimap.selection.learning_curve import leading_sizes, score_if_any
from chimap.solvers.base import KernelRows, within
from chimap.solvers.block_problem import BlockProblem
from chimap.solvers.exact import DualSolution, ExactSolver, is_shared
from chimap.solvers.kernel_matrix import ChosenMachine, KernelMatrix, KernelProblem

_FEWEST_PARTS = 5  # parts that rows are left out in if each of them takes a solution
_TARGETS_OF_A_FACTOR = 20  # targets whose solutions take as long as the factor of 3000 rows
_LEAST_ROWS = 500
_WORK = 3e7  # entries of the factor times columns to solve for; less work allows more parts


def few_of_parts(most: int, n_targets: int) -> int:
    """Return the number of rows that settings are compared on first, if parts of them are left out.

    The solutions of all targets then take about as long as the factor of ``most`` rows.


    >>> [few_of_parts(3000, n) for n in (12, 100, 10_000)]
    [3000, 1341, 500]
    """
    return int(max(min(most, _LEAST_ROWS), most * np.sqrt(min(1.0, _TARGETS_OF_A_FACTOR / n_targets))))


def parts_of(groups: Sequence[np.ndarray] | None, n: int, n_targets: int) -> list[np.ndarray]:
    """Return the rows that are left out together, if each part takes a separate solution for every target.

    A part has adjacent rows, or whole groups. It has at most a fifth of the rows, and at least one row.


    >>> [part.size for part in parts_of(None, 20_000, 12)]
    [4000, 4000, 4000, 4000, 4000]
    """
    n_parts = int(np.clip(_WORK / (n_targets * n**2), _FEWEST_PARTS, n))
    if groups is None:
        return [part for part in np.array_split(np.arange(n), n_parts) if part.size]
    sizes = np.array([group.size for group in groups])
    # Groups are assigned by their middles, so that two groups never end up in a single part.
    of_group = (np.cumsum(sizes) - sizes / 2) * n_parts // n
    return [
        np.concatenate([groups[k] for k in np.flatnonzero(of_group == part).tolist()]) for part in np.unique(of_group)
    ]


_ROUNDING_SHARE = 1e-14  # share of the mean square of the targets below which errors are rounding and count as equal
# Steps of the strength, in half decades or along the given ones, and of gamma, in octaves.
NEIGHBOURS: Sequence[Setting] = ((-1, 0), (0, 1), (1, 0), (0, -1), (-1, 1), (1, -1))


@dataclass(frozen=True)
class _SettingTrial(Scored):
    alpha: float
    n_rows: int


class Stage(SettingSearch[_SettingTrial]):
    """Settings that are compared on the same rows; ``rows`` is None for all. Those from ``first`` on are left out."""

    def __init__(self, rule: LeaveOut, rows: np.ndarray | None, scale: float | None, first: int = 0):
        super().__init__(rule.alphas, rule.octaves)
        self.rule, self.rows, self.first = rule, rows, first
        n = rule.rows.Y.shape[0] if rows is None else rows.size
        self.numbers = np.arange(n) if rows is None else rows
        rule.tell(n, 0)
        self.groups = rule.rows.groups if rows is None or rule.rows.groups is None else within(rule.rows.groups, rows)
        # Of the best setting: (rows, score) of machines of fewer rows, and of all.
        self.grown: list[tuple[int, float]] = []
        self.least_error = _ROUNDING_SHARE * float(np.nanmean(np.square(rule.rows.Y)))
        self._octaves = 0
        self._kept: tuple[Setting, DualSolution, np.ndarray, np.ndarray] | None = None
        self._scale = scale or max(self._solver(0).scale(), float(np.finfo(np.float32).eps))

    @property
    def scale(self) -> float:
        return self._scale

    def search(self) -> Setting:
        """Return the best setting: descend by decades, or over the given strengths, then climb step by step."""
        if self.alphas is not None:
            best = len(self.alphas) - 1, 0
            for place in range(best[0] - 1, -1, -1):
                best = (place, 0) if self.better((place, 0), best) else best
            return self.climb(best)
        return self.climb(self.downhill(self._solver(0).begins_at))

    def solved_from(self, setting: Setting) -> Setting:
        """Return ``weakest_solved``; raise DataError if no strength can be solved."""
        solved = self.weakest_solved(setting)
        if solved is None:
            raise self._singular()
        return solved

    def climb(self, best: Setting, steps: Sequence[Setting] = NEIGHBOURS) -> Setting:
        """Climb from a setting to the best of those a step away, until none is better.

        Where rounding makes the matrix singular at all of them, the climb begins at the smallest strength above.
        """
        best = climb(self.better, best, steps)
        return best if self.is_solved(best) else climb(self.better, self.solved_from(best), steps)

    def _singular(self) -> DataError:
        """Return the error for a matrix that no strength makes regular."""
        alphas = sorted({t.alpha for t in self.trials.values()})
        if self.alphas is None:
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

    def scored(self, setting: Setting, alpha: float) -> _SettingTrial:
        """See ``SettingSearch``; the solution is kept if it is the best so far."""
        n_rows = self.numbers.size
        solution = self._solver(setting[1]).solve(alpha)
        if solution is None:
            return _SettingTrial(-np.inf, np.inf, alpha, n_rows)
        residuals, scored = self._residuals(solution, self.first)
        score = self.rule.rows.score_of_residuals(residuals, self.numbers[scored])
        if (np.isnan(residuals) & ~np.isnan(self.rule.rows.Y[self.numbers[scored]])).any():
            score = -np.inf  # there are rows whose left-out outputs are not known
        weights = None if self.rule.rows.weights is None else self.rule.rows.weights[self.numbers[scored]]
        error = max(mean_square(residuals, weights), self.least_error)
        trial = _SettingTrial(score if np.isfinite(score) else -np.inf, error, alpha, n_rows)
        if self._kept is None or trial.beats(self.trials[self._kept[0]]):
            self._kept = setting, solution, residuals, scored
            if self.rows is None:  # the curve is that of the machine of all rows
                self.grown = self._grown(self._solver(setting[1]), residuals, scored)
        self.rule.tell(n_rows, 1)
        return trial

    def _grown(self, ridge: ExactSolver, residuals: np.ndarray, scored: np.ndarray) -> list[tuple[int, float]]:
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
        return [
            (size, score_if_any(partial(self.rule.rows.score_of_residuals, outputs, rows))) for size, outputs in grown
        ]

    def left_out(self, setting: Setting) -> tuple[DualSolution, np.ndarray, np.ndarray]:
        """Return the solution of the best setting, the residuals of left-out rows, and the places of these rows.

        They were kept when the setting was tried, as another factor has since replaced its factor.
        """
        assert self._kept is not None
        assert self._kept[0] == setting  # the best solution is the one kept
        return self._kept[1:]

    def finished(self, setting: Setting, solution: DualSolution) -> DualSolution:
        """See ``ExactSolver``."""
        return self._solver(setting[1]).finished(solution)

    def _residuals(self, solution: DualSolution, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals of rows from ``first`` on, or of the groups that begin there, and the places of the rows.

        Of rows that must not be scored there are none.
        """
        ridge, hidden = self._solver(self._octaves), self.rule.rows.hidden
        if self.groups is None:
            residuals, places = ridge.leave_one_out(solution, first), np.arange(first, self.numbers.size)
        else:
            groups = [group for group in self.groups if group[0] >= first] or self.groups[-1:]
            residuals, places = np.concatenate(ridge.leave_out(solution, groups)), np.concatenate(groups)
        if hidden is None:
            return residuals, places
        is_scored = hidden[self.numbers[places]]
        return residuals[is_scored], places[is_scored]

    def _solver(self, octaves: int) -> ExactSolver:
        self._octaves = octaves
        # Not an attribute: it would keep the matrix of other rows in memory.
        return self.rule.matrix.solver(self.rows, octaves)


FEW_ROWS = 3000  # up to as many rows, all settings are compared on all rows
_COMPARED_SHARE = 0.3  # of more rows, on which settings are compared: seven machines cost a fifth of one of all
_SEARCH_DIVISOR = 3  # the search begins on a third of these rows, where a machine costs a 27th
_USUAL_OF_FEW, _USUAL_FIRST, _USUAL_THEN = 6, 8, 4  # machines of each stage, as a search usually goes
_STEP_TO_NARROWER = ((0, 1),)  # with more rows the best alpha stays, but a narrower kernel (larger gamma) pays off
_MOST_ALPHA = 1e30  # beyond it all outputs are the mean of the targets, and single precision holds no products
_DECADES_RAISED = 6  # decades by which the strength of a race may be raised if rounding makes the matrix singular
OCTAVES = 2  # gamma is searched from a quarter to four times its starting value


@dataclass
class LeaveOut:
    """Choose the strength and gamma of an exact machine by its outputs for rows that are left out.

    Up to ``FEW_ROWS`` rows, all settings are compared on all rows. Of more rows, three tenths, spread over all, or
    ``FEW_ROWS`` if that is more, serve to compare them: a search on a third of these finds where to begin, and its best
    setting is compared with its neighbours on all of these. With more rows a narrower kernel pays off: half of all rows
    decide whether gamma rises. On more than ``FEW_ROWS`` rows, only the last ``FEW_ROWS`` are left out. The best
    setting is solved once on all rows, all of which are left out, and whose factor then stays in memory. Of equal
    scores, that with the smaller squared error is better.

    Targets with missing entries (NaN in ``Y``) or with separate weights take a solution for every part of the rows that
    is left out. Rows, or groups, are then left out in as many parts as take little work, at most a fifth of the rows
    each, and the best setting of few rows is not compared with others on all rows.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix, of some of the rows or of all.
    rows : KernelRows
        All rows, with their targets, weights and score, and those that are left out together. Where the choice is
        made, rare classes have all of them left out.
    alphas : sequence of float or None, default=None
        Strengths to choose from; None for a search in half decades of the kernel's scale.
    octaves : int, default=2
        Gamma may be 2^-octaves to 2^octaves times its starting value.
    alpha_is_from_race : bool, default=False
        Whether the choice has been made elsewhere: the first of ``alphas`` that can be solved is taken. Only the last
        ``FEW_ROWS`` of many rows are then left out. Leaving out all would take as long as the solution, and these
        calibrate as well.
    on_score : callable, default=lambda n: None
        Called with the number of settings that are over, of ``usual_machines``.
    """

    matrix: KernelMatrix
    rows: KernelRows
    alphas: Sequence[float] | None = None
    octaves: int = OCTAVES
    alpha_is_from_race: bool = False
    on_score: Callable[[int], None] = lambda n: None
    _n_told: int = field(default=0, init=False)

    def tell(self, n_rows: int, n_scored: int) -> None:
        """Tell that the machines of fewer rows are over, and some more of these rows, but no more than are usual."""
        usual = np.array(usual_machines(self.rows.Y.shape[0]))
        begun, ended = int((usual < n_rows).sum()), int((usual <= n_rows).sum())
        reached = max(self._n_told, min(max(self._n_told, begun) + n_scored, ended))
        self.on_score(reached - self._n_told)
        self._n_told = reached

    def choose(self) -> ChosenMachine:
        """Compare settings. Raises DataError if no strength makes the matrix positive definite to rounding."""
        rows, shared = self.rows, self._is_shared
        n = rows.Y.shape[0]
        if not shared:
            self.rows = replace(rows, groups=parts_of(rows.groups, *rows.Y.shape))
        if self.alpha_is_from_race:
            whole = self._of_all(None)
            return self._chosen(whole, whole.solved_from((0, 0)), [whole])
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
        best = whole.solved_from(best)
        return self._chosen(whole, best, [*stages, whole])

    def _climbs(self, n: int, shared: bool) -> list[tuple[int, Sequence[Setting]]]:
        """Return the rows of each stage that compares settings, and the steps that it takes from the best so far."""
        if not shared:
            return [(min(n, few_of_parts(FEW_ROWS, self.rows.Y.shape[1])), NEIGHBOURS)]
        if n <= FEW_ROWS:
            return [(n, NEIGHBOURS)]
        most = max(FEW_ROWS, int(_COMPARED_SHARE * n))
        narrows = self.octaves > 0 and n // 2 > most
        return [(most // _SEARCH_DIVISOR, NEIGHBOURS), (most, NEIGHBOURS)] + [(n // 2, _STEP_TO_NARROWER)] * narrows

    def _of_all(self, scale: float | None) -> Stage:
        """Return the stage of all rows, which leaves out only the last ones where more is too much work.

        That is the case if the choice is made, so that they only serve calibration, and for many rows of targets
        that take a solution for each part.
        """
        n = self.rows.Y.shape[0]
        if self.alpha_is_from_race:
            return Stage(self, None, scale, 0 if self.rows.has_rare else max(0, n - FEW_ROWS))
        if n > FEW_ROWS and not self._is_shared:
            return Stage(self, None, scale, n // 2)
        return Stage(self, None, scale)

    def _chosen(self, stage: Stage, best: Setting, stages: list[Stage]) -> ChosenMachine:
        """Return the choice: the best setting of the last stage, and all that were tried."""
        solution, residuals, rows = stage.left_out(best)
        solution = stage.finished(best, solution)
        held_out = np.full(self.rows.Y.shape, np.nan)
        held_out[rows] = self.rows.Y[rows] - residuals
        trials = [(setting, trial) for tried_stage in stages for setting, trial in tried_stage.trials.items()]
        settings: dict[str, np.ndarray] = {"alpha": np.array([trial.alpha for _, trial in trials])}
        if self.matrix.gamma(0) is not None:
            settings["gamma"] = np.array([self.matrix.gamma(octaves) for (_, octaves), _ in trials])
        settings["n_rows"] = np.array([trial.n_rows for _, trial in trials])
        places = [i for i, (setting, trial) in enumerate(trials) if setting == best]
        result = SelectionResult(
            self._name,
            settings,
            np.array([[trial.score] for _, trial in trials]),
            np.ones(1),
            places[-1],
            self.rows.score.name,
            greater_is_better=True,
        )
        return ChosenMachine(solution, best[1], held_out, result, growth=stage.grown)

    @property
    def _name(self) -> str:
        """The name of the rule."""
        if not self._is_shared:
            return "leave-part-out"
        return "leave-one-out" if self.rows.groups is None else "leave-group-out"

    @property
    def _is_shared(self) -> bool:
        """Whether one factor serves all targets."""
        return is_shared(self.rows.Y, self.rows.weights)


def usual_machines(n: int) -> list[int]:
    """Return the rows of each machine that a search on n rows usually solves, one after the other; see ``LeaveOut``."""
    if n <= FEW_ROWS:
        return [n] * _USUAL_OF_FEW
    most = max(FEW_ROWS, int(_COMPARED_SHARE * n))
    return [most // _SEARCH_DIVISOR] * _USUAL_FIRST + [most] * _USUAL_THEN + [n]


def _spread(n: int, n_some: int) -> np.ndarray | None:
    """Return ``n_some`` rows of n, spread over all; None if these are all."""
    return np.linspace(0, n - 1, n_some).astype(np.intp) if n > n_some else None


class LeavingOut(Selection):
    """The rule of kernel machines: each row, or each group, is left out of one machine in closed form."""

    rule: ClassVar[str] = "leave-one-out"
    compares_more: ClassVar[bool] = True

    def choose(self, problem: KernelProblem | BlockProblem, open: OpenSettings) -> Compared:
        """See ``Selection``; a problem that goes on from a checkpoint has its choice already."""
        chosen = problem.chosen
        if chosen is None:
            rows, matrix = problem.first, problem.matrix
            if rows.order.size < 2:
                raise DataError("one row only: a machine is chosen by leaving rows out, which takes at least two rows.")
            has_gamma, is_raced = matrix.gamma(0) is not None, "alpha" in open.from_race
            octaves = OCTAVES if open.gamma and has_gamma else 0
            chosen = LeaveOut(matrix, rows, strengths_of(open), octaves, is_raced, self._on_score).choose()
            chosen = replace(chosen, open=[name for name in open.names if name != "gamma" or has_gamma])
        return Compared(cast("SelectionResult", chosen.result), problem, problem.adopt(chosen))


def strengths_of(open: OpenSettings) -> Sequence[float] | None:
    """Return the strengths to choose from, ascending, or None for a search."""
    if open.alpha is None:
        return None
    alphas = sorted({min(alpha, _MOST_ALPHA) for alpha in np.atleast_1d(open.alpha).tolist()})
    return [alphas[0] * 10.0**decades for decades in range(_DECADES_RAISED)] if "alpha" in open.from_race else alphas
