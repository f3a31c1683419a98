"""What a race tries and tells: candidates, what their fits came to, and the table of all."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from chimap._types import JSON, Parameters
from chimap.model_files import register
from chimap.selection.jackknife import standard_error

SAME = 1e-9  # scores closer than this are equal, and the candidate that was listed first wins


@dataclass(frozen=True)
class Candidate:
    """One way to fit: a name for tables, and the settings that it changes.

    Parameters
    ----------
    name : str
        Such as "exp-chi2, l1 rows".
    settings : dict
        Settings of a fit by name, and their values.
    is_baseline : bool
        A linear machine: it runs to the last round whatever it scores, to be compared with.
    shares : str
        Candidates of the same word share work, and run one after the other; empty where there is none.
    family : str
        Candidates of the same word are much alike: the others run if the first of them is not far behind, and the best
        of them goes on as long as it is not. Empty for one that is like no other.
    """

    name: str
    settings: Parameters
    is_baseline: bool = False
    shares: str = field(default="", compare=False)
    family: str = field(default="", compare=False)


@dataclass(frozen=True)
class Outcome:
    """What a fit of a candidate came to.

    Parameters
    ----------
    score : float
        On the rows held out; greater is better.
    learned : dict
        What the fit chose by itself, such as ``{"gamma": ...}``.
    deviations : tuple of float
        Of the jackknife, see ``chimap.selection.jackknife``; empty where none are known.
    predict_seconds : float
        A row that is predicted.
    """

    score: float
    learned: Parameters = field(default_factory=dict)
    deviations: tuple[float, ...] = ()
    predict_seconds: float = np.nan


@dataclass(frozen=True)
class Trial:
    """What a candidate scored in a round.

    Parameters
    ----------
    candidate : Candidate
    round : int
        From 0; later rounds have more rows.
    n_rows : int
        That it learned from.
    score : float
        On the rows held out; greater is better. -inf where it failed.
    seconds : float
        Of the fit and of the predictions.
    learned : dict
        What the fit chose by itself, such as ``{"gamma": ...}``.
    error : str
        Why it failed; empty where it did not.
    deviations : tuple of float
        Of the jackknife of the score; trials of one round have them of the same rows. Empty where none are known.
    predict_seconds : float
        A row that is predicted.
    """

    candidate: Candidate
    round: int
    n_rows: int
    score: float
    seconds: float
    learned: Parameters = field(default_factory=dict)
    error: str = ""
    deviations: tuple[float, ...] = ()
    predict_seconds: float = np.nan

    @property
    def standard_error(self) -> float:
        """Of the score; NaN where it is not known."""
        return standard_error(self.deviations)


class Runner(Protocol):
    """Fits a candidate to ``n_rows`` rows of the sample and scores it on the rows that are held out."""

    def __call__(self, candidate: Candidate, n_rows: int) -> Outcome:
        """What comes of it. Raises ValueError for settings that the rows do not allow."""
        ...


@dataclass(frozen=True)
class RaceResult:
    """The last trial of every candidate, the best first.

    Parameters
    ----------
    trials : list of Trial
        Those of the last round first, each round by score.
    measure : str
        The name of the score; greater is better.
    n_held_out : int
        Rows that the scores are of.
    seconds : float
        Of the race.
    history : list of Trial
        All trials in the order in which they ran: the curves of candidates over the rounds.

    Examples
    --------
    >>> from chimap.selection.race import race
    >>> def run(candidate, n_rows):
    ...     return Outcome(0.5 + (candidate.name == "b") / n_rows)
    >>> result = race([Candidate("a", {}), Candidate("b", {})], run, [10, 20], measure="accuracy", n_held_out=100)
    >>> result.winner.name, result.table()[0]["score"]
    ('b', 0.55)
    """

    trials: list[Trial]
    measure: str
    n_held_out: int
    seconds: float
    history: list[Trial] = field(default_factory=list)

    @property
    def winner(self) -> Candidate:
        """The best of the last round."""
        return self.trials[0].candidate

    @property
    def baseline(self) -> Trial | None:
        """The best of the linear machines; None where none could be fitted."""
        linear = [t for t in self.trials if t.candidate.is_baseline and not t.error]
        return max(linear, key=lambda t: t.score) if linear else None

    @property
    def failures(self) -> str:
        """What to tell of candidates that failed; empty where none did."""
        failed = [t for t in self.trials if t.error]
        if not failed:
            return ""
        return (
            f"{len(failed)} of the {len(self.trials)} candidates of the race could not be fitted and left it. "
            f"The first, {failed[0].candidate.name!r}: {failed[0].error}"
        )

    def in_place_of(self, old: Trial, new: Trial) -> RaceResult:
        """With another trial in the place of one, ranked by its score."""
        trials = [new if trial is old else trial for trial in self.trials]
        ranked = sorted(trials, key=lambda t: (bool(t.error), -t.round, loss_of(t)))
        return replace(self, trials=ranked, seconds=self.seconds + new.seconds, history=[*self.history, new])

    def led_by(self, trial: Trial) -> RaceResult:
        """With one of the trials first."""
        return replace(self, trials=[trial, *(other for other in self.trials if other is not trial)])

    def table(self) -> list[JSON]:
        """One row a candidate: name, score, rows, seconds, round, whether it is a linear baseline, error."""
        return [
            {
                "name": t.candidate.name,
                "score": t.score,
                "n_rows": t.n_rows,
                "seconds": t.seconds,
                "round": t.round,
                "is_baseline": t.candidate.is_baseline,
                "error": t.error,
            }
            for t in self.trials
        ]


def trial_of(candidate: Candidate, run: Runner, place: int, n_rows: int) -> Trial:
    """A candidate in the round at a place, with so many rows; what it failed with where it did."""
    began = time.perf_counter()
    trial = Trial(candidate, place, n_rows, -np.inf, 0.0)
    try:
        outcome = run(candidate, n_rows)
    except ValueError as error:  # settings that do not suit the rows; a fault of the program raises others
        return replace(trial, seconds=time.perf_counter() - began, error=str(error))
    if np.isnan(outcome.score):
        return replace(trial, seconds=time.perf_counter() - began, error="the score is not a number")
    return replace(
        trial, score=float(outcome.score), seconds=time.perf_counter() - began, learned=outcome.learned,
        deviations=outcome.deviations, predict_seconds=outcome.predict_seconds,
    )  # fmt: skip


def is_behind(trial: Outcome | Trial, best: Outcome | Trial, errors: float) -> bool:
    """Whether a score is below another by more than so many errors of their difference, as far as these are known."""
    if len(trial.deviations) != len(best.deviations):
        return False
    error = standard_error(np.subtract(best.deviations, trial.deviations))
    return bool(best.score - trial.score > errors * error)  # of an error that is not known nothing is


def loss_of(trial: Trial) -> float:
    """Less is better; scores that differ by rounding alone are equal."""
    return -round(trial.score / SAME) if np.isfinite(trial.score) else np.inf


register(Candidate, Trial, RaceResult)
