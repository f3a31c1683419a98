"""Machines that cost one pass over the rows, and are compared on all of them with what a race has chosen on a sample.

A race on 3000 rows tells which rows and which additive kernel suit linear machines. Which of these machines is best on
all rows, and whether a kernel machine is worth its time there, is decided by all rows (``fit.rivals``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.race.candidates import HISTOGRAM_KERNELS, WEIGHTED_WORDS, is_free
from chimap.race.rounds import ERRORS_TO_DROP
from chimap.race.specs import LOGISTIC, SUMS, KernelSpec, Way
from chimap.recipe import Recipe
from chimap.selection.jackknife import is_behind

_HOPELESS = 2.0  # times the errors of the winner, in the same round: more rows do not make up for that


def linear(result: RaceResult, asked: Recipe) -> list[KernelSpec]:
    """Return linear machines on the rows that suit them best: ridge, and logistic regression of classes.

    Ridge takes words by each of the weights that the race has tried: which is better depends on how many rows there
    are to learn weights from.
    """
    best = _best(result, ("linear",))
    if best is None:
        return []
    rows = best[1]
    tried = {trial.candidate.settings["normalize"] for trial in _by_ridge(result, ("linear",))}
    others = [other for other in WEIGHTED_WORDS if other in tried and rows in WEIGHTED_WORDS and other != rows]
    specs = [_linear(each, SUMS) for each in (rows, *others)]
    return [*specs, _linear(rows, LOGISTIC)] if asked.is_classifier else specs


def _linear(rows: str | None, way: Way) -> KernelSpec:
    name = "raw rows" if rows is None else "square roots" if rows == "sqrt" else f"{rows} rows"
    return KernelSpec("linear", rows, way, f"linear {'ridge' if way is SUMS else way.name}, {name}", is_baseline=True)


def additive(result: RaceResult, asked: Recipe) -> list[KernelSpec]:
    """Return machines on the map of the additive kernel that suits the rows best: ridge, and logistic regression."""
    best = _best(result, HISTOGRAM_KERNELS)
    ways = [SUMS, LOGISTIC] if asked.is_classifier else [SUMS]
    return [] if best is None else [KernelSpec(*best, way) for way in ways]


RIVALS: tuple[Callable[[RaceResult, Recipe], list[KernelSpec]], ...] = (linear, additive)
"""Machines of one pass, simpler ones first: functions of the result of a race and of what was asked for."""


def rivals_of(result: RaceResult | None, asked: Recipe) -> list[list[Candidate]]:
    """Return the rivals of the winner of a race, the simpler ones first; those of one list are as simple.

    There are none where the user named a setting that they do not share with the winner. A list is empty where the race
    tells of no machine of its kind but the winner.
    """
    if result is None or not is_free(asked) or not asked.leaves_open("kernel", "features", "alpha", "selection"):
        return []
    if asked.time_limit is not None:
        return []
    winner = result.winner.recipe
    entered = [[spec.candidate(asked) for spec in rivals(result, asked)] for rivals in RIVALS]
    return [[each for each in same if not _is_same(each.recipe, winner)] for same in entered]


def challenger_of(result: RaceResult) -> Trial | None:
    """Return the trial of the best exponential kernel, which more rows may bring ahead of a winner that is cheaper.

    None if it left the race before the last round, or is further behind than chance.
    """
    first = result.trials[0]
    near = [
        trial
        for trial in result.trials
        if trial.candidate.recipe.is_exact
        and "gamma" in trial.learned
        and "bin_weights" not in trial.candidate.settings
        and trial.round == first.round
        and not is_behind(trial, first, ERRORS_TO_DROP)
    ]
    return max(near, key=lambda trial: trial.score, default=None)


def _best(result: RaceResult, kernels: Sequence[str]) -> tuple[str, str | None] | None:
    """Return the best of some kernels by ridge, and its rows; None if it is far behind the winner."""
    best = max(_by_ridge(result, kernels), key=lambda trial: (trial.round, trial.score), default=None)
    if best is None:
        return None
    own = [t.score for t in result.history if t.candidate.name == result.winner.name and t.n_rows == best.n_rows]
    if own and 1 - best.score > _HOPELESS * (1 - own[-1]):
        return None
    settings = best.candidate.settings
    return settings["kernel"], settings["normalize"]


def _by_ridge(result: RaceResult, kernels: Sequence[str]) -> list[Trial]:
    """Return the trials of some kernels by ridge."""
    return [
        trial
        for trial in result.trials
        if not trial.error
        and trial.candidate.recipe.kernel in kernels
        and trial.candidate.recipe.is_exact
        and "bin_weights" not in trial.candidate.settings
    ]


def _is_same(recipe: Recipe, other: Recipe) -> bool:
    """Whether two recipes differ in their features at most."""
    return (recipe.kernel, recipe.normalize, recipe.loss) == (other.kernel, other.normalize, other.loss)
