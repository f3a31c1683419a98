"""Which candidates of a race go on to weights of their bins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from chimap.estimators.race import RACE_SHARE, Race
from chimap.estimators.race_bins import WeighedBins
from chimap.features.base import FeatureSettings
from chimap.features.exact import has_map
from chimap.race.rounds import HOPELESS
from chimap.race.trials import RaceResult, Trial, is_behind


def promoted(running: Race, result: RaceResult, n_bins: int) -> Iterator[Trial]:
    """Yield the trials whose candidates go on to weights of their bins, while there is time."""
    model, began = running.model, time.perf_counter()
    if not isinstance(model.bin_weights, str) or n_bins < 2:
        return
    leader = _leader(running, model.loss, result)
    choices: tuple[Callable[[], Trial | None], ...] = (
        lambda: leader,
        lambda: None if leader is None else _second(running, result, leader),
        lambda: _by_margins(running, result),
    )
    for choose in choices:
        if is_in_time(model, replace(result, seconds=result.seconds + time.perf_counter() - began)):
            trial = choose()
            if trial is not None:
                yield trial


def is_in_time(model: Any, result: RaceResult) -> bool:
    """Whether the race has taken less than the seconds that the user gave it."""
    return model.time_limit is None or result.seconds < RACE_SHARE * model.time_limit


def _leader(running: Race, loss: str, result: RaceResult) -> Trial | None:
    """Return the best trial by ridge of the last round, or None if it is far behind the winner.

    Of few rows it is the winner or none: what weights gain there has to be more than their error to be believed, and
    does not make up for the winner's lead as well.
    """
    leader = next((t for t in _by_ridge(loss, result) if t.round == result.trials[0].round), None)
    if running.leaves_out and leader is not result.trials[0]:
        return None
    return None if leader is None or is_behind(leader, result.trials[0], HOPELESS) else leader


def _second(running: Race, result: RaceResult, leader: Trial) -> Trial | None:
    """Return the best exponential candidate as a trial with the rows of the leader, or None.

    It must differ from the leader, and some bins must be uninformative. Such bins harm exponential kernels most: a
    linear machine has a weight for every bin.
    """
    if running.trials is None or running.leaves_out or _is_exponential(leader):
        return None
    second = next((t for t in _by_ridge(running.model.loss, result) if _is_exponential(t)), None)
    if second is None or WeighedBins(running).screened(second.candidate, leader.n_rows) is None:
        return None
    return replace(second, round=leader.round, n_rows=leader.n_rows)


def _by_margins(running: Race, result: RaceResult) -> Trial | None:
    """Return the winner if it is a machine with margins and some bins are uninformative, or None.

    Margins have no gradients here: of their bins, the uninformative ones are left out.
    """
    winner = result.trials[0]
    if (
        running.trials is None
        or running.leaves_out
        or not running.trials.takes(winner.candidate.settings)
        or _is_by_ridge(winner, "")
    ):
        return None
    is_screened = WeighedBins(running).screened(winner.candidate, winner.n_rows) is not None
    return winner if is_screened else None


def _by_ridge(loss: str, result: RaceResult) -> list[Trial]:
    return [t for t in result.trials if _is_by_ridge(t, loss) and not t.error]


def _is_by_ridge(trial: Trial, loss: str) -> bool:
    """Whether a trial minimises squares, with gradients; ``loss`` is that of candidates that name none."""
    settings = trial.candidate.settings
    has_gradients = settings.get("features") != "exact" or has_map(FeatureSettings(settings["kernel"]).exact)
    return bool(settings.get("loss", loss) == "square") and has_gradients


def _is_exponential(trial: Trial) -> bool:
    return "gamma" in trial.candidate.settings
