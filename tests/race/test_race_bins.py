"""Which candidates of a race go on to weights of their bins, and where these end in its table."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from chimap import HistogramClassifier
from chimap.data import ArraySource
from chimap.engines import Progress
from chimap.features.screened import screened_weights
from chimap.fit.fit import fit_candidate
from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.race.bins import LearnedBins, WeighedBins, _leader, promoted, weigh_bins, with_bins
from chimap.race.runner import Race
from chimap.recipe import Recipe
from chimap.recipe.task import Task

ASKED = Recipe("HistogramClassifier", True)

DIGITS = load_digits(return_X_y=True)


def digits(n):
    return DIGITS[0][:n], DIGITS[1][:n]


def task_of(model, rows, y):
    """The recipe of a model, and rows with their task and no groups."""
    recipe = Recipe.of(model)
    task, source, groups = Task.of(ArraySource(rows, y), recipe)
    return recipe, source, task, groups


def race_on(rows, y):
    """A race of the classifier's own settings."""
    model = HistogramClassifier(random_state=0)
    return Race.on(*task_of(model, rows, y), fit_candidate)


def test_weights_of_bins_are_not_learned_for_what_is_far_behind():
    few = race_on(*digits(200))
    many = replace(few, leaves_out=False)
    trials = [
        Trial(Candidate("a", ASKED.with_raced(loss="squared_hinge")), 0, 100, 0.9, 0.0, deviations=(0.01, -0.01, 0.0)),
        Trial(Candidate("b", ASKED.with_raced(loss="square")), 0, 100, 0.7, 0.0, deviations=(-0.01, 0.01, 0.0)),
    ]
    assert _leader(many, RaceResult(trials, "accuracy", 50, 0.0)) is None
    near = [trials[0], replace(trials[1], score=0.89)]
    assert _leader(many, RaceResult(near, "accuracy", 50, 0.0)) is near[1]
    assert _leader(few, RaceResult(near, "accuracy", 50, 0.0)) is None
    assert _leader(few, RaceResult(near[1:], "accuracy", 50, 0.0)) is near[1]


@pytest.fixture
def many_rows(monkeypatch):
    """As if the rows of a test were too many to leave each out."""
    monkeypatch.setattr("chimap.race.runner.FEW", 0)


def noisy_race():
    """A race of digits with as many bins of noise, and trials of it: an additive kernel leads an exponential one."""
    X, y = digits(400)
    rng = np.random.default_rng(0)
    rows = np.hstack([X, np.column_stack([rng.permutation(column) for column in X.T])])
    running = race_on(rows, y)
    trials = list[Trial]()
    for kernel, gamma, at, score in (("chi2", {}, 1, 0.9), ("exp-chi2", {"gamma": "auto"}, 0, 0.8)):
        recipe = ASKED.with_raced(kernel=kernel, normalize=None, loss="square", **gamma)
        trials.append(Trial(Candidate(kernel, recipe), at, 150, score, 0.0))
    return running, RaceResult(trials, "accuracy", 50, 0.0)


@pytest.mark.usefixtures("many_rows")
def test_an_exponential_kernel_goes_on_to_weights_after_an_additive_one_where_bins_say_nothing():
    running, result = noisy_race()
    first, second = promoted(running, result, 128)
    assert first is result.trials[0]
    assert (second.candidate.name, second.round, second.n_rows) == ("exp-chi2", 1, 150)
    assert list(promoted(replace(running, shared=None), result, 128)) == [first]
    ahead = RaceResult([replace(result.trials[1], round=1, score=0.95), first], "accuracy", 50, 0.0)
    assert list(promoted(running, ahead, 128)) == [ahead.trials[0]]


MARGINS = {"kernel": "exp-chi2", "normalize": None, "features": "exact", "loss": "squared_hinge", "gamma": "auto"}
LINEAR_MARGINS = {"kernel": "chi2", "normalize": None, "features": "additive", "loss": "hinge"}


@pytest.mark.usefixtures("many_rows")
def test_a_winner_with_margins_goes_on_to_a_screening_where_bins_say_nothing():
    running, result = noisy_race()
    winner = Trial(Candidate("margins", ASKED.with_raced(**MARGINS)), 1, 150, 0.97, 0.0)
    won = replace(result, trials=[winner, *result.trials])
    assert list(promoted(running, won, 128))[-1] is winner
    told = race_on(running.rows[:, :64], running.y)
    assert winner not in promoted(told, won, 64)


@pytest.mark.usefixtures("many_rows")
def test_bins_that_labels_weigh_already_do_not_go_on_to_weights():
    running, result = noisy_race()
    first, second = result.trials
    by_labels = replace(
        second, candidate=Candidate("words", second.candidate.recipe.with_raced(normalize="tf-idf-ratio"))
    )
    assert list(promoted(running, replace(result, trials=[first, by_labels]), 128)) == [first]
    margins = Trial(
        Candidate("margins", ASKED.with_raced(**MARGINS | {"normalize": "tf-idf-ratio"})), 1, 150, 0.97, 0.0
    )
    assert margins not in promoted(running, replace(result, trials=[margins, *result.trials]), 128)


@pytest.mark.parametrize("settings", [MARGINS, LINEAR_MARGINS])
def test_margins_leave_out_bins_that_say_nothing_by_two_fits_a_split(settings):
    running, _ = noisy_race()
    trial = Trial(Candidate("margins", ASKED.with_raced(**settings)), 0, max(running.splits_of), 0.0, 0.0)
    fits = []
    progress = Progress()
    progress.advance = lambda *_: fits.append(1)
    bins = WeighedBins(running, trial.candidate).learn(trial, progress)
    assert len(fits) == 2  # equal weights and the screening, and no rounds of gradients
    assert bins.weights[:64].mean() > 4.5 * bins.weights[64:].mean()  # by the 300 rows of the first split


def test_one_candidate_goes_on_to_weights_where_all_bins_say_something():
    X, y = digits(400)
    told = X[:, X.std(axis=0) > 3]  # counts to 16
    running, result = race_on(told, y), noisy_race()[1]
    assert [t.candidate.name for t in promoted(running, result, told.shape[1])] == ["chi2"]


@pytest.mark.parametrize(("score", "at", "place"), [(0.95, 1, 1), (0.85, 1, 1), (0.85, 0, 1), (0.7, 0, 2)])
def test_weights_that_are_not_kept_are_told_where_their_score_is(score, at, place):
    result = noisy_race()[1]
    trial = replace(result.trials[0], round=at, score=score)
    told = with_bins(result, LearnedBins(trial, None, False))
    assert told.trials[place] is trial
    kept = with_bins(result, LearnedBins(trial, np.ones(128), True))
    assert (kept.trials[0] is trial) is (score == 0.95)


def raced_on(memory, **settings):
    """The race of learned bins on 400 digits, and the settings that it chooses, with a budget in bytes."""
    X, y = digits(400)
    model = HistogramClassifier("exp-chi2", bin_weights="learn", memory=memory, random_state=0, **settings)
    recipe, result = weigh_bins(*task_of(model, X, y), fit_candidate, Progress())
    return result, recipe.raced_settings


@pytest.mark.usefixtures("many_rows")
@pytest.mark.parametrize(("memory", "fewest", "most"), [("64MiB", 299, 300), ("3MiB", 140, 280)])
def test_a_small_budget_learns_weights_of_bins_from_fewer_rows(memory, fewest, most):
    result, settings = raced_on(memory)
    assert [trial.candidate.name for trial in result.trials] == ["exp-chi2", "exp-chi2, learned bins"]
    assert {fewest <= trial.n_rows <= most for trial in result.trials} == {True}
    assert settings["bin_weights"] is None or settings["bin_weights"].shape == (64,)


def test_a_budget_without_room_for_a_race_leaves_bins_equal_and_names_one_that_has():
    with pytest.warns(UserWarning, match="all bins keep the same weight.*memory='1MiB' holds too few rows") as told:
        assert raced_on("1MiB") == (None, {"bin_weights": None})
    named = re.search("Give memory='([^']+)'", str(told[0].message))[1]
    assert raced_on(named)[0] is not None


def test_fits_that_a_budget_does_not_hold_beside_the_sample_leave_bins_equal():
    with pytest.warns(UserWarning, match="memory='1MiB' does not hold a fit besides a sample of the rows"):
        assert raced_on("1MiB", features="fourier", n_components=300) == (None, {"bin_weights": None})


@pytest.mark.parametrize(("normalize", "n_rows"), [(None, 400), ("l1", 400), ("l1", 800)])
def test_learning_begins_with_a_screening_of_each_split_and_ends_with_one_of_many_rows(normalize, n_rows, monkeypatch):
    running, result = noisy_race()
    running = replace(running, n_rows=n_rows)
    first, given = replace(result.trials[0], n_rows=max(running.splits_of)), []
    first = replace(first, candidate=Candidate("normalised", first.candidate.recipe.with_raced(normalize=normalize)))

    def learn(weigh, equal, screened, trial, most_rounds, is_few):
        given.append((equal, screened))
        return LearnedBins(trial, screened[0], True, is_screened=True)

    monkeypatch.setattr("chimap.race.bins.learn_bins", learn)
    learned = WeighedBins(running, first.candidate).learn(first, Progress())

    def screened(places):
        rows, labels = running.rows[places], running.y[places]
        if normalize:
            rows = rows / rows.sum(axis=1, keepdims=True)
        return screened_weights(np.sqrt(rows), (labels[:, None] == np.unique(running.y)) * 1.0)

    ((equal, of_splits),) = given
    np.testing.assert_array_equal(equal, np.ones_like(of_splits))
    expected = [screened(train) for train, _ in running.splits_at(first.n_rows)]
    np.testing.assert_allclose(of_splits, expected, atol=1e-3)
    known = running.splits_at(first.n_rows)[0][0] if n_rows == 400 else np.arange(400)
    np.testing.assert_allclose(learned.weights, screened(known), atol=1e-3)
    np.testing.assert_array_equal(learned.places, np.sort(running.places[known]))
