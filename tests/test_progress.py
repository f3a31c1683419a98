"""The line of progress, by a clock that tests set: its words, and the time that it says is left."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest

from chimap._progress import Ahead, LineProgress
from chimap.data import ArraySource
from chimap.machines.base import Facts, Request
from chimap.machines.catalogue import machine_for
from chimap.race.runner import Race
from chimap.recipe import Recipe
from chimap.recipe.task import Task

TASKED = ArraySource(np.ones((60, 4), np.float32), np.arange(60) % 2)
RACE = Race.on(
    ASKED := Recipe("HistogramClassifier", True), TASKED, Task.of(TASKED, ASKED)[0], None, lambda *given: None
)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def lines(clock, **given):
    stream = io.StringIO()
    return LineProgress(stream=stream, clock=clock, **given), stream


def test_the_line_says_step_share_time_and_score(clock):
    progress, _ = lines(clock, later_steps=1)
    progress.steps(2)
    progress.step("choosing a machine")
    assert progress.line() == "step 1 of 3: choosing a machine"
    progress.step("fitting 47,956 rows", [Ahead("learning", 47_956, lambda n: n / 4796)])
    progress.stage("sampling", None)
    clock.now += 0.5
    progress.stage("learning", 47_956)
    clock.now += 20
    progress.advance(47_956 // 2)
    progress.scored("accuracy", 0.9971)
    assert progress.line() == "step 2 of 3: fitting 47,956 rows, 51 %, about 20 s left, accuracy so far 99.7 %"
    progress.step("scoring 9,000 rows")
    progress.stage("predicting", 9000)
    assert progress.line() == "step 3 of 3: scoring 9,000 rows, accuracy so far 99.7 %"


def test_without_steps_the_stage_is_named(clock):
    progress, _ = lines(clock)
    progress.stage("predicting", 2000)
    assert progress.line() == "predicting 0 of 2,000 rows"  # nobody knows how long yet
    clock.now += 30
    progress.advance(500)
    assert progress.line() == "predicting 500 of 2,000 rows, 25 %, about 2 min left"
    progress.stage("words", None, "words")
    assert progress.line() == "words"


def test_a_line_every_ten_seconds_and_none_of_short_jobs(clock):
    progress, stream = lines(clock)
    progress.stage("reading", 1000)
    for _ in range(100):
        clock.now += 0.25
        progress.advance(10)
    assert stream.getvalue().count("\n") == 2
    assert stream.getvalue().startswith("reading 400 of 1,000 rows, 40 %, about 15 s left\n")
    short, said = lines(clock)
    short.stage("reading", 1000)
    clock.now += 9
    short.advance(1000)
    assert said.getvalue() == ""


def test_notes_are_for_those_who_ask_but_some_matter(clock):
    for verbose in (False, True):
        progress, stream = lines(clock, verbose=verbose)
        progress.note("the strength falls")
        progress.note("compiling", matters=True)
        assert stream.getvalue() == ("the strength falls\n" if verbose else "") + "compiling\n"


def test_before_anything_is_measured_the_line_is_estimating_and_then_goes_by_what_was_faster_or_slower(clock):
    progress, _ = lines(clock)
    progress.steps(2)
    progress.step("choosing a machine", [Ahead("race", 20, float, is_relative=True)])
    progress.stage("race", None, "fits")
    clock.now += 3
    assert progress.seconds_left is None
    assert progress.line() == "step 1 of 2: choosing a machine, estimating"
    progress.advance()
    assert progress.seconds_left is None  # the first trial loads what the others need
    clock.now += 2
    progress.advance()
    assert progress.seconds_left == pytest.approx(36)
    clock.now += 55
    progress.planned(20.0)  # by rates, a third of the time
    progress.step("fitting 100 rows", [Ahead("learning", 100, lambda n: n / 10)])
    progress.stage("sampling", None)
    assert progress.seconds_left == pytest.approx(30)
    alone, _ = lines(clock)
    alone.step("fitting 100 rows", [Ahead("learning", 100, lambda n: n / 10)])
    assert alone.seconds_left is None


@pytest.mark.parametrize(("sizes", "fewer"), [([100], 0), ([100, 200, 400], 4)])
def test_a_race_knows_its_rounds(sizes, fewer):
    """Its share grows to the last trial, whether a round has more or fewer of them than usual."""
    race = copy.copy(RACE)
    race.splits_of, race.splits = (
        dict.fromkeys(sizes, 1),
        [(np.arange(400), np.arange(9))] * (2 if len(sizes) == 1 else 1),
    )
    ahead, starts = race.ahead(20)
    assert len(starts) == len(sizes) + 1
    assert ahead.total >= starts[-1]
    done = [ahead.seconds(n) for n in range(ahead.total + 1)]
    assert done[0] == 0
    assert (np.diff(done) > 0).all()
    if fewer:  # a machine of twice the rows takes four times as long, and a round of few rows searches
        assert np.diff(done)[[0, starts[1], starts[2]]] == pytest.approx([5, 4, 16])


@pytest.mark.parametrize("rate", [0.001, 0.3, 1.0, 3.0, 200.0])
def test_after_a_tenth_the_time_left_is_right_within_a_half_whatever_the_rate_of_the_plan(clock, rate):
    """The work of a sweep grows with the square of the rows; the computer is slower than the plan by a factor."""
    n, n_blocks = 60_000, 60
    work = lambda rows: (rows / n) ** 2 * 100  # noqa: E731
    progress, _ = lines(clock)
    progress.step("fitting", [Ahead("alpha", 10, lambda values: values), Ahead("blocks", n, work)])
    whole, began, told = rate * 110, clock.now, False
    progress.stage("alpha", None, "values")
    for _ in range(10):
        clock.now += rate
        progress.advance()
        told = check(progress, whole - (clock.now - began), whole) or told
    progress.stage("blocks", n)
    for block in range(n_blocks):
        rows = n // n_blocks
        clock.now += rate * (work((block + 1) * rows) - work(block * rows))
        progress.advance(rows)
        told = check(progress, whole - (clock.now - began), whole) or told
    assert told


def check(progress, left, whole):
    if not 0.02 * whole < left < 0.9 * whole:
        return False
    assert left / 1.5 < progress.seconds_left < 1.5 * left
    return True


def test_a_search_that_is_longer_than_usual_does_not_end_before_it_ends(clock):
    progress, _ = lines(clock)
    progress.step("fitting", [Ahead("alpha", 10, float)])
    progress.stage("alpha", None, "values")
    for _ in range(20):
        clock.now += 2
        progress.advance()
        assert progress.seconds_left > 0.5


@pytest.mark.parametrize(
    ("given", "n_rows", "stages"),
    [
        ({"kernel": "exp-chi2"}, 3000, ["alpha"]),
        ({"kernel": "exp-chi2"}, 60_000, ["alpha", "blocks"]),
        ({"kernel": "chi2"}, 60_000, ["learning"]),
        ({"kernel": "chi2", "alpha": 1.0}, 3000, ["learning"]),
    ],
)
def test_plans_say_what_is_ahead(given, n_rows, stages):
    source = ArraySource(np.ones((n_rows, 40), np.float32), np.arange(n_rows) % 2)
    recipe = Recipe("HistogramClassifier", True, **given)
    task, source, _ = Task.of(source, recipe)
    plan = machine_for(recipe, Facts.of(source, task, None, Request(can_keep=True)), recipe)
    assert [each.stage for each in plan.ahead] == stages
    for each in plan.ahead:
        half, whole = each.seconds(each.total // 2), each.seconds(each.total)
        assert 0 < half < whole
    if "blocks" in stages:  # the rows of the first block are learned by the search
        assert plan.ahead[1].seconds(plan.cost.block_rows) == 0
        assert whole < plan.cost.seconds
