"""Trials of a race: what running a candidate gives, and how trials compare.

``rounds.successive_halving`` runs candidates and returns a ``RaceResult``; ``runner.Race`` fits them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from chimap._messages import message_of
from chimap._types import Parameters
from chimap.models.race_result import Candidate, Trial


@dataclass(frozen=True)
class Outcome:
    """The result of fitting a candidate.

    Parameters
    ----------
    score : float
        Score on the held-out rows; greater is better.
    learned : dict, default={}
        What the fit chose by itself, such as ``{"gamma": ...}``.
    deviations : tuple of float, default=()
        Jackknife deviations of the score, see ``chimap.selection.jackknife``; empty if they are not known.
    predict_seconds : float, default=np.nan
        Seconds to predict one row.
    """

    score: float
    learned: Parameters = field(default_factory=dict)
    deviations: tuple[float, ...] = ()
    predict_seconds: float = np.nan

    def trial(self, candidate: Candidate, place: int, n_rows: int, seconds: float) -> Trial:
        """Return the trial of a candidate with this outcome in a round of so many rows, which took these seconds."""
        return Trial(
            candidate,
            place,
            n_rows,
            float(self.score),
            seconds,
            self.learned,
            deviations=self.deviations,
            predict_seconds=self.predict_seconds,
        )


Runner = Callable[[Candidate, int], Outcome]
"""Fits a candidate to so many rows of the sample and scores it on the rows that are held out. It raises ValueError for
settings that the rows do not allow."""


def trial_of(candidate: Candidate, run: Runner, place: int, n_rows: int) -> Trial:
    """Run a candidate in a round and return the trial; if it fails, the trial has the error."""
    began, error = time.perf_counter(), ""
    try:
        outcome = run(candidate, n_rows)
    except ValueError as raised:  # settings that do not suit the rows; programming errors raise other exceptions
        error = message_of(raised)
    else:
        error = "the score is not a number" if np.isnan(outcome.score) else ""
    seconds = time.perf_counter() - began
    if error:
        return Trial(candidate, place, n_rows, -np.inf, seconds, error=error)
    return outcome.trial(candidate, place, n_rows, seconds)
