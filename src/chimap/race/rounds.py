"""The race: successive halving over candidates of all kinds, scored on the same held-out rows.

It decides only which candidates run on how many rows: a ``Runner`` fits and scores them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.models.race_result import SAME, Candidate, RaceResult, Trial, rank_key
from chimap.race.trials import Outcome, Runner, trial_of
from chimap.selection.jackknife import is_behind

KEPT_FRACTION = 1 / 2  # share of the candidates that enters the next round
ERRORS_TO_DROP = 2.0  # standard errors of the difference; a candidate further behind the best leaves the race
ERRORS_TO_DROP_BEFORE_LAST_ROUND = 1.0  # the same before the last round
ERRORS_TO_OVERRULE_ORDER = 2.0  # by which the best of two dozen equal machines beats one of them by luck


def successive_halving(
    candidates: Sequence[Candidate],
    run: Runner,
    rows_by_round: Sequence[int],
    *,
    measure: str,
    n_held_out: int,
    families_to_the_end: bool = True,
    seconds: float | None = None,
    clock: Callable[[], float] | None = None,
    work_of_round: Callable[[int], float] = lambda n_rows: float(n_rows) ** 2,
    on_trial: Callable[[Trial], None] | None = None,
) -> RaceResult:
    """Compare candidates by successive halving.

    All candidates run with the rows of the first round, except those of a family whose first candidate is more than two
    standard errors of the difference behind the best. The better half enters the next round, and so does the best
    candidate of every family. Candidates more than two standard errors behind the best do not, nor do those more than
    one behind before the last round: a fixed share alone would drop candidates that are as good and keep clearly worse
    ones. Baselines run in every round, and so do kernels on rows that labels weigh, of which few rows tell little. A
    candidate that fails leaves the race with its error. Ties go to the candidate that is listed first, so list the
    simpler one first.

    With a time limit, a round takes no more candidates than it leaves time for, and an equal share of the time for the
    rounds after it: fewer candidates in the last round tell more than a round that is not finished.

    Parameters
    ----------
    candidates : sequence of Candidate
        The candidates, the simpler ones first.
    run : Runner
        Fits and scores a candidate.
    rows_by_round : sequence of int
        Number of rows to learn from in each round, ascending.
    measure : str
        Name of the score, for tables.
    n_held_out : int
        Number of rows that are scored.
    families_to_the_end : bool, default=True
        Whether the best of every family also enters the last round. Scores on few rows are too noisy to do without.
        Scores on many rows have already separated the families, and the last round takes the longest.
    seconds : float or None, default=None
        Time limit: no trial starts after it. The last complete round then decides, or the finished part of the first
        round.
    clock : callable or None, default=None
        Measures the seconds; None for elapsed time. A clock that counts work makes the result the same on every
        machine.
    work_of_round : callable, default=lambda n_rows: float(n_rows) ** 2
        Work of a trial on that many rows, in any unit: how the time of a trial grows from one round to the next.
    on_trial : callable or None, default=None
        Called with each trial when it ends.

    Returns
    -------
    RaceResult
        The last trial of every candidate, the best first.

    Raises
    ------
    DataError
        If no candidate could be fitted; the message has the first reason.

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
        round_began = start if i == 0 else clock()
        if i == 0:
            firsts = _firsts(running)
            this_round = run_each(_together(firsts), i, n_rows)
            running = _not_hopeless(running, firsts, this_round)
        others = [c for c in _together(_best_first(running, last)) if c.name not in this_round]
        this_round |= run_each(others, i, n_rows)
        if last and len(this_round) < len(running):
            break  # out of time: scores on more rows cannot be compared with scores on fewer
        last |= this_round
        listed = [this_round[c.name] for c in running if c.name in this_round]
        is_next_last = i + 2 >= len(rows_by_round)
        running = _go_on(
            [t for t in listed if not t.error],
            ERRORS_TO_DROP_BEFORE_LAST_ROUND if is_next_last else ERRORS_TO_DROP,
            with_families=families_to_the_end or not is_next_last,
        )
        ahead = rows_by_round[i + 1 :]
        if seconds is not None and running and ahead:
            now = clock()
            each = (now - round_began) / len(this_round) * work_of_round(ahead[0]) / work_of_round(n_rows)
            running = _affordable(running, this_round, (seconds - (now - start)) / len(ahead), each)
    trials = _ranked(list(last.values()), candidates)
    if not trials or trials[0].error:
        reason = trials[0].error if trials else "there are no candidates"
        raise DataError(Message("no candidate of the race could be fitted: {}", reason))
    return RaceResult(trials, measure, n_held_out, time.perf_counter() - began, history)


def _firsts(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the first candidate of each family, and all that have no family."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.family or candidate.name, candidate)
    return list(first.values())


def _not_hopeless(
    candidates: Sequence[Candidate], firsts: Sequence[Candidate], trials: dict[str, Trial]
) -> list[Candidate]:
    """Return the candidates that ran, and the rest of each family whose first candidate is not far behind."""
    ran = [trials[c.name] for c in firsts if c.name in trials]
    best = max(ran, key=lambda t: t.score)
    left_behind = {t.candidate.family for t in ran if t.candidate.family and is_behind(t, best, ERRORS_TO_DROP)}
    return [c for c in candidates if c in firsts or c.family not in left_behind]


def _best_first(candidates: Sequence[Candidate], last: dict[str, Trial]) -> list[Candidate]:
    """Sort by the score of the last round: bad candidates are recognised early if the best has run."""
    return sorted(candidates, key=lambda c: rank_key(last[c.name]) if c.name in last else 0)


def _together(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort such that candidates which share work run one after the other, at the place of the first of them."""
    first: dict[str, int] = {}
    for i, candidate in enumerate(candidates):
        first.setdefault(candidate.shares or candidate.name, i)
    return sorted(candidates, key=lambda c: first[c.shares or c.name])


def _go_on(trials: Sequence[Trial], n_errors: float, *, with_families: bool) -> list[Candidate]:
    """Return, in the given order, the candidates for the next round: the best half, family bests, and baselines."""
    rivals = [t for t in trials if not t.candidate.runs_to_the_end]
    ranked = sorted(rivals, key=rank_key)  # stable: ties go to the candidate that is listed first
    near = [t for t in ranked if not is_behind(t, ranked[0], n_errors)]
    best = _firsts([t.candidate for t in near if t.candidate.family]) if with_families else []
    kept = {t.candidate.name for t in near[: ceil(KEPT_FRACTION * len(ranked))]} | {c.name for c in best}
    return [t.candidate for t in trials if t.candidate.runs_to_the_end or t.candidate.name in kept]


def _affordable(
    candidates: Sequence[Candidate], trials: dict[str, Trial], seconds: float, each: float
) -> list[Candidate]:
    """Return the baselines and as many of the best others as these seconds suffice for, but the best in any case."""
    if each * len(candidates) <= seconds:
        return list(candidates)
    rivals = sorted((c for c in candidates if not c.runs_to_the_end), key=lambda c: rank_key(trials[c.name]))
    n_baselines = len(candidates) - len(rivals)
    n_rivals = max(1, int(max(seconds, 0.0) / each) - n_baselines)
    kept = {c.name for c in rivals[:n_rivals]}
    return [c for c in candidates if c.runs_to_the_end or c.name in kept]


def _ranked(trials: list[Trial], candidates: Sequence[Candidate]) -> list[Trial]:
    """Sort trials: later rounds first, then by score; ties in the order of the list, and failures last."""
    place = {c.name: i for i, c in enumerate(candidates)}
    return sorted(trials, key=lambda t: (bool(t.error), -t.round, rank_key(t), place[t.candidate.name]))


def preferred(outcomes: Sequence[Outcome | Trial], n_errors: float) -> int:
    """Return the place of the first outcome that is not behind the best by more than so many standard errors.

    The standard error is that of the difference. With 0 errors it is the best; of equal ones, the first.
    """
    best = max(outcomes, key=lambda outcome: round(outcome.score / SAME))
    if not n_errors:
        return outcomes.index(best)
    return next(i for i, outcome in enumerate(outcomes) if not is_behind(outcome, best, n_errors))


def expected_score(compared: Sequence[Sequence[Outcome]], n_errors: float) -> tuple[float, float] | None:
    """Return the score that the winner of a race will have on unseen rows, and its standard error.

    The score of the best of many is too high, as some of its lead is luck on the rows that it was chosen by. So each
    part of the rows is scored by the machine that wins without it. The score s_-k without part k follows from the
    jackknife deviations; the score of part k alone is the pseudo-value K s - (K - 1) s_-k, which is exact for means
    such as the accuracy. The result is the mean of the K pseudo-values of the winners without each part.

    Its variance is that of the pseudo-values times 1 / K + 1 / (K - 1): the machines share most of their rows, so that
    the values of the parts vary together. What the winner loses by the correction is added to the error, as the luck of
    the best is not known more closely than that.

    Parameters
    ----------
    compared : sequence of sequences of Outcome
        For each candidate, in the order in which they are preferred, the outcomes of the settings among which its own
        was chosen by the score. All were scored on the same rows.
    n_errors : float
        See ``preferred``.

    Returns
    -------
    tuple of float, or None
        The score and its standard error; None if there are no deviations.

    References
    ----------
    Varma and Simon, Bias in error estimation when using cross-validation for model selection, BMC Bioinformatics 2006
    (nested cross-validation). Nadeau and Bengio, Inference for the generalization error, Machine Learning 2003 (the
    variance). Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11 (pseudo-values).

    Examples
    --------
    >>> lucky = Outcome(0.6, deviations=(-0.06, 0.02, 0.02, 0.02))
    >>> steady = Outcome(0.58, deviations=(0.0, 0.0, 0.0, 0.0))
    >>> score, error = expected_score([[steady], [lucky]], 0.0)
    >>> round(score, 3), round(error, 3)
    (0.543, 0.06)
    """
    sizes = {len(outcome.deviations) for tried in compared for outcome in tried}
    if len(sizes) != 1 or min(sizes) < 2:
        return None
    (n_parts,) = sizes
    values = []
    for part in range(n_parts):
        chosen = [
            max((_without(outcome, part) for outcome in tried), key=lambda chosen: chosen[0].score)
            for tried in compared
        ]
        place = preferred([rest for rest, _ in chosen], n_errors)
        values.append(chosen[place][1])
    score = float(np.mean(values))
    own = [max(tried, key=lambda outcome: outcome.score) for tried in compared]
    luck = own[preferred(own, n_errors)].score - score
    error = np.std(values, ddof=1) * np.sqrt(1 / n_parts + 1 / (n_parts - 1))
    return score, float(np.hypot(error, luck))


def _without(outcome: Outcome, part: int) -> tuple[Outcome, float]:
    """Return the outcome without a part of the rows, and its pseudo-value on that part."""
    deviations = np.array(outcome.deviations)
    n_parts = deviations.size
    score = outcome.score + deviations[part] * np.sqrt(n_parts / (n_parts - 1))
    rest = Outcome(score, deviations=tuple(np.delete(deviations, part).tolist()))
    return rest, n_parts * outcome.score - (n_parts - 1) * score
