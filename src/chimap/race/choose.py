"""What a race chooses: the recipe that it is given, with the settings that were open.

``race`` runs the candidates that suit the rows, tries what the leader becomes on all rows, and goes on to weights of
its bins.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from chimap._errors import InputError
from chimap._memory import budgets, room_in
from chimap._messages import Message
from chimap._threads import threads
from chimap._validation import MemoryBudgetError, check_choice, checked_weights
from chimap.data import Source
from chimap.data.doubts import say
from chimap.engines import Progress
from chimap.machines.base import Facts, Request, Winner
from chimap.machines.catalogue import for_all_rows
from chimap.machines.explicit import landmarks_of
from chimap.machines.holding_out import can_score_one_part, without_units_of
from chimap.models.model import Model
from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.race.bins import bins_if_any, is_in_time, promoted, weigh_bins, with_bins
from chimap.race.candidates import (
    HISTOGRAM_KERNELS,
    is_free,
    kernels_worth_trying,
    most_candidates,
    named_candidate,
    on_device,
    on_normalizations,
    with_known_labels,
    within,
    within_room,
)
from chimap.race.covariates import with_covariates
from chimap.race.rows import held_out_rows
from chimap.race.runner import Fit, Race
from chimap.race.specs import Room
from chimap.race.trials import trial_of
from chimap.recipe import Recipe
from chimap.recipe.recipe import checked_normalizations
from chimap.recipe.task import Task
from chimap.selection.jackknife import standard_error


@dataclass(frozen=True, eq=False)
class Raced:
    """A recipe for all rows, the rows with the columns of their covariates, and the race that the recipe leads, if any.

    One that a race has not led has the result None.
    """

    recipe: Recipe
    rows: Source
    result: RaceResult | None

    def finished(self, model: Model, seconds: Mapping[str, float]) -> Model:
        """Return the model with the race and the seconds of all stages; intervals allow for the luck of the winner."""
        if self.result is not None:
            seconds = {"race": self.result.seconds, **seconds}
            model = replace(model, answers=model.answers.widened(self.result.luck))
        return replace(model, learned=replace(model.learned, race=self.result, stage_seconds=seconds))


def race(
    asked: Recipe,
    source: Source,
    task: Task,
    groups: np.ndarray | None,
    fit: Fit,
    progress: Progress,
    request: Request,
    known: tuple[Recipe, RaceResult | None] | None = None,
) -> Iterator[Raced]:
    """Yield the recipe for all rows with what a race chooses: kernel, normalisation, loss, bins, covariates.

    Recipes of the other candidates follow, the better ones first, for where memory does not hold the machine. Each has
    the result that it leads.

    Parameters
    ----------
    asked : Recipe
        The settings that are asked for.
    source, task, groups
        The rows, their targets and their groups.
    fit : callable
        Returns the model of a recipe, for rows and their groups.
    progress : Progress
        Informed of the stages.
    request : Request
        What is asked of the fit besides: without ``races`` only covariates are chosen.
    known : tuple of Recipe and RaceResult, or None, default=None
        What an earlier race has chosen, if the fit is resumed.
    """
    chosen: list[tuple[Recipe, RaceResult | None]] = [(asked, None) if known is None else known]
    if known is None and request.races:
        chosen = raced_recipes(asked, source, task, groups, fit, progress, request)
    for recipe, result in chosen:
        yield Raced(*with_covariates(recipe, hiding(recipe, source, groups), task, groups, fit, progress), result)


def hiding(recipe: Recipe, source: Source, groups: np.ndarray | None) -> Source:
    """Return the rows, which know those whose labels are hidden from weights of bins that a race has learned."""
    if recipe.weighed_rows is None:
        return source
    hiding = copy.copy(source)
    hiding.hidden = without_units_of(recipe.weighed_rows, source.n_rows, groups)
    return hiding


@dataclass
class Attempts:
    """The choices of a race one after the other, each in the budgets that it may have, until memory holds a machine.

    A fit goes on to the next as long as ``held`` has met a MemoryBudgetError. If no machine fits, that of the first
    choice is raised, in its largest budget.

    Parameters
    ----------
    choices : iterable of Raced
        The choices, the better ones first.
    refused : list of tuple of Raced and MemoryBudgetError, default=[]
        The choices whose machines memory did not hold in any budget.
    """

    choices: Iterable[Raced]
    refused: list[tuple[Raced, MemoryBudgetError]] = field(default_factory=list)
    _latest: MemoryBudgetError | None = None

    def __iter__(self) -> Iterator[Raced]:
        """Yield the choices in their budgets, the least first."""
        for choice in self.choices:
            for memory in budgets(choice.recipe.memory):
                is_asked = memory == choice.recipe.memory
                yield choice if is_asked else replace(choice, recipe=choice.recipe.with_values(memory=memory))
            assert self._latest is not None
            self.refused.append((choice, self._latest))
        raise self.refused[0][1]

    @contextmanager
    def held(self, choice: Raced) -> Iterator[None]:
        """Keep the MemoryBudgetError of a choice; say which one memory holds if it is not the first."""
        try:
            yield
        except MemoryBudgetError as error:
            self._latest = error
            return
        first, refusal = self.refused[0] if self.refused else (choice, None)
        if refusal is not None and first.result is not None and choice.result is not None:
            winner, taken = first.result.winner.name, choice.result.winner.name
            say([Message("{} won the race, but {} The model is {}, the next that fits.", winner, refusal, taken)])


def raced_recipes(
    asked: Recipe, source: Source, task: Task, groups: np.ndarray | None, fit: Fit, progress: Progress, request: Request
) -> list[tuple[Recipe, RaceResult | None]]:
    """Return the recipes for all rows with what a race chooses, and the results that they lead; see ``race``.

    kernel="auto" and several normalisations are chosen on a sample of the rows, and so are weights of bins if they are
    to be learned. Rows are held out by group if groups are given, and stratified by class if there are classes.
    Settings that the user gave stay: the race is then among kernels and normalisations. request: what is asked
    of the fit besides.

    Raises
    ------
    DataError
        If no candidate can be fitted, if there are too few rows or groups to hold any out, or if a scorer raises.
    """
    if asked.learner is not None:
        return [(asked, None)]
    if isinstance(asked.bin_weights, str):
        check_choice(asked.bin_weights, "bin_weights", ("auto", "learn"))
        if asked.bin_weights == "learn":
            check_hides_labels(asked, request)
    elif asked.bin_weights is not None:
        checked_weights(asked.bin_weights, source.n_features, "bin", "bin_weights", "None, 'auto', 'learn' or numbers")
    with threads(asked.n_jobs), progress:
        if asked.has_race:
            return _raced(asked, source, task, groups, fit, progress, request)
        if isinstance(asked.bin_weights, str) and asked.bin_weights == "learn":
            return [weigh_bins(asked, source, task, groups, fit, progress)]
    return [(asked, None)]


def check_hides_labels(asked: Recipe, request: Request) -> None:
    """Raise InputError where weights of bins are to be learned, and rows would be scored whose labels they know."""
    if request.is_batch:
        raise InputError(
            Message(
                "{bin_weights='learn'} learns from some of the first rows, and partial_fit may score any of them: use "
                "fit, or give weights."
            )
        )
    if not can_score_one_part(asked.selection):
        raise InputError(
            Message(
                "{bin_weights='learn'} learns from the labels of some rows, and only the others can be scored; "
                "{selection=} scores all. Use {selection='auto'}, or {bin_weights=None}.",
                asked.selection,
            )
        )


def _raced(
    asked: Recipe, source: Source, task: Task, groups: np.ndarray | None, fit: Fit, progress: Progress, request: Request
) -> list[tuple[Recipe, RaceResult | None]]:
    facts = Facts.of(source, task, groups, request)
    holds_out = request.holds_out or held_out_rows
    running = Race.on(asked, source, task, groups, fit, leaves_out=request.may_leave_each_out, holds_out=holds_out)
    if running.traits.is_signed and asked.leaves_open("kernel"):
        say(
            [
                Message(
                    "{}: entries are negative, so {kernel='auto'} compares linear and gaussian machines on the rows as "
                    "they are. The kernels of histograms ({}) and normalisations take none, and fell out.",
                    source.name,
                    ", ".join(HISTOGRAM_KERNELS),
                )
            ]
        )
    entered = _entered(running, source)
    result = running.run(entered, progress)
    if result.failures:
        warnings.warn(result.failures, stacklevel=3)
    result = running.judged(result, [candidate.name for candidate in entered])
    if result.repeats:
        warnings.warn(result.repeats, stacklevel=3)
    if is_in_time(asked, result.seconds):
        result = running.improved(result)

    def for_all(trial: Trial) -> Recipe:
        return final_recipe(running, trial, facts)

    result, exact = _as_fitted(running, result, for_all, source.n_rows)
    best = None
    may_weigh = can_score_one_part(asked.selection) and not request.is_batch
    for trial in promoted(running, result, source.n_features) if may_weigh else ():
        # Landmarks are weighted through the exact machines that they replace, which share their products.
        bins = bins_if_any(running, exact.get(trial.candidate.name, trial), progress)
        if bins is not None:
            result = with_bins(result, bins)
            best = bins if result.trials[0] is bins.trial else best
    chosen = for_all(result.trials[0])
    others = [trial for trial in result.trials[1:] if not trial.error and "bin_weights" not in trial.candidate.settings]
    return [
        (chosen if best is None else best.adopted_by(chosen), result),
        *((for_all(trial), result.led_by(trial)) for trial in others),
    ]


def _entered(running: Race, source: Source) -> list[Candidate]:
    """Return the candidates of a race: of the kernel and the normalisations that the user gave, if any."""
    asked, shared, traits = running.asked, running.shared, running.traits
    normalizations = [None if each is None else each.name for each in checked_normalizations(asked.normalize)]
    if not asked.leaves_open("kernel"):
        takes = None if shared is None else shared.takes
        return [named_candidate(asked, normalize, takes) for normalize in normalizations]
    most = None if running.leaves_out else most_candidates(running.rows.shape[0])
    entered = on_device(kernels_worth_trying(traits, most), asked.device)
    if asked.normalize is not None:
        entered = on_normalizations(entered, normalizations, traits)
    # where only such were asked for, the fit says what to do
    entered = with_known_labels(entered, asked, source.covariates is not None) or entered
    entered = within_room(entered, Room(source, traits.density, room_in(asked.most_memory), running.footprint))
    if is_free(asked) and running.footprint <= asked.room:
        return [spec.candidate(asked) for spec in entered]
    return within(entered, asked)


def final_recipe(running: Race, trial: Trial, facts: Facts) -> Recipe:
    """Return the recipe of a candidate for all rows, with the features of the machine that they get."""
    knows_all = running.leaves_out and "bin_weights" not in trial.candidate.settings
    return for_all_rows(trial.candidate.recipe, facts, running.asked, Winner(trial.learned, knows_all, running.scoring))


# --- a machine that all rows turn into another one (an exact machine into landmarks) wins only as that other one


def _as_fitted(
    running: Race, result: RaceResult, for_all: Callable[[Trial], Recipe], n_rows: int
) -> tuple[RaceResult, dict[str, Trial]]:
    """Return a result whose winner is fitted on all rows as it ran, and the trials that landmarks have replaced.

    The trials are keyed by the name of the candidate that replaced them. Landmarks, as many as all ``n_rows`` rows will
    have, learn from the rows of the trial that they replace, and are scored on the same rows. An additive kernel needs
    no rehearsal: sums over all rows and ridge on their features give the machine that ran.
    """
    replaced: dict[str, Trial] = {}
    while True:
        first = result.trials[0]
        recipe = for_all(first)
        if not _becomes_landmarks(running, recipe):
            return result, replaced
        if first.candidate.recipe.features == "landmarks":
            return _less_saturated(running, result, for_all), replaced
        n_landmarks = min(landmarks_of(n_rows), first.n_rows)
        title = f"{first.candidate.name}, {n_landmarks:,} landmarks"
        sized = recipe.without_raced("scoring", of=running.asked).with_raced(n_components=n_landmarks)
        trial = trial_of(Candidate(title, sized), running, first.round, first.n_rows)
        replaced[title] = first
        result = result.in_place_of(first, trial)


def _less_saturated(running: Race, result: RaceResult, for_all: Callable[[Trial], Recipe]) -> RaceResult:
    """Return the result led by the best other machine, if landmarks lead it by no more than a standard error.

    The number of landmarks does not grow with the rows, so a score on few rows flatters them.
    """
    first = result.trials[0]
    for trial in result.trials[1:]:
        if trial.round < first.round or trial.error:
            break
        if _becomes_landmarks(running, for_all(trial)):
            continue
        error = standard_error(np.subtract(first.deviations, trial.deviations))
        return result.led_by(trial) if first.score - trial.score <= error else result
    return result


def _becomes_landmarks(running: Race, recipe: Recipe) -> bool:
    """Whether a candidate has landmarks of all rows that the user has not named."""
    return running.asked.leaves_open("features") and bool(recipe.features == "landmarks")
