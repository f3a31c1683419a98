"""The settings that kernel="auto" and bin_weights="learn" give to the fit of all rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chimap._memory import budget_for, parse_memory, room_in, whole_mebibytes
from chimap._messages import Message
from chimap._types import Parameters
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import Source
from chimap.data.doubts import say
from chimap.engines import Progress
from chimap.estimators.race import FEWEST_SAMPLED, Race
from chimap.estimators.race_bins import WeighedBins
from chimap.estimators.race_candidates import (
    HISTOGRAM_KERNELS,
    candidates,
    is_free,
    most_candidates,
    on_device,
    on_normalizations,
    settings_for,
    within,
    within_room,
)
from chimap.estimators.race_promotion import is_in_time, promoted
from chimap.estimators.race_rehearsal import rehearsed
from chimap.features.base import FeatureSettings
from chimap.fit.automatic import holds_matrix, is_automatic, takes_blocks, takes_wide
from chimap.fit.recipe import checked_normalizations
from chimap.fit.trials import Trials
from chimap.race.bins import LearnedBins
from chimap.race.rows import score_name
from chimap.race.trials import SAME, Candidate, RaceResult, Trial
from chimap.selection.leave_one_out import FEW_ROWS

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


_SEARCHED_AGAIN = (
    2  # times the rows that settings are compared on: a search of so many takes as long as their fit
)
_COPIES = 4  # of the sample: as taken, converted, scaled and weighted
_FEWER = 0.9  # largest factor on the rows of a sample whose machines do not fit in the memory budget


def race_of(
    model: BaseEstimator,
    source: Source,
    groups: np.ndarray | None,
    progress: Progress,
    keeps_rows: bool = True,
) -> tuple[RaceResult, Parameters]:
    """Race an estimator on a sample of a source; return the result, and the settings for all rows.

    Rows are held out by group if groups are given, and stratified by class if there are classes. Settings that the user
    gave stay: the race is then among kernels and normalisations. keeps_rows: whether the fit may keep all rows in
    memory, as exact machines do.

    Raises
    ------
    DataError
        If no candidate can be fitted, if there are too few rows or groups to hold any out, or if a scorer raises.
    """
    running, room = Race.on(model, source, groups, keeps_rows=keeps_rows), room_in(parse_memory(model.memory))
    if running.look.is_signed and is_automatic(model.kernel):
        say([Message(
            "{}: entries are negative, so {kernel='auto'} compares linear and gaussian machines on the rows as they "
            "are. The kernels of histograms ({}) and normalisations take none, and fell out.",
            source.name, ", ".join(HISTOGRAM_KERNELS),
        )])  # fmt: skip
    entered = _entered(running, source, room)
    raced = running.run(entered, progress)
    if raced.failures:
        warnings.warn(raced.failures, stacklevel=2)
    raced = running.judged(raced, [candidate.name for candidate in entered])
    if raced.repeats:
        warnings.warn(raced.repeats, stacklevel=2)
    if is_in_time(model, raced):
        raced = running.improved(raced)
    result, exact = rehearsed(
        running,
        raced,
        lambda trial: settings_of_all(running, trial, source, keeps_rows),
        source.n_rows,
    )
    weights = None
    for trial in promoted(running, result, source.n_features):
        # Landmarks are weighted through the exact machines that they replace, which share their products.
        bins = _bins_if_any(running, exact.get(trial.candidate.name, trial), progress)
        if bins is not None:
            result = with_bins(result, bins)
            weights = bins.weights if result.trials[0] is bins.trial else weights
    settings = settings_of_all(running, result.trials[0], source, keeps_rows)
    return result, settings if weights is None else settings | {"bin_weights": weights}


def _entered(running: Race, source: Source, room: int) -> list[Candidate]:
    """Return the candidates of a race: of the kernel and the normalisations that the user gave, if any."""
    model = running.model
    if not is_automatic(model.kernel):
        return [_named_candidate(running, normalize, Trials.takes) for normalize in _normalizations(model)]
    most = None if running.leaves_out else most_candidates(running.rows.shape[0])
    entered = on_device(candidates(running.look, most), model.get_params(deep=False)["device"])
    if model.normalize is not None:
        entered = on_normalizations(entered, _normalizations(model), running.look)
    entered = within_room(entered, running.look.density, source, room, running.footprint)
    return entered if is_free(model) and running.footprint <= room else within(entered)


def _normalizations(model: BaseEstimator) -> list[str | None]:
    """Return the names of the normalisations that the user gave."""
    return [None if each is None else each.name for each in checked_normalizations(model.normalize)]


def settings_of_all(running: Race, trial: Trial, source: Source, keeps_rows: bool = True) -> Parameters:
    """Return the settings of a candidate for all rows of the source."""
    given = running.model.get_params(deep=False) | trial.candidate.settings | {"bin_weights": None}
    room = room_in(parse_memory(running.model.memory))
    fits = keeps_rows and (holds_matrix(given, source, room) or takes_blocks(given, source, room))
    settings = settings_for(
        trial.candidate, trial.learned, source.n_rows, source.n_features, fits, source.is_sparse
    )
    settings["scoring"] = running.scoring if settings.get("features") == "exact" else None
    if settings.get("features") == "exact" or _is_wide(running.model, trial, settings, source):
        settings |= _settled(running, trial, source.n_rows)
    return settings


def _is_wide(model: BaseEstimator, trial: Trial, settings: Parameters, source: Source) -> bool:
    """Return whether an exact machine becomes ridge on the features of all rows."""
    if trial.candidate.settings.get("features") != "exact" or settings.get("features") != "additive":
        return False
    mapped = FeatureSettings(settings["kernel"], features="additive", n_terms=settings["n_terms"])
    return takes_wide(model.get_params(deep=False) | settings, mapped, source)


def _settled(running: Race, trial: Trial, n_rows: int) -> Parameters:
    """Return the strength and gamma that the race found, if the fit would find none that are better.

    This is so for few rows, all of which the race left out, unless bins got weights since. For exact machines of many
    rows, a new search would take several times the fit: strength and gamma correspond to the noise and width of a
    Gaussian process, which do not depend on the number of rows. Between the two, a search over all rows is fast, and
    knows more than the rows of the race.
    """
    model = running.model
    knows_all = running.leaves_out and "bin_weights" not in trial.candidate.settings
    if not (is_automatic(model.alpha) and is_automatic(model.selection)):
        return {}
    if not knows_all and n_rows <= _SEARCHED_AGAIN * FEW_ROWS:
        return {}
    return {name: trial.learned[name] for name in ("alpha", "gamma") if name in trial.learned}


def weigh_bins(
    model: BaseEstimator, source: Source, groups: np.ndarray | None, progress: Progress
) -> tuple[RaceResult | None, Parameters]:
    """Race an estimator with a named kernel: with equal weights of the bins, and with learned ones.

    Return the result and the setting of the weights; no result, and equal weights with a warning, if the memory budget
    does not hold a race. Raise DataError as ``race_of`` does, and for kernels without weights.
    """
    try:
        running, candidate = _race_within(model, source, groups)
        with _fits_beside_sample(model):
            return _bins_raced(running, candidate, progress)
    except MemoryBudgetError as error:
        _warn_of_equal_bins(error)
        return None, {"bin_weights": None}


@contextmanager
def _fits_beside_sample(model: BaseEstimator) -> Iterator[None]:
    """Say of a fit that its budget does not hold that the sample has taken a share of the memory."""
    try:
        yield
    except MemoryBudgetError:
        raise MemoryBudgetError(
            Message("{memory=} does not hold a fit beside a sample of the rows. Give more.", model.memory)
        ) from None


def _warn_of_equal_bins(error: MemoryBudgetError) -> None:
    warnings.warn(Message("all bins keep the same weight, as none could be learned: {}", error), stacklevel=3)


def _race_within(model: BaseEstimator, source: Source, groups: np.ndarray | None) -> tuple[Race, Candidate]:
    """Return the race of weights of bins on as many rows as fit in the memory budget, and what it fits.

    Raise MemoryBudgetError if not even a few rows fit.
    """
    running, room = Race.on(model, source, groups), room_in(parse_memory(model.memory))
    while True:
        candidate, n_rows = (
            _named_candidate(running, running.model.normalize, Trials.weighs),
            running.rows.shape[0],
        )
        needed = WeighedBins(running).footprint(candidate) + _COPIES * n_rows * source.row_bytes
        if needed <= room:
            return running, candidate
        if n_rows <= FEWEST_SAMPLED:
            raise _too_small(model.memory, needed)
        fewer = int(n_rows * min(_FEWER, (room / needed) ** 0.5))
        running = Race.on(model, source, groups, max(FEWEST_SAMPLED, fewer))


def _too_small(memory: str | int, needed: float) -> MemoryBudgetError:
    least = whole_mebibytes(budget_for(needed))
    return MemoryBudgetError(
        Message("{memory=} holds too few rows to compare weights on. Give {memory=}.", memory, least)
    )


def _named_candidate(running: Race, normalize: str | None, takes: Callable[[Parameters], bool]) -> Candidate:
    """Return the candidate with the kernel that the user named: an exact machine, or the estimator itself.

    takes: whether the machines that share their products have given settings, and what is asked of them.
    """
    parameters = running.model.get_params(deep=False)
    settings = {name: parameters[name] for name in ("kernel", "gamma")} | {"normalize": normalize}
    exact_settings, kernel = settings | {"features": "exact", "loss": "square"}, parameters["kernel"]
    is_free = running.trials is not None and not isinstance(kernel, list | tuple)
    name = _named(kernel)
    if not isinstance(parameters["normalize"], str | None):
        name += f", {normalize or 'raw'} rows"
    return Candidate(name, exact_settings if is_free and takes(exact_settings) else settings)


def _bins_raced(running: Race, candidate: Candidate, progress: Progress) -> tuple[RaceResult, Parameters]:
    n_rows, began, weighed = max(running.splits_of), time.perf_counter(), WeighedBins(running)
    outcome = running(weighed.beside_sample(candidate), n_rows)
    first = Trial(
        candidate, 0, n_rows, outcome.score, time.perf_counter() - began, outcome.learned,
        deviations=outcome.deviations, predict_seconds=outcome.predict_seconds,
    )  # fmt: skip
    bins = weighed.learn(first, progress)
    measure = score_name(running.scoring, running.model, running.y)
    result = RaceResult([first], measure, running.n_held_out, first.seconds, [first])
    return with_bins(result, bins), {"bin_weights": bins.weights}


def with_bins(result: RaceResult, bins: LearnedBins) -> RaceResult:
    """Return the result with the trial of learned weights.

    It is the winner if weights were kept and their score is better; otherwise it follows the winner. If it was dropped
    with fewer rows, it is ranked among the trials of fewer rows.
    """
    first = result.trials[0]
    is_best = (
        bins.weights is not None and bins.trial.round == first.round and bins.trial.score > first.score + SAME
    )
    ahead = [(t.round, t.score) >= (bins.trial.round, bins.trial.score) for t in result.trials if not t.error]
    place = 0 if is_best else max(1, sum(ahead))
    trials = [*result.trials[:place], bins.trial, *result.trials[place:]]
    return replace(
        result, trials=trials, seconds=result.seconds + bins.trial.seconds, history=[*result.history, bins.trial]
    )  # fmt: skip


def _bins_if_any(running: Race, leader: Trial, progress: Progress) -> LearnedBins | None:
    """Return learned weights; None if memory does not hold the machines, or if the features have no gradients.

    If the user asked for weights, a warning names the budget, and features without gradients are an error.
    """
    bins, memory, is_asked = WeighedBins(running), running.model.memory, running.model.bin_weights != "auto"
    try:
        needed = bins.footprint(leader.candidate)
        if needed > room_in(parse_memory(memory)):
            raise _too_small(memory, needed)
        with _fits_beside_sample(running.model):
            return bins.learn(leader, progress)
    except DataError:
        if is_asked:
            raise
    except MemoryBudgetError as error:
        if is_asked:
            _warn_of_equal_bins(error)
    return None


def _named(kernel: object) -> str:
    return kernel if isinstance(kernel, str) else getattr(kernel, "name", str(kernel))
