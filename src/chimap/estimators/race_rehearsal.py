"""What wins is what is fitted: machines that become others on all rows run as these before they may win."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap._types import Parameters
from chimap.estimators.race import Race
from chimap.fit.automatic import landmarks_of
from chimap.selection.jackknife import standard_error
from chimap.selection.race_trials import Candidate, RaceResult, Trial, trial_of


def rehearsed(
    running: Race, result: RaceResult, settings_of: Callable[[Trial], Parameters], n_rows: int
) -> tuple[RaceResult, dict[str, Trial]]:
    """The result whose best is no exact machine that landmarks would stand in for; and the trials of these, by the name
    of what came in their place.

    Landmarks, as many as all n_rows rows will have, learn from the rows of the trial that they come for, and are scored
    on the same as the others. Sums over all rows and ridge on their features give the machine of an additive kernel as
    it ran: that needs no rehearsal.
    """
    before: dict[str, Trial] = {}
    while True:
        first = result.trials[0]
        settings = settings_of(first)
        if settings.get("features") != "landmarks":
            return result, before
        if first.candidate.settings.get("features") == "landmarks":
            return _less_saturated(result, settings_of), before
        n_landmarks = min(landmarks_of(n_rows), first.n_rows)
        named = f"{first.candidate.name}, {n_landmarks:,} landmarks"
        sized = {name: value for name, value in settings.items() if name != "scoring"}
        candidate = Candidate(named, sized | {"n_components": n_landmarks})
        trial = trial_of(candidate, running, first.round, first.n_rows)
        before[named] = first
        result = result.in_place_of(first, trial)


def _less_saturated(result: RaceResult, settings_of: Callable[[Trial], Parameters]) -> RaceResult:
    """Of landmarks that are ahead by no more than an error and the best other machine, the other first.

    Landmarks are as many as they are, however many rows they learn from: few rows flatter them.
    """
    first = result.trials[0]
    for other in result.trials[1:]:
        if other.round < first.round or other.error:
            break
        if settings_of(other).get("features") == "landmarks":
            continue
        error = standard_error(np.subtract(first.deviations, other.deviations))
        return result.led_by(other) if first.score - other.score <= error else result
    return result
