"""Successive halving: who goes on, who wins, and what happens to those that fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.models.race_result import Candidate
from chimap.race.rounds import expected_score, preferred, successive_halving
from chimap.race.trials import Outcome
from chimap.recipe import Recipe
from chimap.selection.jackknife import is_behind

ASKED = Recipe("HistogramClassifier", True)

ROUNDS = [10, 20, 40]


def candidates(*names: str, baselines: tuple[str, ...] = ()) -> list[Candidate]:
    linear = ASKED.with_raced(kernel="linear")
    return [Candidate(name, linear if name in baselines else ASKED, name in baselines) for name in names]


def run_of(scores: dict[str, float], calls: list[tuple[str, int]] | None = None):
    def run(candidate, n_rows):
        if calls is not None:
            calls.append((candidate.name, n_rows))
        score = scores[candidate.name]
        if isinstance(score, Exception):
            raise score
        return Outcome(score)

    return run


def halved(scores, listed, **settings):
    return successive_halving(listed, run_of(scores), ROUNDS, measure="accuracy", n_held_out=5, **settings)


def test_the_better_half_goes_on_and_the_best_wins():
    calls: list[tuple[str, int]] = []
    scores = {name: i / 10 for i, name in enumerate("abcdefg")}
    result = successive_halving(candidates(*"abcdefg"), run_of(scores, calls), ROUNDS, measure="accuracy", n_held_out=5)
    assert result.winner.name == "g"
    by_round = {n: [name for name, rows in calls if rows == n] for n in ROUNDS}
    # after the first round the best runs first, so that others can be seen to be far behind
    assert by_round == {10: list("abcdefg"), 20: list("gfed"), 40: list("gf")}
    assert [row["name"] for row in result.rows()] == list("gfedcba")
    assert [row["n_rows"] for row in result.rows()] == [40, 40, 20, 20, 10, 10, 10]


def test_baselines_run_to_the_end_and_take_no_place_of_a_rival():
    result = halved({"linear": 0.1, "a": 0.3, "b": 0.4}, candidates("linear", "a", "b", baselines=("linear",)))
    assert result.linear.n_rows == 40
    assert result.winner.name == "b"
    assert {row["name"]: row["n_rows"] for row in result.rows()} == {"b": 40, "linear": 40, "a": 10}


def test_a_baseline_that_nothing_beats_wins():
    result = halved({"linear": 0.9, "a": 0.3}, candidates("linear", "a", baselines=("linear",)))
    assert result.winner.is_baseline


def test_of_equals_the_first_that_is_listed_wins():
    assert halved({"b": 0.5, "a": 0.5 + 1e-12}, candidates("b", "a")).winner.name == "b"


def test_one_that_fails_leaves_with_its_reason():
    result = halved({"a": ValueError("no"), "b": 0.1}, candidates("a", "b"))
    assert result.winner.name == "b"
    assert result.rows()[-1] | {"seconds": 0} == {
        "name": "a",
        "score": -np.inf,
        "standard_error": None,
        "n_rows": 10,
        "seconds": 0,
        "round": 0,
        "is_winner": False,
        "is_baseline": False,
        "linear": None,
        "error": "no",
    }
    assert result.failures.startswith("1 of the 2 candidates")
    assert result.failures.endswith("'a': no")
    assert halved({"a": 0.2, "b": 0.1}, candidates("a", "b")).failures == ""


def test_a_score_that_is_no_number_is_a_failure():
    assert halved({"a": float("nan"), "b": 0.1}, candidates("a", "b")).rows()[-1]["error"]


def test_all_failing_is_an_error_with_the_reason():
    with pytest.raises(DataError, match="no candidate of the race could be fitted: too few"):
        halved({"a": ValueError("too few")}, candidates("a"))


def test_a_fault_of_the_program_is_not_hidden():
    with pytest.raises(TypeError):
        halved({"a": TypeError("a fault")}, candidates("a"))


def test_out_of_time_the_scores_that_there_are_decide():
    result = halved({"a": 0.1, "b": 0.2}, candidates("a", "b"), seconds=0.0)
    assert [row["name"] for row in result.rows()] == ["a"]


def test_each_trial_is_told_of():
    told = []
    halved({"a": 0.1, "b": 0.2}, candidates("a", "b"), on_trial=told.append)
    assert [(t.candidate.name, t.n_rows) for t in told] == [("a", 10), ("b", 10), ("b", 20), ("b", 40)]


def test_the_history_has_every_trial_and_deviations_give_the_error():
    def run(candidate, n_rows):
        return Outcome(0.5, {}, (0.03, -0.04), 1e-6)

    result = successive_halving(candidates("a", "b"), run, ROUNDS, measure="accuracy", n_held_out=5)
    assert [(t.candidate.name, t.round) for t in result.history] == [("a", 0), ("b", 0), ("a", 1), ("a", 2)]
    assert result.trials[0].standard_error == pytest.approx(0.05)
    assert result.trials[0].predict_seconds == 1e-6


def test_candidates_that_share_work_run_together_and_ties_are_as_listed():
    calls: list[tuple[str, int]] = []
    listed = [Candidate("a", ASKED, shares="x"), Candidate("b", ASKED), Candidate("c", ASKED, shares="x")]
    scores = dict.fromkeys("abc", 0.5)
    result = successive_halving(listed, run_of(scores, calls), [10], measure="accuracy", n_held_out=5)
    assert [name for name, _ in calls] == ["a", "c", "b"]
    assert [t.candidate.name for t in result.trials] == ["a", "b", "c"]


def test_a_round_that_is_cut_short_does_not_decide(monkeypatch):
    clock = iter([0.0, *[1.0] * 3, *[2.0] * 6, *[1e6] * 50])
    monkeypatch.setattr("chimap.race.rounds.time.perf_counter", lambda: next(clock))
    scores = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
    result = halved(scores, candidates(*"abcd"), seconds=1000.0)
    assert result.winner.name == "d"
    assert len({t.round for t in result.trials}) == 1


def test_a_trial_in_place_of_another_is_ranked_by_its_score():
    result = halved({"a": 0.3, "b": 0.2, "c": 0.1}, candidates("a", "b", "c", baselines=("a", "b", "c")))
    first = result.trials[0]
    behind = result.in_place_of(first, replace(first, candidate=Candidate("d", ASKED), score=0.15))
    assert [t.candidate.name for t in behind.trials] == ["b", "d", "c"]
    assert behind.history[-1].candidate.name == "d"
    assert [t.candidate.name for t in behind.led_by(behind.trials[1]).trials] == ["d", "b", "c"]


def test_work_that_is_counted_ends_the_race_as_time_does():
    calls: list[tuple[str, int]] = []
    run = run_of({"a": 0.1, "b": 0.2}, calls)
    result = successive_halving(
        candidates("a", "b"), run, ROUNDS, measure="accuracy", n_held_out=5, seconds=2.5, clock=lambda: len(calls)
    )
    assert calls == [("a", 10), ("b", 10), ("b", 20)]
    assert result.winner.name == "b"


def test_a_round_takes_only_the_best_candidates_that_there_is_time_for():
    calls: list[tuple[str, int]] = []
    scores = {name: i / 10 for i, name in enumerate("abcdefgh")} | {"linear": 0.0}
    listed = candidates("linear", *"abcdefgh", baselines=("linear",))

    def of_limit(seconds: float) -> list[list[str]]:
        calls.clear()
        successive_halving(
            listed,
            run_of(scores, calls),
            ROUNDS,
            measure="accuracy",
            n_held_out=5,
            seconds=seconds,
            clock=lambda: sum((n / 10) ** 2 for _, n in calls),
        )
        return [[name for name, rows in calls if rows == n] for n in ROUNDS]

    # A trial takes 1, 4 and 16 in the three rounds: together 9 + 5 * 4 + 3 * 16.
    assert of_limit(77.0)[1:] == [["h", "g", "f", "e", "linear"], ["h", "g", "linear"]]
    assert of_limit(60.0)[1:] == [["h", "g", "f", "e", "linear"], ["h", "linear"]]
    assert of_limit(41.0)[1:] == [["h", "g", "f", "linear"], ["h", "linear"]]


def run_with_error(scores: dict[str, float], calls: list[tuple[str, int]], error: float = 0.05):
    """Scores whose differences have this error: the deviations of "exact" ones are 0, of the others it."""

    def run(candidate, n_rows):
        calls.append((candidate.name, n_rows))
        return Outcome(scores[candidate.name], {}, (0.0,) if candidate.name == "best" else (error,))

    return run


def families(**of: str) -> list[Candidate]:
    return [Candidate(name, ASKED, family=family) for name, family in of.items()]


def test_a_family_whose_first_is_hopeless_runs_no_other():
    listed = families(best="x", far="y", farther="y", near="z", beside="z")
    scores = {"best": 0.9, "far": 0.79, "farther": 0.95, "near": 0.81, "beside": 0.1}
    calls: list[tuple[str, int]] = []
    successive_halving(listed, run_with_error(scores, calls), [10], measure="accuracy", n_held_out=5)
    assert [name for name, _ in calls] == ["best", "far", "near", "beside"]


def test_the_best_of_a_family_goes_on_until_it_is_behind_by_its_error():
    scores = {"best": 0.9, "second": 0.89, "third": 0.88, "close": 0.86, "less": 0.84, "far": 0.7}
    listed = families(best="x", second="x", third="x", close="y", less="z", far="w")
    by_round = of_each_round(listed, scores)
    # a half, and of families those not far behind
    assert by_round[20] == ["best", "second", "third", "close", "less"]
    assert by_round[40] == ["best", "second", "third", "close"]  # "less" is behind by more than its error


def test_the_last_round_may_be_of_the_better_half_alone():
    scores = {"best": 0.9, "second": 0.89, "third": 0.88, "close": 0.86, "less": 0.84, "far": 0.7}
    listed = families(best="x", second="x", third="x", close="y", less="z", far="w")
    by_round = of_each_round(listed, scores, families_to_the_end=False)
    assert by_round[20] == ["best", "second", "third", "close", "less"]
    assert by_round[40] == ["best", "second", "third"]  # of five


def of_each_round(listed, scores, **settings):
    calls: list[tuple[str, int]] = []
    successive_halving(listed, run_with_error(scores, calls), ROUNDS, measure="accuracy", n_held_out=5, **settings)
    return {n: [name for name, rows in calls if rows == n] for n in ROUNDS}


def test_candidates_whose_errors_are_not_known_are_not_behind():
    one, other = Outcome(0.1), Outcome(0.9)
    assert not is_behind(one, other, 1.0)
    assert is_behind(Outcome(0.1, {}, (0.1,)), Outcome(0.9, {}, (0.2,)), 1.0)
    assert not is_behind(Outcome(0.1, {}, (0.1, 0.2)), Outcome(0.9, {}, (0.2,)), 1.0)


def scored(values, score=None):
    """The outcome of a machine whose score is the mean of parts of equal size."""
    values = np.asarray(values, dtype=float)
    rest = (values.sum() - values) / (values.size - 1)
    deviations = np.sqrt((values.size - 1) / values.size) * (rest - rest.mean())
    return Outcome(values.mean() if score is None else score, deviations=tuple(deviations))


def test_the_first_that_is_not_clearly_behind_is_preferred():
    steady, better = scored([0.5, 0.6] * 5), scored([0.8, 0.4] * 5)
    clear = scored([0.9, 0.9] * 5)
    assert preferred([steady, better], 0.0) == 1
    assert preferred([steady, better], 2.0) == 0
    assert preferred([steady, better, clear], 2.0) == 2
    assert preferred([better, better], 0.0) == 0


def test_the_score_to_expect_of_a_single_machine_is_its_own():
    values = np.random.default_rng(0).random(10)
    score, error = expected_score([[scored(values)]], 2.0)
    assert score == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) * np.sqrt(1 / 10 + 1 / 9))


def test_the_score_to_expect_is_that_of_the_machines_chosen_without_each_part():
    parts = np.random.default_rng(1).random((6, 10))
    outcomes = [scored(values) for values in parts]
    without = (parts.sum(axis=1, keepdims=True) - parts) / 9
    score, _ = expected_score([[outcome] for outcome in outcomes], 0.0)
    assert score == pytest.approx(np.mean([parts[without[:, k].argmax(), k] for k in range(10)]))
    assert expected_score([outcomes], 0.0)[0] == pytest.approx(score)


@pytest.mark.parametrize("errors", [0.0, 2.0])
def test_the_score_to_expect_covers_chance_where_the_best_of_many_does_not(errors):
    rng, within, best = np.random.default_rng(2), 0, []
    for _ in range(200):
        outcomes = [scored(values) for values in rng.normal(0.5, 0.1, (30, 10))]
        score, error = expected_score([[outcome] for outcome in outcomes], errors)
        within += abs(score - 0.5) < 2.26 * error  # Student's t with 9 degrees of freedom
        best.append(max(outcome.score for outcome in outcomes))
    assert np.mean(best) > 0.55
    assert within > 0.9 * 200


def test_without_deviations_there_is_no_score_to_expect():
    assert expected_score([[Outcome(0.5)], [Outcome(0.6)]], 2.0) is None
    assert expected_score([[scored([0.1, 0.2])], [scored([0.1, 0.2, 0.3])]], 2.0) is None
