"""The race: candidates of all kinds on the same held-out rows, the better ones with more rows each round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Protocol

import numpy as np

from chimap._types import JSON, Parameters
from chimap._validation import DataError
from chimap.model_files import register
from chimap.selection.jackknife import standard_error

KEPT = 1 / 2  # share of the candidates that goes on
HOPELESS = 2.0  # errors of the difference that a candidate is behind by when it is out of the race
CLOSE = 1.0  # and when it may not win the last round
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

    def in_place_of(self, old: Trial, new: Trial) -> RaceResult:
        """With another trial in the place of one, ranked by its score."""
        trials = [new if trial is old else trial for trial in self.trials]
        ranked = sorted(trials, key=lambda t: (bool(t.error), -t.round, _loss(t)))
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


def race(
    candidates: Sequence[Candidate],
    run: Runner,
    rows_by_round: Sequence[int],
    *,
    measure: str,
    n_held_out: int,
    seconds: float | None = None,
    clock: Callable[[], float] | None = None,
    on_trial: Callable[[Trial], None] | None = None,
) -> RaceResult:
    """Compare candidates by successive halving.

    All run with the rows of the first round, but for families whose first candidate is more than two errors of the
    difference behind the best. The better half goes on to the next round, with the best of every family, and without
    those that are two errors behind, or one before the last round: a share alone would drop what is as good, and keep
    what is clearly worse. Baselines run in every round. A candidate that fails leaves the race with its error. Equal
    scores: the candidate that is listed first wins, so list the simpler one first.

    Parameters
    ----------
    candidates : sequence of Candidate
    run : Runner
    rows_by_round : sequence of int
        Rows to learn from, ascending.
    measure : str
        Name of the score, for tables.
    n_held_out : int
        Rows that are scored.
    seconds : float, optional
        Start no further trial after so many; the last round that is complete then decides, or what there is of the
        first.
    clock : callable, optional
        What the seconds are counted by. None: the time; work that is counted makes the result the same on every
        machine.
    on_trial : callable, optional
        Told of each trial when it ends.

    Returns
    -------
    RaceResult

    Raises
    ------
    DataError
        If no candidate could be fitted, with the first reason.

    References
    ----------
    Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016.
    """
    began = time.perf_counter()
    start = began if clock is None else clock()
    clock = clock or time.perf_counter
    running, last, history = list(candidates), dict[str, Trial](), list[Trial]()

    def run_each(entered: Sequence[Candidate], place: int, n_rows: int) -> dict[str, Trial]:
        done: dict[str, Trial] = {}
        for candidate in entered:
            if seconds is not None and history and clock() - start > seconds:
                break
            trial = done[candidate.name] = trial_of(candidate, run, place, n_rows)
            history.append(trial)
            if on_trial is not None:
                on_trial(trial)
        return done

    for i, n_rows in enumerate(rows_by_round):
        this_round: dict[str, Trial] = {}
        if i == 0:
            firsts = _firsts(running)
            this_round = run_each(_together(firsts), i, n_rows)
            running = _not_hopeless(running, firsts, this_round)
        others = [c for c in _together(_best_first(running, last)) if c.name not in this_round]
        this_round |= run_each(others, i, n_rows)
        if last and len(this_round) < len(running):
            break  # out of time: scores of more rows are not compared with those of fewer
        last |= this_round
        listed = [this_round[c.name] for c in running if c.name in this_round]
        is_next_last = i + 2 >= len(rows_by_round)
        running = _go_on([t for t in listed if not t.error], KEPT, CLOSE if is_next_last else HOPELESS)
    trials = _ranked(list(last.values()), candidates)
    if not trials or trials[0].error:
        reason = trials[0].error if trials else "there are no candidates"
        raise DataError(f"no candidate of the race could be fitted: {reason}")
    return RaceResult(trials, measure, n_held_out, time.perf_counter() - began, history)


def _firsts(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first of each family, and those that have none."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.family or candidate.name, candidate)
    return list(first.values())


def _not_hopeless(
    candidates: Sequence[Candidate], firsts: Sequence[Candidate], trials: dict[str, Trial]
) -> list[Candidate]:
    """Those that ran, and the families of those that are not far behind."""
    ran = [trials[c.name] for c in firsts if c.name in trials]
    best = max(ran, key=lambda t: t.score)
    out = {t.candidate.family for t in ran if t.candidate.family and is_behind(t, best, HOPELESS)}
    return [c for c in candidates if c in firsts or c.family not in out]


def is_behind(trial: Outcome | Trial, best: Outcome | Trial, errors: float) -> bool:
    """Whether a score is below another by more than so many errors of their difference, as far as these are known."""
    if len(trial.deviations) != len(best.deviations):
        return False
    error = standard_error(np.subtract(best.deviations, trial.deviations))
    return bool(best.score - trial.score > errors * error)  # of an error that is not known nothing is


def _best_first(candidates: Sequence[Candidate], last: dict[str, Trial]) -> list[Candidate]:
    """By the score of the round before, so that those behind are soon known to be."""
    return sorted(candidates, key=lambda c: _loss(last[c.name]) if c.name in last else 0)


def _together(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that share work one after the other, where the first of them is."""
    first: dict[str, int] = {}
    for i, candidate in enumerate(candidates):
        first.setdefault(candidate.shares or candidate.name, i)
    return sorted(candidates, key=lambda c: first[c.shares or c.name])


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


def _go_on(trials: Sequence[Trial], share: float, errors: float) -> list[Candidate]:
    """The best of the candidates and of each family that are not behind, and all baselines, as they are listed."""
    rivals = [t for t in trials if not t.candidate.is_baseline]
    ranked = sorted(rivals, key=_loss)  # stable: of equals the first that is listed
    near = [t for t in ranked if not is_behind(t, ranked[0], errors)]
    best = _firsts([t.candidate for t in near if t.candidate.family])
    kept = {t.candidate.name for t in near[: ceil(share * len(ranked))]} | {c.name for c in best}
    return [t.candidate for t in trials if t.candidate.is_baseline or t.candidate.name in kept]


def _ranked(trials: list[Trial], candidates: Sequence[Candidate]) -> list[Trial]:
    """The best first: of the last round before those that left earlier; equal scores in the order of the list."""
    place = {c.name: i for i, c in enumerate(candidates)}
    return sorted(trials, key=lambda t: (bool(t.error), -t.round, _loss(t), place[t.candidate.name]))


def _loss(trial: Trial) -> float:
    """Less is better; scores that differ by rounding alone are equal."""
    return -round(trial.score / SAME) if np.isfinite(trial.score) else np.inf


register(Candidate, Trial, RaceResult)
