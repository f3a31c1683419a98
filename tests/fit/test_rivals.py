"""Machines of one pass become the model where they predict as well as what a race has chosen, and kernels where not."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor, with_covariates
from chimap.engines import Progress
from chimap.fit import rivals
from chimap.fit.collecting import kernel
from chimap.fit.collecting.kernel import order_of
from chimap.fit.rivals import Entry, Rivals, watched_rows
from chimap.machines import block_plan
from chimap.machines.replayed import ReplayedPasses
from chimap.machines.sums import SumsOfFeatures
from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.moments import DealtFolds, GivenFolds
from chimap.race.rivals import challenger_of, rivals_of
from chimap.race.specs import KernelSpec
from chimap.recipe import Recipe
from chimap.solvers.base import Standing
from chimap.solvers.sweep import Sweep

N = 1600
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(2.0, (2 * N, 8)).astype(np.float32)
LINEAR = (COUNTS @ RNG.normal(size=8) + RNG.normal(size=2 * N) > 0).astype(int)
PAIRS = ((COUNTS[:, 0] > 1.5) ^ (COUNTS[:, 1] > 1.5)).astype(int)
ASKED = Recipe("HistogramClassifier", True)
LEARNED = {"gaussian": {"alpha": 1.0, "gamma": 0.1}}


@pytest.fixture
def blocks(monkeypatch):
    """Fits of so few rows have rivals, and machines in blocks."""
    monkeypatch.setattr(rivals, "FEWEST_ROWS", N)
    monkeypatch.setattr(rivals, "FEWEST_WATCHED", 300)
    monkeypatch.setattr(rivals, "FEWEST_OF_A_CLASS", 20)
    monkeypatch.setattr("chimap.machines.keeps_rows.MOST_ROWS", 500)
    monkeypatch.setattr(block_plan, "MOST_BLOCK_ROWS", 500)
    monkeypatch.setattr(block_plan, "FEWEST_BLOCK_ROWS", 400)
    monkeypatch.setattr("chimap.machines.matrix.FEWEST_BLOCK_ROWS", 400)
    monkeypatch.setattr("chimap.machines.blocks.FEWEST_BLOCK_ROWS", 400)


def result_of(*kernels, n_rows=500):
    """Return the result of a race that the first of some machines (kernel, score) has won."""
    trials = [
        Trial(KernelSpec(kernel, None).candidate(ASKED), 0, n_rows, score, 0.1, learned=LEARNED.get(kernel, {}))
        for kernel, score in kernels
    ]
    return RaceResult(trials, "accuracy", 100, 1.0, trials)


def fitted(y, monkeypatch, result=None, **settings):
    """Return the model of counts, chosen by a race whose result is given, and the rows that a sweep learned from."""
    swept = []
    run = Sweep.run
    monkeypatch.setattr(Sweep, "run", lambda self: (run(self), swept.append(self.n_seen))[0])
    recipe = result.winner.recipe
    monkeypatch.setattr("chimap.race.choose._raced", lambda *given: [(recipe, result)])
    model = HistogramClassifier(random_state=0, **settings).fit(COUNTS[:N], y[:N])
    return model, swept


def test_a_linear_truth_gets_a_linear_machine_of_all_rows(blocks, monkeypatch):
    model, swept = fitted(LINEAR, monkeypatch, result_of(("gaussian", 0.85), ("linear", 0.8), ("chi2", 0.8)))
    assert model.kernel_.name == "linear"
    assert model.n_rows_ == N
    assert swept[0] < N  # the sweep ended
    first = model.race_.rows()[0]
    assert first["name"].startswith("linear")
    assert first["n_rows"] == N - 300
    assert first["round"] == 1
    result = model.race_  # all that ran last was scored on the same rows, the sweep and the linear machines among it
    assert result.n_held_out == 300
    last = {trial.candidate.name for trial in result.trials if trial.round == 1}
    assert {"gaussian, raw rows", "linear ridge, raw rows", "linear logistic, raw rows"} <= last
    assert result.linear.round == 1
    assert len({trial.candidate.name for trial in result.trials}) == len(result.trials)
    alike = HistogramClassifier(random_state=0, **model.chosen_).fit(COUNTS[:N], LINEAR[:N])
    np.testing.assert_array_equal(model.decision_function(COUNTS[N:]), alike.decision_function(COUNTS[N:]))


def test_a_truth_of_pairs_gets_the_kernel_machine_of_all_rows(blocks, monkeypatch):
    model, swept = fitted(PAIRS, monkeypatch, result_of(("gaussian", 0.85), ("linear", 0.8), ("chi2", 0.8)))
    assert model.kernel_.name == "gaussian"
    assert model.n_rows_ == N
    assert swept == [N]
    assert model.score(COUNTS[N:], PAIRS[N:]) > 0.9


def test_watched_rows_are_among_those_that_memory_holds(blocks, monkeypatch):
    all_rows = kernel.block_plan
    monkeypatch.setattr(kernel, "block_plan", lambda *given: replace(all_rows(*given), n_rows=1200))
    assert fitted(PAIRS, monkeypatch, result_of(("gaussian", 0.85), ("linear", 0.8)))[1] == [1200]


def test_a_cheap_winner_meets_the_same_rivals(blocks, monkeypatch):
    additive = (np.abs(COUNTS[:, 0] - 2) + np.abs(COUNTS[:, 1] - 2) > 2).astype(int)
    model, swept = fitted(additive, monkeypatch, result_of(("linear", 0.8), ("chi2", 0.7)))
    assert model.kernel_.name == "chi2"
    assert not swept


def test_a_kernel_that_the_race_left_near_wins_with_more_rows(blocks, monkeypatch):
    model, swept = fitted(PAIRS, monkeypatch, result_of(("linear", 0.8), ("gaussian", 0.79)))
    assert model.kernel_.name == "gaussian"
    assert model.race_.winner.name == "gaussian, raw rows"
    assert swept == [model.n_rows_] == [N]


def test_a_kernel_that_stays_behind_costs_its_first_blocks(blocks, monkeypatch):
    model, swept = fitted(LINEAR, monkeypatch, result_of(("linear", 0.8), ("gaussian", 0.79)))
    assert model.kernel_.name == "linear"
    assert 0 < swept[0] < N


def test_only_kernels_of_the_last_round_that_are_near_challenge():
    def trial(kernel, score, place=1, deviation=0.01):
        own = result_of((kernel, score)).trials[0]
        return replace(own, round=place, deviations=(deviation, -deviation))

    first = trial("linear", 0.8, deviation=0.0)
    for other, is_near in (("gaussian", 0.78), True), (("gaussian", 0.76), False), (("chi2", 0.8), False):
        result = RaceResult([first, trial(*other)], "accuracy", 100, 1.0, [])
        assert (challenger_of(result) is not None) == is_near
    assert challenger_of(RaceResult([first, trial("gaussian", 0.8, 0)], "accuracy", 100, 1.0, [])) is None


def test_other_losses_are_tried_where_ridge_is_ahead_of_simpler_features(monkeypatch):
    sides = np.eye(10) / 100
    scores = {"a": 0.9, "b": 0.91, "c": 0.85, "d": 0.95, "e": 0.91, "f": 0.95, "g": 0.93, "h": 0.9}
    candidates = {
        name: Candidate(name, replace(ASKED, kernel=kernel, loss="square" if name in "aceg" else "logistic"))
        for name, kernel in zip(scores, ("linear",) * 2 + ("chi2",) * 6, strict=True)
    }
    monkeypatch.setattr(
        Rivals, "standing_of", lambda self, each: Standing(9, scores[each.name], sides["abcdefgh".index(each.name)])
    )

    def learned(plan, before, *kinds):
        kinds = [[candidates[name] for name in same] for same in kinds]
        empty = Rivals(plan, None, None, None, None, kinds, SimpleNamespace(score=SimpleNamespace(name="accuracy")))
        return [(entry.candidate.name, entry.place) for entry in empty.learned(before, Progress())]

    assert learned(None, [], "ab", "cd", "ef", "gh") == [*zip("abcegh", (0, 0, 1, 2, 3, 3), strict=True)]
    ridge = SimpleNamespace(recipe=candidates["g"].recipe)  # the plan's, of which the logistic one alone is a rival
    for own, expected in (0.95, "ah"), (0.92, "abh"), (0.91, "ab"):
        assert "".join(name for name, _ in learned(ridge, [Standing(9, own, sides[7])], "ab", "h")) == expected
    ahead = Standing(9, 0.98, sides[7])
    assert learned(SimpleNamespace(recipe=candidates["h"].recipe), [ahead], "ab", "cd") == [("a", 0), ("c", 1)]


def test_rivals_that_take_long_are_not_tried(blocks, monkeypatch):
    monkeypatch.setattr(rivals, "MOST_SECONDS", -100.0)
    model, swept = fitted(LINEAR, monkeypatch, result_of(("gaussian", 0.85), ("linear", 0.8)))
    assert model.kernel_.name == "gaussian"
    assert swept == [N]


def test_passes_cost_more_the_more_targets_there_are():
    one, ten = (SimpleNamespace(n_rows=60_000, n_targets=n) for n in (1, 10))
    assert ReplayedPasses().seconds(one, 50) < rivals.MOST_SECONDS < ReplayedPasses().seconds(ten, 784)
    assert SumsOfFeatures().seconds(ten, 784) < rivals.MOST_SECONDS


def test_no_row_is_watched_where_settings_are_named_or_rivals_are_hopeless():
    near, far = (result_of(("gaussian", 0.95), ("linear", score)) for score in (0.92, 0.85))
    assert [[each.recipe.loss for each in same] for same in rivals_of(near, ASKED) if same] == [["square", "logistic"]]
    assert not any(rivals_of(far, ASKED))
    assert not any(rivals_of(None, ASKED))
    assert [len(same) for same in rivals_of(near, replace(ASKED, is_classifier=False))] == [1, 0]
    named = {"kernel": "gaussian", "features": "exact", "alpha": 1.0, "loss": "hinge", "time_limit": 9.0, "gamma": 2.0}
    for name, value in named.items():
        assert not any(rivals_of(near, replace(ASKED, **{name: value}))), name


def test_ridge_takes_words_by_each_of_their_weights():
    def trial(kernel, rows, score):
        return Trial(KernelSpec(kernel, rows).candidate(ASKED), 0, 500, score, 0.1)

    raced = [trial("gaussian", "tf-idf", 0.9), trial("linear", "tf-idf", 0.88), trial("linear", "tf-idf-ratio", 0.87)]
    for trials, rows in (raced, ("tf-idf", "tf-idf-ratio")), (raced[:2], ("tf-idf",)):
        first, *_ = rivals_of(RaceResult(trials, "accuracy", 100, 1.0, trials), ASKED)
        ridges = [f"linear ridge, {each} rows" for each in rows]
        assert [each.name for each in first] == [*ridges, "linear logistic, tf-idf rows"]


def test_rows_that_tell_nothing_of_a_class_or_of_groups_are_not_watched():
    def can_tell(y, watched, groups=None, is_classifier=True, n_rows=9000):
        source = SimpleNamespace(n_rows=9000, labels=lambda: y)
        plan = SimpleNamespace(asked=replace(ASKED, is_classifier=is_classifier), cost=SimpleNamespace(n_rows=n_rows))
        rivals = Rivals(plan, None, source, groups, None, [])
        return rivals.can_tell(watched)

    y, watched = np.arange(9000) % 3, np.arange(900)
    assert can_tell(y, watched)
    assert can_tell(np.arange(9000.0), watched, is_classifier=False)
    assert not can_tell(np.where(np.arange(9000) < 100, 3, y), watched)  # a hundred rows of a class
    assert not can_tell(np.where(np.arange(9000) > 8000, 3, y), watched)  # none of it
    assert can_tell(y, watched, np.arange(9000) // 90)
    assert not can_tell(y, watched, np.arange(9000) // 300)  # three groups
    assert not can_tell(y, np.arange(5000), np.arange(9000) // 90)  # most of the rows
    assert not can_tell(y, watched, n_rows=2000)  # nearly half of those that memory holds


def test_a_fit_with_covariates_meets_no_rivals(monkeypatch):
    monkeypatch.setattr(rivals, "FEWEST_ROWS", 300)
    monkeypatch.setattr(rivals, "FEWEST_WATCHED", 100)
    age = RNG.normal(50, 10, 400)
    y = COUNTS[:400, 0] + 0.1 * age + 0.1 * RNG.normal(size=400)
    model = HistogramRegressor(covariates={"age": age}, random_state=0).fit(COUNTS[:400], y)
    assert max(trial.round for trial in model.race_.trials) == 0
    assert np.corrcoef(model.predict(with_covariates(COUNTS[:400], {"age": age})), y)[0, 1] > 0.9


def test_the_winner_of_a_race_is_no_rival_of_itself():
    recipes = [each.recipe for same in rivals_of(result_of(("linear", 0.9)), ASKED) for each in same]
    assert [recipe.loss for recipe in recipes] == ["logistic"]


@pytest.mark.parametrize("group_rows", [1, 7, 900])
def test_watched_rows_are_whole_groups(group_rows):
    groups = RNG.permutation(np.arange(9000) // group_rows)
    watched = watched_rows(9000, None if group_rows == 1 else groups, 3)
    inside = np.isin(np.arange(9000), watched)
    assert watched.size in (900, 1000) or 993 <= watched.size < 1000
    if group_rows > 1:
        assert not np.intersect1d(groups[inside], groups[~inside]).size
    assert watched_rows(10**6, None, 3).size == rivals.MOST_WATCHED


@pytest.mark.parametrize("group_rows", [1, 7])
def test_watched_rows_are_the_last_of_a_sweep_whose_order_stays(group_rows, monkeypatch):
    monkeypatch.setattr(rivals, "FEWEST_WATCHED", 20)
    n, groups = 210, np.arange(210) // group_rows
    folds = DealtFolds(1, 0) if group_rows == 1 else GivenFolds(groups, groups.max() + 1)
    watch = SimpleNamespace(places=watched_rows(n, None if group_rows == 1 else groups, 0))
    (plain, _), (order, together) = order_of(folds, n, 0), order_of(folds, n, 0, watch)
    np.testing.assert_array_equal(order, plain)
    np.testing.assert_array_equal(np.sort(order[-watch.places.size :]), watch.places)
    others = SimpleNamespace(places=np.flatnonzero(groups < 21 // group_rows))
    order, together = order_of(folds, n, 0, others)
    np.testing.assert_array_equal(np.sort(order[-others.places.size :]), others.places)
    assert together is None if group_rows == 1 else all(np.unique(groups[order[own]]).size == 1 for own in together)


def decided(own, *others, keeps_rows, kernel="hellinger"):
    """Return the name of the rival that wins, with scores whose differences have an error of .014; None for none."""
    sides = np.eye(10) / 100
    recipe = replace(ASKED, features="exact" if keeps_rows else "additive", kernel=kernel)
    kernels = [replace(ASKED, kernel=name) for name in ("linear", "chi2")]
    entries = [
        Entry(Candidate(str(k), kernels[k // 2]), Standing(9, score, sides[k + 1]), 1.0, k // 2)
        for k, score in enumerate(others)
    ]
    plan = type("Plan", (), {"recipe": recipe})
    found = Rivals(plan, None, None, None, None, []).winner(Standing(9, own, sides[0]), entries)
    return None if found is None else found.candidate.name


def test_the_simplest_rival_within_an_error_of_the_best_wins():
    assert decided(0.9, 0.85, 0.88, keeps_rows=True) is None
    assert decided(0.9, 0.88, 0.89, 0.95, keeps_rows=True) == "2"
    assert decided(0.9, 0.895, 0.89, 0.9, keeps_rows=True) == "0"
    assert decided(0.9, 0.89, 0.895, 0.9, keeps_rows=True) == "1"  # the better of two that are as simple
    assert decided(0.9, 0.895, 0.89, 0.91, keeps_rows=False) is None  # a cheap machine stays unless one is better
    assert decided(0.9, 0.91, 0.92, 0.91, keeps_rows=False) == "1"
    # of losses on the same features the better, by however little
    assert decided(0.9, 0.905, 0.89, 0.91, keeps_rows=False, kernel="linear") == "0"
    assert decided(0.9, 0.89, 0.9, 0.91, keeps_rows=False, kernel="linear") is None
