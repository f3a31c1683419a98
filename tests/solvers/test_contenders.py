"""Contenders of a sweep: its first blocks again with less strength or a narrower kernel, scored on rows to come."""

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from chimap._progress import Progress
from chimap.features.exact import ExactFeatures
from chimap.machines.base import Plan
from chimap.recipe import Recipe
from chimap.selection.base import OpenSettings
from chimap.selection.scoring import HeldOutScore
from chimap.solvers.base import Evidence, KernelRows, Standing
from chimap.solvers.block_kernel import block_kernel
from chimap.solvers.block_problem import BlockProblem
from chimap.solvers.blocks import BlockRidge, core_rows
from chimap.solvers.contenders import RowsToCome
from chimap.solvers.kernel_matrix import solved_alone
from chimap.solvers.sweep import Sweep

BORDERS = np.array([0, 300, *range(510, 1561, 210)])  # seven blocks
N, N_LEARNED = int(BORDERS[-1]), int(BORDERS[3])
RNG = np.random.default_rng(3)
X = RNG.dirichlet(np.ones(6), N)
WAVES = np.sin(9 * X[:, :1]) + 0.1 * RNG.standard_normal((N, 1))


class Notes(Progress):
    """What is told to the user."""

    def __init__(self):
        self.told = []

    def note(self, text):
        self.told.append(text)

    @property
    def met(self):
        """Of each contender, whether it took over."""
        return ["not taken" not in text for text in self.told if "rows to come" in text]


def fitted(gamma="mean"):
    return ExactFeatures("exp-chi2", gamma=gamma, random_state=0).fit(X)


def rows_of(features, y=WAVES, **settings):
    score = HeldOutScore(y[:, 0], None)
    return KernelRows(features, np.arange(N), None, y, np.zeros(1), None, score, np.dtype("float64"), **settings)


def swept(rows, alpha=10.0, open=("alpha",), borders=BORDERS, **evidence):
    """Return the problem of a sweep that has ended, its solution, and what it told."""
    notes = Notes()
    problem = BlockProblem("square", Evidence(kernel=rows, borders=borders, n_rows=N, progress=notes, **evidence))
    if problem.chosen is None:
        problem.adopt(replace(solved_alone(problem.matrix, alpha), open=open))
    else:
        problem.adopt(problem.chosen)
    return problem, problem.solve(alpha), notes


def test_less_strength_takes_over_where_rows_to_come_are_predicted_better():
    features = fitted()
    problem, solution, notes = swept(rows_of(features))
    assert notes.met == [True, True]
    assert notes.told[2].startswith("a quarter of the strength is taken: r2 +0.")
    assert notes.told[3].startswith("a sixteenth of the strength is taken: r2 +0.")
    assert notes.told[2].endswith(" of 210 rows to come, for 3 of 7 blocks")
    assert solution.alpha == 10 / 16
    kept = swept(rows_of(fitted()), open=())[0]
    assert problem.growth[1][-1][1] > kept.growth[1][-1][1] + 0.01

    # it is the machine that began at that strength, with the intercept of the first block
    rows, first = rows_of(features), solved_alone(BlockProblem("square", problem._evidence).matrix, 10.0).solution
    kernel, n_core = block_kernel(features, 330, rows.dtype), core_rows(300)
    begun = BlockRidge(kernel, rows.Y, None, 10 / 16, first.intercept, n_core)
    outputs = [begun.learn(slice(a, b)) for a, b in pairwise(BORDERS)]
    np.testing.assert_allclose(solution.coef, begun.weights, atol=1e-9)
    held_out = problem.findings.held_out
    assert np.isnan(held_out[:300]).all()
    np.testing.assert_allclose(held_out[300 : BORDERS[-2]], np.vstack(outputs[1:-1]), atol=1e-9)


def test_a_long_sweep_meets_contenders_again(monkeypatch):
    monkeypatch.setattr("chimap.solvers.sweep.rounds", lambda n_blocks: [3, 5])
    _, solution, notes = swept(rows_of(fitted()), 1000.0)
    assert [text.split("for ")[1] for text in notes.told if "rows to come" in text] == ["3 of 7 blocks"] * 2 + [
        "5 of 7 blocks"
    ] * (len(notes.met) - 2)
    assert notes.met[:3] == [True] * 3
    assert solution.alpha == 1000.0 / 4 ** sum(notes.met)


@pytest.mark.parametrize("seed", range(3))
def test_a_strength_that_suits_the_rows_stays(seed):
    """The targets are of a Gaussian process whose noise has the strength as its variance: no other one is better."""
    features = fitted()
    values = features.transform(X)
    process = np.linalg.cholesky(values + 1e-6 * np.eye(N)) @ np.random.default_rng(seed).standard_normal((N, 1))
    y = process + np.sqrt(0.5) * np.random.default_rng(seed + 10).standard_normal((N, 1))
    _, solution, notes = swept(rows_of(features, y), 0.5)
    plain = swept(rows_of(fitted(), y), 0.5, open=())[1]
    assert notes.met == [False]
    assert solution.alpha == 0.5
    np.testing.assert_array_equal(solution.coef, plain.coef)


@pytest.mark.parametrize(
    ("gains", "taken"),
    [([-0.5, -1.5], [True, False]), ([-1.5], [False]), ([0.0, -0.5], [True, True]), ([float("nan")], [False])],
)
def test_less_strength_must_not_be_behind(monkeypatch, gains, taken):
    """Both by a standard error: later blocks average more of the noise than those that contenders learn."""
    told = iter(gains)
    monkeypatch.setattr(RowsToCome, "gain_and_error", lambda *args: (next(told), 1.0))
    _, solution, notes = swept(rows_of(fitted()))
    assert notes.met == taken
    assert solution.alpha == 10 / 4 ** sum(taken)


def test_a_narrower_kernel_takes_over_where_it_is_ahead():
    for gamma, is_ahead in (0.2, True), (8.0, False):
        features = fitted(gamma)
        _, solution, notes = swept(rows_of(features), 0.02, open=("gamma",))
        assert notes.met == [is_ahead]
        assert features.kernel_.gamma == (2 * gamma if is_ahead else gamma)
        assert solution.alpha == pytest.approx(0.02 * 10**0.5 if is_ahead else 0.02)


@pytest.mark.parametrize(
    "given",
    [{"open": ()}, {"borders": BORDERS[:6]}, {"borders": np.array([0, 300, *range(480, 1561, 180)])}],
    ids=["a strength that is given", "five blocks", "blocks of few rows"],
)
def test_no_contender_takes_over(given):
    _, solution, notes = swept(rows_of(fitted()), **given)
    assert not any(notes.met)
    assert solution.alpha == 10


def test_settings_that_the_user_gave_are_not_open():
    assert OpenSettings(1.0).names == OpenSettings((1.0, 2.0)).names == ()
    assert OpenSettings(None, gamma=True).names == ("alpha", "gamma")
    assert OpenSettings(1.0, from_race=["alpha"]).names == ("alpha",)
    raced = {"raced": frozenset(["alpha", "gamma", "kernel"])}
    for asked, found in ({}, ["alpha", "gamma"]), ({"gamma": 0.5}, ["alpha"]), ({"alpha": 0.1, "gamma": 0.5}, []):
        recipe = Recipe("HistogramClassifier", True, **asked)
        plan = SimpleNamespace(asked=recipe, recipe=replace(recipe, **{"alpha": 0.1, "gamma": 0.5} | asked | raced))
        assert Plan.numbers_of_race.fget(plan) == found
    assert OpenSettings(None, from_race=["gamma"]).names == ("alpha", "gamma")


@pytest.mark.parametrize("n_blocks", [2, 3, 4])
def test_a_sweep_goes_on_from_a_checkpoint_with_the_same_bits(n_blocks):
    states = []
    whole, solution, notes = swept(
        rows_of(fitted(0.2)), 0.02, ("gamma",), reached=lambda state: states.append(deepcopy(state))
    )
    assert notes.met[-1]
    begun = states[n_blocks - 1]
    assert begun.weights.shape[0] == BORDERS[n_blocks]
    resumed, again, _ = swept(rows_of(fitted(0.2)), begun=begun)
    np.testing.assert_array_equal(again.coef, solution.coef)
    assert again.alpha == solution.alpha
    np.testing.assert_array_equal(resumed.findings.held_out, whole.findings.held_out)
    assert resumed.growth == whole.growth


class Watching:
    """Rows that are watched until the end."""

    places = np.arange(N - 250, N)

    def __init__(self):
        self.outputs = []

    def standing(self, outputs, n_rows):
        self.outputs.append((n_rows, outputs))
        return Standing(n_rows, 0.0, np.zeros(2))

    def verdict(self, curve, n_end, growth):
        return "" if len(curve) < 3 or curve[-1].n_rows < BORDERS[5] else "enough"


def test_watched_rows_decide_where_there_are_any():
    watch, features = Watching(), fitted()
    _, solution, notes = swept(rows_of(features), watch=watch)
    assert notes.met == [True, True]
    assert " of 250 rows to come" in notes.told[2]
    assert [n for n, _ in watch.outputs] == [300, 510, 720, 720, 720, 930, 1140]
    n = solution.coef.shape[0]
    assert n == 1140
    expected = fitted().transform(X[watch.places])[:, :n] @ solution.coef + solution.intercept
    np.testing.assert_allclose(watch.outputs[-1][1], expected, atol=1e-6)


def test_an_interruption_by_the_user_keeps_the_machine_before_a_contender(monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    features, plain = fitted(1.0), swept(rows_of(fitted(1.0)), open=(), borders=BORDERS[:4])[1]
    monkeypatch.setattr("chimap.solvers.sweep.rehearsed", interrupted)
    _, solution, _ = swept(rows_of(features), open=("gamma",))
    assert features.kernel_.gamma == 1.0
    np.testing.assert_array_equal(solution.coef, plain.coef)


def test_contenders_take_no_time_that_blocks_need(monkeypatch):
    for seconds, n_met in (1e6, 2), (30.0, 0):
        monkeypatch.setattr(Sweep, "_seconds_of", lambda self, n_rows: 10.0)
        monkeypatch.setattr(Sweep, "_has_time_for", lambda self, *given: True)
        monkeypatch.setattr(Sweep, "_sweep_again", lambda self: None)
        monkeypatch.setattr("chimap.solvers.sweep.time.monotonic", lambda: 0.0)
        assert len(swept(rows_of(fitted()), ends_at=seconds)[2].met) == n_met


def test_rows_that_must_not_be_scored_tell_nothing():
    hidden = np.arange(N) % 2 == 0
    outputs = np.where(hidden[:, None], WAVES + 0.1, 100.0)
    rows = rows_of(fitted(), hidden=hidden)
    gain, error = RowsToCome(rows, slice(0, 600)).gain_and_error(0 * outputs[:600], outputs[:600])
    assert gain > 0.9
    assert 0 < error < 0.5
    assert np.isnan(RowsToCome(rows, slice(0, 300)).gain_and_error(0 * outputs[:300], outputs[:300])).all()
