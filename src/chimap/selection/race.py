"""The race: candidates of all kinds on the same held-out rows, the better ones with more rows each round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import ceil

from chimap._validation import DataError
from chimap.selection.race_trials import Candidate, RaceResult, Runner, Trial, is_behind, loss_of, trial_of

KEPT = 1 / 2  # share of the candidates that goes on
HOPELESS = 2.0  # errors of the difference that a candidate is behind by when it is out of the race
CLOSE = 1.0  # and when it may not win the last round


def race(
    candidates: Sequence[Candidate],
    run: Runner,
    rows_by_round: Sequence[int],
    *,
    measure: str,
    n_held_out: int,
    families_to_the_end: bool = True,
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
    families_to_the_end : bool
        Whether the best of every family enters the last round too. Scores of few rows say too little to do without;
        those of many have told families apart before, and the last round is the longest.
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
        running = _go_on(
            [t for t in listed if not t.error],
            CLOSE if is_next_last else HOPELESS,
            with_families=families_to_the_end or not is_next_last,
        )
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


def _best_first(candidates: Sequence[Candidate], last: dict[str, Trial]) -> list[Candidate]:
    """By the score of the round before, so that those behind are soon known to be."""
    return sorted(candidates, key=lambda c: loss_of(last[c.name]) if c.name in last else 0)


def _together(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that share work one after the other, where the first of them is."""
    first: dict[str, int] = {}
    for i, candidate in enumerate(candidates):
        first.setdefault(candidate.shares or candidate.name, i)
    return sorted(candidates, key=lambda c: first[c.shares or c.name])


def _go_on(trials: Sequence[Trial], errors: float, *, with_families: bool) -> list[Candidate]:
    """The best of the candidates, and of each family, that are not behind, and all baselines, as they are listed."""
    rivals = [t for t in trials if not t.candidate.is_baseline]
    ranked = sorted(rivals, key=loss_of)  # stable: of equals the first that is listed
    near = [t for t in ranked if not is_behind(t, ranked[0], errors)]
    best = _firsts([t.candidate for t in near if t.candidate.family]) if with_families else []
    kept = {t.candidate.name for t in near[: ceil(KEPT * len(ranked))]} | {c.name for c in best}
    return [t.candidate for t in trials if t.candidate.is_baseline or t.candidate.name in kept]


def _ranked(trials: list[Trial], candidates: Sequence[Candidate]) -> list[Trial]:
    """The best first: of the last round before those that left earlier; equal scores in the order of the list."""
    place = {c.name: i for i, c in enumerate(candidates)}
    return sorted(trials, key=lambda t: (bool(t.error), -t.round, loss_of(t), place[t.candidate.name]))
