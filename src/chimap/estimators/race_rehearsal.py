"""Machines that change when fitted on all rows run in their final form before they may win."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap._types import Parameters
from chimap.estimators.race import Race
from chimap.fit.automatic import landmarks_of
from chimap.race.trials import Candidate, RaceResult, Trial, trial_of
from chimap.selection.jackknife import standard_error


def rehearsed(
    running: Race, result: RaceResult, settings_of: Callable[[Trial], Parameters], n_rows: int
) -> tuple[RaceResult, dict[str, Trial]]:
    """Return a result whose winner needs no landmarks as a replacement, and the replaced trials.

    The trials are keyed by the name of the candidate that replaced them. Landmarks, as many as all ``n_rows`` rows will
    have, learn from the rows of the trial that they replace, and are scored on the same rows. An additive kernel needs
    no rehearsal: sums over all rows and ridge on their features give the machine that ran.
    """
    replaced: dict[str, Trial] = {}
    while True:
        first = result.trials[0]
        settings = settings_of(first)
        if settings.get("features") != "landmarks":
            return result, replaced
        if first.candidate.settings.get("features") == "landmarks":
            return _less_saturated(result, settings_of), replaced
        n_landmarks = min(landmarks_of(n_rows), first.n_rows)
        title = f"{first.candidate.name}, {n_landmarks:,} landmarks"
        sized = {name: value for name, value in settings.items() if name != "scoring"}
        candidate = Candidate(title, sized | {"n_components": n_landmarks})
        trial = trial_of(candidate, running, first.round, first.n_rows)
        replaced[title] = first
        result = result.in_place_of(first, trial)


def _less_saturated(result: RaceResult, settings_of: Callable[[Trial], Parameters]) -> RaceResult:
    """Return the result led by the best other machine, if landmarks lead it by no more than a standard error.

    The number of landmarks does not grow with the rows, so a score on few rows flatters them.
    """
    first = result.trials[0]
    for trial in result.trials[1:]:
        if trial.round < first.round or trial.error:
            break
        if settings_of(trial).get("features") == "landmarks":
            continue
        error = standard_error(np.subtract(first.deviations, trial.deviations))
        return result.led_by(trial) if first.score - trial.score <= error else result
    return result
