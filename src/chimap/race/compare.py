"""The race in full: every kernel or all features of one on the same rows, and which machine to use.

``compare`` races candidates on a sample, fits the best of each kind as all rows will be fitted, and says how long that
takes. ``reports.compare`` makes it a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chimap._memory import format_bytes, whole_mebibytes
from chimap._messages import Message
from chimap._types import Parameters
from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.engines import Progress, Stopwatch
from chimap.machines.base import Facts, Request
from chimap.machines.block_plan import BlockPlan
from chimap.machines.catalogue import machine_for
from chimap.machines.explicit import landmarks_of
from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.race.candidates import candidates_of_kernel, features_of_kernel, kernels_worth_trying, variant_of
from chimap.race.choose import final_recipe
from chimap.race.runner import Fit, Race
from chimap.race.trials import trial_of
from chimap.recipe import Recipe
from chimap.recipe.task import Task
from chimap.selection.jackknife import standard_error
from chimap.solvers.kernel_matrix import exact_bytes

SIZES = (256, 1024)
_EXACT_ORDER = (1.0, 2.5)  # bounds on the power of the rows that the time of an exact machine grows with
_CHOSEN = ("scoring", "alpha", "gamma")  # settings that a race or the fit chooses
_GROWING = ("read", "check", "features", "moments", "prepare")  # stages whose time grows with the rows
FASTER = 2.0  # a speed-up of predictions by this factor outweighs a loss in score that may be chance
SAME_TIME = 1.25  # prediction times within this factor count as equal


@dataclass(frozen=True)
class Run:
    """The result of a model in one round.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    score : float
        Score on the held-out rows; greater is better.
    standard_error : float
        Standard error of the score.
    seconds : float
        Time of the fit and the predictions.
    predict_seconds : float
        Time of a prediction per row.
    """

    n_rows: int
    score: float
    standard_error: float
    seconds: float
    predict_seconds: float


@dataclass(frozen=True)
class Entrant:
    """A model in the race.

    Parameters
    ----------
    name : str
        Unique name, for JSON and legends.
    settings : dict
        Parameters of the estimator.
    runs : tuple of Run
        One result per round.
    deviations : tuple of float, default=()
        Jackknife deviations of the last score, from which standard errors of differences are computed.
    is_linear : bool, default=False
        Whether it is a linear baseline.
    fit_settings : dict or None, default=None
        Parameters that fit this model on all rows; None if that is impossible, as for an exact model whose rows exceed
        the memory.
    error : str, default=""
        Why the model failed; empty if it did not.
    """

    name: str
    settings: Parameters
    runs: tuple[Run, ...]
    deviations: tuple[float, ...] = ()
    is_linear: bool = False
    fit_settings: Parameters | None = None
    error: str = ""

    @property
    def fits(self) -> bool:
        """Whether the model can be fitted on all rows."""
        return self.fit_settings is not None

    @property
    def last(self) -> Run:
        """The result of the last round it ran in."""
        return self.runs[-1]

    @property
    def kernel(self) -> str:
        """Kernel and normalisation: 'exp-chi2, l1'."""
        normalize = self.settings.get("normalize")
        return str(self.settings.get("kernel", self.name)) + ("" if normalize is None else f", {normalize}")

    @property
    def method(self) -> str:
        """How the kernel is used: 'exact', '1,960 landmarks'."""
        features = self.settings.get("features", "exact")
        if self.settings.get("loss", "square") in ("hinge", "squared_hinge"):
            return "SVM"
        if self.settings.get("kernel") == "linear":
            return "exact" if features == "exact" and not self.fits else "ridge"
        n = self.settings.get("n_components", "")
        size = f"{n:,} " if isinstance(n, int) else ""
        return {"landmarks": f"{size}landmarks", "fourier": f"{size}random features"}.get(features, str(features))

    @property
    def words(self) -> str:
        """Kernel, normalisation and method in one line."""
        return f"{self.kernel}, {self.method}"


def recommended(finalists: Sequence[Entrant]) -> tuple[Entrant, Entrant]:
    """Return the best and the recommended entrant of the last round.

    The best entrant is recommended, unless others predict at least twice as fast and score lower by no more than one
    standard error of the difference. Then the fastest of those is recommended, and of equally fast ones the one with
    the highest score. Entrants that cannot be fitted on all rows are considered only if there are no others.

    Parameters
    ----------
    finalists : sequence of Entrant
        The entrants of the last round, best first.

    Returns
    -------
    tuple of Entrant
        The best and the recommended one.
    """
    candidates = [e for e in finalists if e.fits] or list(finalists)
    best = candidates[0]
    near = [e for e in candidates if best.last.score - e.last.score <= standard_error(differences(best, e))]
    fast = [e for e in near if FASTER * e.last.predict_seconds <= best.last.predict_seconds]
    if not fast:
        return best, best
    limit = SAME_TIME * min(e.last.predict_seconds for e in fast)
    return best, max((e for e in fast if e.last.predict_seconds <= limit), key=lambda e: e.last.score)


def differences(one: Entrant, other: Entrant) -> np.ndarray:
    """Return the jackknife deviations of the difference of two scores on the same rows; empty if one is unknown."""
    if len(one.deviations) != len(other.deviations):
        return np.zeros(0)
    return np.subtract(one.deviations, other.deviations)


@dataclass(frozen=True)
class ComparedMachines:
    """The entrants of a race, and what a fit of the recommended one takes.

    Parameters
    ----------
    entrants : tuple of Entrant
        All of them, including those that failed.
    measure : str
        Name of the score.
    floor : float or None
        Score of a prediction that uses no bins; None if it is unknown.
    n_rows : int
        Number of training rows of the last round.
    n_held_out : int
        Number of held-out rows of the last round.
    chosen : Entrant
        The recommended entrant.
    fit_seconds : float
        Expected seconds of its fit on all rows.
    blocks : BlockPlan or None
        How it takes all rows block by block; None if it does not.
    """

    entrants: tuple[Entrant, ...]
    measure: str
    floor: float | None
    n_rows: int
    n_held_out: int
    chosen: Entrant
    fit_seconds: float
    blocks: BlockPlan | None


def compare(
    asked: Recipe,
    source: Source,
    task: Task,
    groups: np.ndarray | None,
    fit: Fit,
    progress: Progress,
    clock: Stopwatch,
    *,
    kernel: str | None = None,
    gamma: float | str = "auto",
    normalize: str | Sequence[str | None] | None = None,
    sizes: Sequence[int] = SIZES,
) -> ComparedMachines:
    """Race all kernels, or all features of one kernel, on a sample of a source, and recommend a machine.

    See ``reports.compare`` for the parameters, and for what is raised.
    """
    with clock("read"):
        running = Race.on(asked, source, task, groups, fit)
    _check_memory(running, source)
    traits = running.traits
    if kernel is None:  # every one runs, without families of which the first decides
        entered = [spec.candidate(asked, has_family=False) for spec in kernels_worth_trying(traits)]
    else:
        entered = candidates_of_kernel(asked, kernel, gamma, traits, normalize)
    with clock("race"):
        result = running.run(entered, progress)
    bench = _Bench(running, Facts.of(source, task, groups, Request(can_keep=True)), result)
    with clock("as it will be fitted"):
        progress.stage("rehearsing", None, "fits")
        if kernel is not None:
            bench.add_features(sizes)
        bench.add_final()
        _, chosen = recommended(bench.finalists())
        seconds, blocks = bench.fit_seconds(chosen), bench.blocks_of(chosen)
    return ComparedMachines(
        tuple(bench.entrants),
        result.measure,
        _floor(running, result.measure),
        max(running.splits_of),
        running.n_held_out,
        chosen,
        seconds,
        blocks,
    )


def _check_memory(racing: Race, source: Source) -> None:
    """Raise MemoryBudgetError if the largest kernel matrix of the race does not fit."""
    needed = exact_bytes(max(racing.splits_of), 2 * source.row_bytes, np.dtype(np.float32))
    budget = racing.asked.most_memory
    if needed > budget:
        raise MemoryBudgetError(
            Message(
                "{memory=!s} is too small: the kernel matrix of {:,} rows needs {}. Give {memory=}.",
                format_bytes(budget),
                max(racing.splits_of),
                format_bytes(needed),
                whole_mebibytes(needed),
            )
        )


def _floor(racing: Race, measure: str) -> float | None:
    """Return the score of a prediction without bins: the commonest class, the mean, or chance; None if unknown."""
    if racing.y.ndim == 2:
        return None
    if measure == "accuracy":
        y = np.concatenate([racing.y[test] for _, test in racing.splits])
        return float(np.unique(y, return_counts=True)[1].max() / y.size)
    return {"R2": 0.0, "roc_auc": 0.5}.get(measure)


class _Bench:
    """The entrants so far, and fits of machines as they will be for all rows."""

    def __init__(self, racing: Race, facts: Facts, result: RaceResult):
        self._racing, self._facts = racing, facts
        self._rounds = sorted(racing.splits_of)
        self._trials = {t.candidate.name: t for t in result.trials}
        self._recipes: dict[str, Recipe] = {}  # of each entrant in the race
        self._finals: dict[str, Recipe] = {}  # of those entrants that all rows can be fitted with
        self.entrants = [self._raced(t, result.history) for t in result.trials]

    def finalists(self) -> list[Entrant]:
        """Return the entrants of the last round, the best first."""
        last = [e for e in self.entrants if not e.error and e.last.n_rows == self._rounds[-1]]
        return sorted(last, key=lambda e: -e.last.score)

    def add_features(self, sizes: Sequence[int]) -> None:
        """Add the features of the best kernel machine that is not a baseline, on the rows of the last round."""
        best = next((e for e in self.finalists() if not e.is_linear), None)
        if best is None:
            return
        trial = self._trials[best.name]
        for candidate in features_of_kernel(
            self._racing.asked, trial.candidate, trial.learned, self._racing.traits, sizes, self._rounds[-1]
        ):
            self._rehearse(candidate, candidate.recipe)

    def add_final(self) -> None:
        """Add what the best of each kind become on all rows: landmarks, additive features, margins; linear machines."""
        finalists, asked = self.finalists(), self._racing.asked
        tried: set[tuple[bool, object, object]] = set()
        for entrant in [e for e in finalists if e.name in self._trials]:
            trial = self._trials[entrant.name]
            recipe = self._final(trial)
            kind = entrant.is_linear, recipe.features, recipe.loss
            if kind in tried or _is_same_machine(recipe, trial.candidate.recipe):
                continue
            tried.add(kind)
            sized = recipe.without_raced("scoring", of=asked)
            if recipe.features == "landmarks":
                # As many landmarks as suit all rows, up to the number of rows of the race.
                n_landmarks = min(landmarks_of(self._facts.n_rows), self._rounds[-1])
                sized = sized.with_raced(n_components=n_landmarks)
            self._rehearse(variant_of(trial.candidate, sized), recipe)

    def fit_seconds(self, chosen: Entrant) -> float:
        """Return the expected seconds of a fit of all rows.

        Those of an exact machine on one matrix come from fits of two numbers of rows, those of one that is solved block
        by block from its operations.
        """
        blocks = self.blocks_of(chosen)
        if blocks is not None:
            return blocks.first_seconds + blocks.seconds
        recipe, n, n_rows = self._recipes[chosen.name], self._rounds[-1], self._facts.n_rows
        if recipe.is_exact:
            fits = [(n_fitted, sum(self._stages(recipe, n_fitted).values())) for n_fitted in self._rounds[-2:]]
            return seconds_of_exact(fits, n_rows)
        return seconds_of_pass(self._stages(recipe, n), n, n_rows)

    def blocks_of(self, chosen: Entrant) -> BlockPlan | None:
        """Return how an exact machine takes all rows block by block; None for others, and where one matrix fits."""
        recipe = self._finals.get(chosen.name)
        cost = None if recipe is None else machine_for(recipe, self._facts, self._racing.asked).cost
        return cost if isinstance(cost, BlockPlan) else None

    def _stages(self, recipe: Recipe, n_rows: int) -> Mapping[str, float]:
        """Return the seconds of each stage of a fit of ``n_rows`` rows."""
        train, _ = self._racing.splits[0]
        return self._racing.fitted(recipe, train[:n_rows]).learned.stage_seconds or {}

    def _rehearse(self, candidate: Candidate, for_all: Recipe) -> None:
        """Fit a machine for all rows to those of the last round, and score it, unless it is there already."""
        if all(e.name != candidate.name for e in self.entrants):
            trial = trial_of(candidate, self._racing, len(self._rounds) - 1, self._rounds[-1])
            self.entrants.append(self._entrant(trial, [trial], for_all))

    def _raced(self, trial: Trial, history: Sequence[Trial]) -> Entrant:
        """Return the entrant of a candidate that ran in the race."""
        final = None if trial.error else self._final(trial)
        is_same = final is not None and _is_same_machine(final, trial.candidate.recipe)
        return self._entrant(trial, history, final if is_same else None)

    def _entrant(self, trial: Trial, history: Sequence[Trial], for_all: Recipe | None) -> Entrant:
        """Return an entrant with the runs of its candidate that succeeded."""
        succeeded = [t for t in history if t.candidate.name == trial.candidate.name and not t.error]
        runs = tuple(
            Run(t.n_rows, t.score, t.standard_error, t.seconds / self._racing.splits_of[t.n_rows], t.predict_seconds)
            for t in succeeded
        )
        candidate = trial.candidate
        self._recipes[candidate.name] = candidate.recipe
        if for_all is not None:
            self._finals[candidate.name] = for_all
        return Entrant(
            candidate.name,
            candidate.settings,
            runs,
            trial.deviations,
            candidate.is_baseline,
            None if for_all is None else for_all.raced_settings,
            trial.error,
        )

    def _final(self, trial: Trial) -> Recipe:
        """Return the recipe of the machine that a candidate becomes on all rows."""
        return final_recipe(self._racing, trial, self._facts)


def _is_same_machine(one: Recipe, other: Recipe) -> bool:
    """Whether recipes differ only in what a fit chooses by itself."""
    chosen = [
        {name: value for name, value in recipe.raced_settings.items() if name not in _CHOSEN} for recipe in (one, other)
    ]
    return chosen[0] == chosen[1]


def seconds_of_exact(fits: Sequence[tuple[int, float]], n_rows: int) -> float:
    """Return the expected seconds of an exact machine of ``n_rows`` rows, from (rows, seconds) of one fit or two.

    With two fits, the time grows with the power of the rows that lies between them, at least 1 and at most 2.5; with
    one fit, the power is 2.

    >>> seconds_of_exact([(1000, 1.0), (2000, 4.0)], 4000)
    16.0
    """
    n, seconds = fits[-1]
    before, seconds_before = fits[0]
    power = 2.0
    if before < n and seconds_before > 0:
        power = float(np.clip(np.log(seconds / seconds_before) / np.log(n / before), *_EXACT_ORDER))
    return float(seconds * max(1.0, n_rows / n) ** power)


def seconds_of_pass(stages: Mapping[str, float], n: int, n_rows: int) -> float:
    """Return the expected seconds of a fit of ``n_rows`` rows, from those of the stages of a fit of ``n``.

    The stages of the pass grow with the rows, and so do all stages of LIBLINEAR. Choosing and solving from sums does
    not.

    >>> seconds_of_pass({"sample": 2.0, "features": 3.0, "moments": 1.0}, 1000, 2000)
    10.0
    """
    is_margin = "solve" in stages and "moments" not in stages
    growing = sum(time for name, time in stages.items() if is_margin or name in _GROWING)
    return sum(stages.values()) + growing * max(0.0, n_rows / n - 1)
