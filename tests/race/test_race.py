"""kernel="auto": the race finds settings, says what it tried, and its winner is what is fitted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits

from chimap import HistogramClassifier, HistogramRegressor, load
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.engines import Progress
from chimap.fit.fit import fit_candidate
from chimap.losses import SquaredHinge
from chimap.machines.base import Facts, Request, Winner
from chimap.machines.block_plan import BlockPlan
from chimap.machines.catalogue import for_all_rows
from chimap.models.race_result import Candidate
from chimap.race.candidates import kernels_worth_trying, most_candidates
from chimap.race.rows import held_out_rows, n_repeated, rounds_of, rows_of_round
from chimap.race.runner import Race, work_of_fit
from chimap.race.traits import SampleTraits
from chimap.race.trials import Outcome
from chimap.recipe import Recipe
from chimap.recipe.task import Task, scoring_of

from ..machines.choices import source_of

ASKED = Recipe("HistogramClassifier", True)

DIGITS = load_digits(return_X_y=True)


def digits(n=300):
    return DIGITS[0][:n], DIGITS[1][:n]


@cache
def fit_of_200(grouped=False):
    """The race of 200 digits, each a group of its own or four together."""
    return HistogramClassifier(random_state=3).fit(*digits(200), groups=np.arange(200) // 4 if grouped else None)


def traits(**more):
    return SampleTraits(
        **({"is_signed": False, "density": 0.5, "has_sums": True, "has_counts": True, "n_classes": 3} | more)
    )


def test_the_winner_is_what_is_fitted_and_it_beats_the_linear_machine():
    X, y = digits(400)
    model = HistogramClassifier("auto", random_state=0).fit(X, y)
    table = model.race_.rows()
    assert table[0]["score"] > model.race_.linear.score
    assert model.kernel_.name == model.chosen_["kernel"]
    test = DIGITS[0][400:800], DIGITS[1][400:800]
    named = HistogramClassifier(**{"kernel": "exp-chi2", **clone(model).get_params(), **model.chosen_}).fit(X, y)
    np.testing.assert_array_equal(model.predict(test[0]), named.predict(test[0]))
    assert model.score(*test) > 0.85  # digits of other writers


def test_the_same_seed_gives_the_same_race():
    again, drop = HistogramClassifier("auto", random_state=3).fit(*digits(200)), {"seconds": 0}
    assert [r | drop for r in again.race_.rows()] == [r | drop for r in fit_of_200().race_.rows()]


def test_where_nothing_beats_linear_the_linear_model_is_fitted():
    rng = np.random.default_rng(0)
    X = rng.random((400, 5))
    model = HistogramRegressor("auto", random_state=0).fit(X, X @ [1.0, -2.0, 3.0, 0.5, 0.0])
    assert model.race_.winner.is_baseline
    assert model.kernel_.name == "linear"


def test_a_saved_model_predicts_the_same_and_keeps_its_table(tmp_path):
    X, model = digits(200)[0], fit_of_200()
    model.save(tmp_path / "a.model")
    loaded = load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.race_.rows() == model.race_.rows()


def test_sparse_rows_run_margins_too(monkeypatch):
    monkeypatch.setattr("chimap.race.runner.FEW", 400)
    rng = np.random.default_rng(0)
    X = sp.random(700, 300, density=0.05, random_state=rng, format="csr")
    X.data = np.ceil(5 * X.data)
    y = (X[:, :20].sum(axis=1) > X[:, 20:40].sum(axis=1)).A1.astype(int)
    model = HistogramClassifier("auto", random_state=0).fit(X, y)
    assert any("SVM" in row["name"] for row in model.race_.rows())


@pytest.mark.parametrize(("n_rows", "to_the_end"), [(200, True), (2000, False)])
def test_families_reach_the_last_round_where_few_rows_have_told_them_apart(n_rows, to_the_end, monkeypatch):
    class AskedError(Exception):
        pass

    def run(*given, families_to_the_end, **settings):
        raise AskedError(families_to_the_end)

    monkeypatch.setattr("chimap.race.runner.successive_halving", run)
    X = np.random.default_rng(0).poisson(2.0, (n_rows, 3)).astype(float)
    with pytest.raises(AskedError, match=f"^{to_the_end}$"):
        HistogramClassifier(random_state=0).fit(X, X[:, 0] > X[:, 1])


def test_signed_rows_run_the_kernels_that_take_them():
    names = {entry.kernel for entry in kernels_worth_trying(traits(is_signed=True), 5000)}
    assert names == {"linear", "gaussian"}
    X = np.random.default_rng(0).normal(size=(200, 4))
    model = HistogramClassifier("auto", random_state=0).fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    assert model.kernel_.name == "gaussian"


def test_rows_of_one_sum_are_not_normalised():
    assert all(entry.normalize != "l1" for entry in kernels_worth_trying(traits(has_sums=False), 5000))


def test_rounds_on_few_rows_have_few_candidates_and_baselines_are_among_them():
    few, many = (
        kernels_worth_trying(traits(), most_candidates(50)),
        kernels_worth_trying(traits(), most_candidates(5000)),
    )
    assert len(few) == 3
    assert sum(c.is_baseline for c in few) == 2
    assert len({c.name for c in many}) == len(many) > 15


@pytest.mark.parametrize("rows", [4, 40, 700, 3000])
@pytest.mark.parametrize("grouped", [False, True])
def test_rows_are_held_out_once_and_by_group(rows, grouped):
    y, groups = np.arange(rows) % 2, np.arange(rows) // 2 if grouped else None
    splits = held_out_rows(np.arange(y.size), y, groups, True, seed=0)
    for train, test in splits:
        assert not set(train) & set(test)
        assert grouped is False or not set(groups[train]) & set(groups[test])
    assert rounds_of(splits)[max(rounds_of(splits))] <= len(splits)


def test_groups_are_held_out_together_in_the_fit():
    assert fit_of_200(grouped=True).race_.n_held_out >= 40


def test_auc_leads_where_a_class_is_rare():
    y = np.arange(100) < 5
    assert scoring_of(None, True, y) == "roc_auc"
    assert scoring_of(None, True, np.arange(100) < 40) is None
    assert scoring_of(None, False, y) is None
    X = np.random.default_rng(0).random((300, 3))
    rare = (X[:, 0] > 0.9).astype(int)
    assert HistogramClassifier("auto", random_state=0).fit(X, rare).race_.measure == "roc_auc"


def test_exact_machines_of_many_rows_stay_or_become_landmarks_or_moments():
    asked, listed = (
        Recipe("HistogramClassifier", True),
        {entry.name: entry for entry in kernels_worth_trying(traits(), 5000)},
    )

    def of_all(name, n_rows, n_bins, filled=0, memory="1GiB"):
        recipe = replace(listed[name].candidate(asked).recipe, memory=memory)
        source = source_of(f"{n_rows} x {n_bins}" + f" with {filled} filled" * (filled > 0) + ", 3 classes")
        facts = Facts.of(source, Task.of(source, asked)[0], None, Request(can_keep=True))
        return for_all_rows(recipe, facts, asked, Winner({"gamma": 0.25, "alpha": 1.0}, False, None))

    assert of_all("exp-chi2, l1 rows", 5000, 100).features == "exact"
    assert of_all("exp-chi2, l1 rows", 50_000, 100).features == "exact"
    beyond_memory = of_all("exp-chi2, l1 rows", 50_000, 100, memory="10MiB")
    assert (beyond_memory.features, beyond_memory.gamma) == ("landmarks", 0.25)
    assert of_all("chi2, l1 rows", 50_000, 100).features == "additive"
    wide = of_all("chi2, l1 rows", 50_000, 20_000, 50)
    assert (wide.features, wide.loss, wide.n_terms) == ("additive", "square", 2)


# --- bad input


def test_constant_rows_and_two_rows_a_class():
    X = np.ones((40, 3))
    with pytest.warns(UserWarning, match="candidates of the race could not be fitted and left it"):
        model = HistogramClassifier("auto", random_state=0).fit(X, np.arange(40) % 2)
    assert model.predict(X).shape == (40,)
    assert any(row["error"] for row in model.race_.rows())
    X, y = np.random.default_rng(0).random((20, 4)), np.arange(20) % 10
    assert HistogramClassifier("auto", random_state=0).fit(X, y).predict(X).shape == (20,)


def test_too_few_rows_are_refused():
    with pytest.raises(DataError, match="n_samples = 3 are too few to compare kernels"):
        HistogramClassifier("auto").fit(np.eye(3), [0, 1, 0])


def test_one_group_is_refused():
    X, y = digits(100)
    with pytest.raises(DataError, match="all rows are of one group"):
        HistogramClassifier("auto").fit(X, y, groups=np.zeros(100))


def test_a_scorer_that_raises_is_named():
    def broken(model, X, y):
        raise RuntimeError("no luck")

    X, y = digits(100)
    with pytest.raises(DataError, match="RuntimeError: no luck"):
        HistogramClassifier("auto", scoring=broken).fit(X, y)


def test_trials_tell_their_error_and_what_a_prediction_takes():
    for race in (fit_of_200().race_, fit_of_200(grouped=True).race_):
        for trial in race.history:
            assert 0 < trial.standard_error < 0.2
            assert trial.predict_seconds > 0
        assert {t.candidate.name for t in race.history} == {t.candidate.name for t in race.trials}


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (np.zeros(3), "groups must have one entry for each of the 100 rows"),
        (np.r_[1.0, np.nan, np.ones(98)], "groups, row 1: missing"),
        (np.array(["a", None] * 50, dtype=object), "groups, row 1: missing"),
    ],
)
def test_groups_that_will_not_do_are_named(groups, said):
    X, y = digits(100)
    with pytest.raises(DataError, match=said):
        HistogramClassifier("auto").fit(X, y, groups=groups)


@pytest.mark.filterwarnings("error::RuntimeWarning")  # of the mean score without the only group held out
def test_two_groups_are_enough():
    X, y = digits(100)
    assert HistogramClassifier("auto", random_state=0).fit(X, y, groups=np.arange(100) % 2).race_.n_held_out == 100


def test_a_class_of_one_row_is_scored_by_accuracy():
    X, _ = digits(100)
    model = HistogramClassifier("auto", random_state=0).fit(X, np.arange(100) == 7)
    assert model.race_.measure == "accuracy"


def test_near_duplicates_can_be_fitted():
    rng = np.random.default_rng(0)
    X = (rng.random((2, 300)) < 0.1).astype(float)[np.arange(120) % 2]
    X[np.arange(120), rng.integers(0, 300, 120)] = 1
    y = np.arange(120) % 2
    for rows in (X, sp.csr_matrix(X)):
        assert HistogramClassifier("auto", random_state=0).fit(rows, y).score(rows, y) == 1


def test_seconds_bound_the_race_and_must_be_positive():
    X, y = digits(100)
    model = HistogramClassifier("auto", time_limit=1e-6, random_state=0).fit(X, y)
    assert len(model.race_.trials) == 1
    assert model.bin_weights_ is None
    for limit in (0, "10m"):
        with pytest.raises(ValueError, match="time_limit must be a positive number"):
            HistogramClassifier("auto", time_limit=limit).fit(X, y)


def test_machines_that_fit_one_class_after_the_other_leave_many_classes_out():
    few, many = (kernels_worth_trying(traits(density=0.01, n_classes=n), 5000) for n in (50, 51))
    assert any(one.way.name == "margins" for one in few)
    assert not any(one.way.name == "margins" for one in many)
    assert any(one.is_baseline for one in many)


def test_many_classes_run_margins_on_kernel_matrices():
    def margins(**more):
        return [entry for entry in kernels_worth_trying(traits(**more), 5000) if entry.way.name == "exact margins"]

    assert not margins(n_classes=50)
    listed = margins(n_classes=51)
    assert {c.family for c in listed} == {"exact margins"}
    assert listed[0].kernel == "exp-chi2"
    assert {"linear, sqrt rows, SVM", "linear, raw rows, SVM", "gaussian, log1p rows, SVM"} <= {c.name for c in listed}
    signed = margins(n_classes=51, is_signed=True)
    assert [c.kernel for c in signed] == ["gaussian", "linear"]
    asked = Recipe("HistogramClassifier", True)
    assert [c.candidate(asked).settings.get("gamma") for c in signed] == ["auto", None]
    assert {c.candidate(asked).settings["loss"] for c in signed} == {"squared_hinge"}


def test_margins_that_win_are_fitted(monkeypatch):
    for file in ("candidates", "traits"):
        monkeypatch.setattr(f"chimap.race.{file}.MOST_CLASSES", 9)
    monkeypatch.setattr("chimap.race.runner.FEW", 0)

    def entered(*given):
        return [
            entry for entry in kernels_worth_trying(*given) if entry.way.name == "exact margins" or entry.is_baseline
        ]

    monkeypatch.setattr("chimap.race.choose.kernels_worth_trying", entered)
    X, y = digits(400)
    model = HistogramClassifier(random_state=0).fit(X[:250], y[:250])
    assert model.chosen_["loss"] == "squared_hinge"
    assert model.loss_ == SquaredHinge()
    assert model.race_.winner.name.endswith("SVM")
    assert model.score(X[250:], y[250:]) > 0.8


@pytest.mark.parametrize("given", [{}, {"alpha": [0.1, 1.0]}])
def test_what_the_race_learned_of_many_rows_is_what_is_fitted(given, monkeypatch):
    monkeypatch.setattr("chimap.race.runner.FEW", 0)
    monkeypatch.setattr("chimap.machines.keeps_rows.FEW_ROWS", 100)
    X, y = digits(400)
    model = HistogramClassifier("auto", random_state=0, bin_weights=None, **given).fit(X, y)
    learned = model.race_.trials[0].learned
    assert model.chosen_["features"] == "exact"
    assert ("alpha" in model.chosen_) is (not given)
    if not given:
        assert (model.alpha_, model.kernel_.gamma) == (learned["alpha"], learned["gamma"])
        assert len(model.selection_.table()) == 1


def without_room(monkeypatch, landmarks):
    """Digits on which an exponential kernel wins, for a fit that may not keep all rows."""
    monkeypatch.setattr("chimap.race.runner.FEW", 0)
    monkeypatch.setattr("chimap.machines.keeps_rows.MOST_ROWS", 100)
    monkeypatch.setattr(BlockPlan, "fits", lambda *given: False)
    monkeypatch.setattr("chimap.race.choose.landmarks_of", lambda n_rows: landmarks)
    return HistogramClassifier("auto", bin_weights=None, random_state=0).fit(*digits(400))


def test_landmarks_are_rehearsed_before_they_win(monkeypatch):
    model = without_room(monkeypatch, 200)
    winner = model.race_.trials[0]
    assert winner.candidate.name.endswith("200 landmarks")
    assert model.chosen_["features"] == "landmarks"
    assert "n_components" not in model.chosen_
    assert winner in model.race_.history
    assert winner.candidate.name.split(", 200")[0] not in [t.candidate.name for t in model.race_.trials]


def test_landmarks_that_fall_behind_do_not_win(monkeypatch):
    model = without_room(monkeypatch, 2)
    assert model.chosen_["features"] == "additive"
    assert any("2 landmarks" in row["name"] for row in model.race_.rows())


def test_landmarks_that_are_ahead_by_chance_do_not_win(monkeypatch):
    monkeypatch.setattr("chimap.race.choose.standard_error", lambda deviations: 1.0)
    model = without_room(monkeypatch, 200)
    assert model.chosen_["features"] == "additive"
    best = max(row["score"] for row in model.race_.rows())
    assert any("200 landmarks" in row["name"] and row["score"] == best for row in model.race_.rows())


def test_work_bounds_the_race_where_no_seconds_are_given(monkeypatch):
    monkeypatch.setattr("chimap.race.runner.MOST_SECONDS", 1e-9)
    X, y = digits(100)
    model = HistogramClassifier("auto", random_state=0, bin_weights=None).fit(X, y)
    assert len(model.race_.trials) == 1


@pytest.mark.parametrize("settings", [{"features": "landmarks", "n_components": 20}, {"blocks": [[0, 1, 2], [3, 4]]}])
def test_work_bounds_a_race_of_separate_fits_too(settings, monkeypatch):
    X, y = digits(100)
    X = X[:, 10:20]
    model = HistogramClassifier("auto", random_state=0, bin_weights=None, **settings)
    recipe = Recipe.of(model)
    task, source, groups = Task.of(ArraySource(X, y), recipe)
    running = [Race.on(recipe, source, task, groups, fit_candidate) for _ in range(2)]
    for entered in running:
        entered(Candidate("exp-chi2", ASKED.with_raced(kernel="exp-chi2", normalize=None)), min(entered.splits_of))
    assert running[0].work == running[1].work > 0
    assert len(clone(model).fit(X, y).race_.trials) > 1
    monkeypatch.setattr("chimap.race.runner.MOST_SECONDS", 1e-9)
    assert len(model.fit(X, y).race_.trials) == 1


def test_a_race_of_separate_fits_reaches_its_last_round_within_the_limit(monkeypatch):
    X, y = digits(200)
    blocks = [slice(0, 32), slice(32, 64)]
    model = HistogramClassifier("auto", random_state=0, bin_weights=None, blocks=blocks)
    fits: list[float] = []

    def counted(fitted, rows):
        fits.append(work_of_fit(fitted, rows))
        return fits[-1]

    monkeypatch.setattr("chimap.race.runner.work_of_fit", counted)
    whole, total = clone(model).fit(X, y).race_, sum(fits)
    monkeypatch.setattr("chimap.race.runner.MOST_SECONDS", 0.7 * total)
    fits.clear()
    short = clone(model).fit(X, y).race_
    assert sum(fits) < 0.8 * total
    assert len(short.history) < len(whole.history)
    assert max(t.round for t in short.history) == max(t.round for t in whole.history) == 2
    again = clone(model).fit(X, y).race_
    assert [(t.candidate.name, t.round, t.score) for t in again.history] == [
        (t.candidate.name, t.round, t.score) for t in short.history
    ]


FITS = {
    "blocks": {"blocks": [slice(0, 32), slice(32, 64)]},
    "landmarks": {"features": "landmarks"},
    "fourier": {"features": "fourier", "n_components": 64},
    "hinge": {"kernel": "chi2", "loss": "hinge"},
    # at a given strength: few rows may ask for weaker ones, which take more passes
    "logistic": {"features": "landmarks", "n_components": 50, "loss": "logistic", "alpha": 0.1},
    "a given strength": {"kernel": "chi2", "alpha": 0.1, "features": "additive"},
}


@pytest.mark.parametrize("settings", FITS.values(), ids=FITS)
def test_work_of_a_fit_grows_with_its_rows_and_is_always_the_same(settings):
    def work(n_rows: int) -> float:
        X, y = digits(n_rows)
        model = HistogramClassifier(**{"kernel": "exp-chi2", "random_state": 0} | settings)
        return work_of_fit(model.fit(X, y).fitted, X)

    assert 0 < work(100) == work(100) < work(400)


def test_work_of_sparse_rows_counts_their_entries():
    X, y = digits(200)
    rows = np.zeros((200, 20_000), dtype=np.float32)
    rows[:, :64] = X
    model = HistogramClassifier("gaussian", features="exact", random_state=0)
    fitted = model.fit(sp.csr_matrix(rows), y).fitted
    assert work_of_fit(fitted, sp.csr_matrix(rows)) < work_of_fit(fitted, rows)


def test_a_fit_at_the_strength_of_the_race_calibrates_on_some_of_many_rows(monkeypatch):
    for module in ("machines.keeps_rows", "selection.leave_one_out"):
        monkeypatch.setattr(f"chimap.{module}.FEW_ROWS", 200)
    X, y = digits(400)
    model = HistogramClassifier("auto", random_state=0, bin_weights=None).fit(X, y)
    assert np.isnan(model.held_out_).all(axis=1).sum() == 200
    rows, labels = DIGITS[0][400:800], DIGITS[1][400:800]
    assert abs(model.predict_proba(rows).max(axis=1).mean() - model.score(rows, labels)) < 0.1


def test_the_last_round_scores_more_rows_than_those_before():
    splits = held_out_rows(np.arange(10_000), np.arange(10_000) % 2, None, True, seed=0)
    rounds = rounds_of(splits)
    assert list(rounds) == [750, 1500, 3000]
    sizes = [[(train.size, test.size) for train, test in rows_of_round(splits, rounds, n)] for n in rounds]
    assert sizes == [[(750, 2000)], [(1500, 2000)], [(3000, 4000)]]


def test_rows_with_labels_of_several_tasks_are_scored_by_half_as_many():
    (train, test), *_ = held_out_rows(np.arange(10_000), np.zeros((10_000, 3)), None, True, seed=0)
    assert (train.size, test.size) == (8000, 2000)


def test_kernels_that_are_much_alike_are_of_one_family():
    listed = kernels_worth_trying(traits(density=0.01), 5000)
    of = {c.name: c.family for c in listed}
    assert of["exp-chi2, l1 rows"] == of["exp-intersection, l1 rows"] != of["exp-chi2, raw rows"]
    assert of["chi2, raw rows"] == of["intersection, raw rows"] != of["exp-chi2, raw rows"]
    assert of["linear SVM, raw rows"] == of["chi2, l1 rows, SVM"]
    assert of["gaussian, raw rows"] != of["gaussian, log1p rows"]
    assert {c.way.name for c in listed if c.is_baseline} == {"ridge"}


def test_weights_that_lose_on_fewer_rows_are_not_learned_on_all(monkeypatch):
    monkeypatch.setattr("chimap.race.rows.ROUNDS", (100, 200, 400))
    monkeypatch.setattr("chimap.race.runner.ROUNDS", (100, 200, 400))
    monkeypatch.setattr("chimap.race.bins.ROUNDS", (100, 200, 400))
    monkeypatch.setattr("chimap.race.rows.FEW", 600)
    monkeypatch.setattr("chimap.race.runner.FEW", 600)
    X, y = digits(1000)
    gains = {200: -0.1, 400: 0.1}

    def weigh(bins, weights, n_rows):
        score = 0.5 + gains[n_rows] * (weights[0, 0] > 1)
        tried.append(n_rows)
        return Outcome(score, {}, (0.0,)), lambda: 2 * weights

    monkeypatch.setattr("chimap.race.bins.WeighedBins.weigh", weigh)
    for wanted, last in (({200}, 1), ({200, 400}, 2)):
        tried: list[int] = []
        race = HistogramClassifier("auto", random_state=0).fit(X, y).race_
        assert set(tried) == wanted
        (bins,) = [t for t in race.trials if "learned bins" in t.candidate.name]
        assert (bins.round, bins.n_rows) == (last, max(wanted))
        assert all(a.round >= b.round or a.error for a, b in zip(race.trials, race.trials[1:], strict=False))
        gains[200] = 0.1


def test_the_winner_of_many_rows_is_looked_at_again(monkeypatch):
    monkeypatch.setattr("chimap.race.rows.ROUNDS", (100, 200, 400))
    monkeypatch.setattr("chimap.race.rows.FEW", 600)
    monkeypatch.setattr("chimap.race.runner.FEW", 600)
    X, y = digits(1000)
    race = HistogramClassifier("auto", random_state=0, bin_weights=None).fit(X, y).race_
    *before, again = [t for t in race.history if t.candidate.name == race.winner.name]
    assert (again.round, again.n_rows, again is race.trials[0]) == (2, 400, True)
    assert again.score >= before[-1].score
    assert before[-1].n_rows == 400
    assert before[1].learned["alpha"] == pytest.approx(before[0].learned["alpha"], rel=0.2)  # at one setting


SPECIES = np.random.default_rng(5).lognormal(0, 3, (90, 25)) * (np.random.default_rng(6).random((90, 25)) < 0.5)
SPECIES = np.ceil(20 * SPECIES)
SHARES = SPECIES / np.maximum(SPECIES.sum(axis=1, keepdims=True), 1)
CLADE = SHARES[:, np.argsort(SHARES.mean(axis=0))[:15]]  # of the bins that hold least, as one clade or a panel
CLADE = CLADE[(CLADE > 0).sum(axis=1) > 2]
CLADE *= 0.2 / CLADE.sum(axis=1).max()


@cache
def fit_of_species():
    """The race for the samples that have a species."""
    return HistogramClassifier(random_state=0, bin_weights=None).fit(SPECIES, (SPECIES[:, 3] > 0).astype(int))


def test_few_rows_have_one_round_in_which_all_candidates_learn_from_all_rows():
    race = fit_of_species().race_
    assert {(trial.round, trial.n_rows) for trial in race.history} == {(0, 90)}
    assert race.n_held_out == 90
    assert race.measure == "roc_auc"
    kernels = {(t.candidate.settings["kernel"], t.candidate.settings["normalize"]) for t in race.trials}
    assert {("minmax", "log-cpm"), ("exp-hellinger", "log-cp10k"), ("linear", "presence"), ("chi2", "l1")} <= kernels
    assert {t.candidate.settings["loss"] for t in race.trials} == {"square"}


def test_what_few_rows_learned_is_what_is_fitted():
    model, y = fit_of_species(), (SPECIES[:, 3] > 0).astype(int)
    assert model.alpha_ == pytest.approx(model.race_.trials[0].learned["alpha"])
    assert len(model.selection_.table()) == 1
    given = HistogramClassifier(random_state=0, bin_weights=None, alpha=[0.1, 1.0]).fit(SPECIES, y)
    assert given.alpha_ in (0.1, 1.0)
    assert "alpha" not in given.chosen_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_of_noise_are_told_from_others(n_classes):
    rng = np.random.default_rng(7)
    expected = [
        HistogramClassifier(random_state=0, bin_weights=None)
        .fit(SPECIES, rng.permutation(90) % n_classes)
        .race_.expected
        for _ in range(4)
    ]
    means = np.array([score for score, _ in expected])
    errors = np.array([error for _, error in expected])
    assert abs(means.mean() - 1 / n_classes) < 0.1
    assert (abs(means - 1 / n_classes) < 2.26 * errors).sum() >= 3  # Student's t with 9 degrees of freedom
    assert fit_of_species().race_.expected[0] > 0.8


def race_of(X, y):
    """A race of all candidates that suit few rows, and its result."""
    recipe = Recipe.of(HistogramClassifier(random_state=0))
    task, source, groups = Task.of(ArraySource(X, y), recipe)
    running = Race.on(recipe, source, task, groups, fit_candidate)
    names = [spec.candidate(recipe) for spec in kernels_worth_trying(running.traits)]
    return running, running.judged(running.run(names, Progress()), [candidate.name for candidate in names])


def test_of_many_classes_the_best_accuracy_wins_at_the_strength_of_the_least_error():
    running, result = race_of(*digits(200))
    assert result.trials[0].score == max(trial.score for trial in result.trials)
    differ = 0
    for trial in result.trials[:5]:
        by_error, by_score = (
            running.shared.best_left_out(trial.candidate.recipe, running.left_out, None, by_error=by_error)
            for by_error in (True, False)
        )
        error = {id(tried.outputs): tried.error for tried in by_error.tried}
        least, of_best = error[id(by_error.outputs)], running.best[trial.candidate.name]
        assert least <= 1.001 * min(error.values())
        assert of_best == by_error.setting or trial.score >= by_error.score  # the climb began elsewhere
        differ += by_error.setting != by_score.setting
    assert differ > 0


def race_on(y, **settings):
    recipe = Recipe.of(HistogramClassifier(random_state=0, **settings))
    task, source, groups = Task.of(ArraySource(SPECIES, y), recipe)
    return Race.on(recipe, source, task, groups, fit_candidate)


def test_a_score_of_many_classes_that_is_asked_for_chooses_the_strength_too():
    """Errors are mostly those of a large class, and may choose a strength that predicts no other."""
    two, four = np.arange(90) % 2, np.arange(90) % 4
    assert race_on(two).by_error
    assert race_on(two, scoring="balanced_accuracy").by_error
    assert race_on(four).by_error
    assert not race_on(four, scoring="balanced_accuracy").by_error


def test_groups_of_few_rows_are_left_out_together():
    rng = np.random.default_rng(9)
    persons = np.arange(90) // 3
    rows, y = np.repeat(SPECIES[:30], 3, axis=0), np.repeat(rng.permutation(30) % 2, 3)
    with pytest.warns(UserWarning, match="90 of 90 rows have an identical copy"):
        seen = HistogramClassifier(random_state=0, bin_weights=None).fit(rows, y)
    assert seen.race_.trials[0].score > 0.9
    held = HistogramClassifier(random_state=0, bin_weights=None).fit(rows, y, groups=persons)
    assert held.race_.n_repeated == 0
    assert held.race_.trials[0].score < 0.75


def test_rows_that_repeat_are_counted():
    rows = np.array([[1.0, 0], [0, 1], [1, 0], [1, 1], [1, 0]])
    assert n_repeated(rows, None) == n_repeated(sp.csr_matrix(rows), None) == 3
    assert n_repeated(rows, np.array([0, 1, 0, 2, 0])) == 0
    assert n_repeated(rows, np.array([0, 1, 0, 2, 3])) == 3


@pytest.mark.parametrize(
    ("rows", "has"),
    [
        (SPECIES, {"log_shares": True, "presence": True, "words": False}),
        (100 * SHARES, {"log_shares": True, "presence": True}),
        (SHARES[:, :20], {"log_shares": True}),  # not all of 1
        *((total * CLADE, {"log_shares": True, "presence": True}) for total in (1, 100)),
        (CLADE / CLADE.max(), {"log_shares": False}),  # scaled: the total of 100 that rows keep to suits no entry
        (10 * np.sqrt(CLADE), {"log_shares": False}),  # without a tail, these may be measurements of any kind
        (0.03 * np.exp(-np.linspace(0, 9, 60)) * (1 + CLADE[:, :1]), {"log_shares": False}),  # a spectrum has no zeros
        (CLADE / np.sqrt(np.square(CLADE).sum(axis=1, keepdims=True)), {"log_shares": False}),  # as of tf-idf
        (np.log1p(SPECIES), {"log_shares": False, "presence": False}),
        (SPECIES - 1, {"log_shares": False, "presence": False, "words": False}),
        (np.ceil(SPECIES) + 1, {"log_shares": True, "presence": False}),
        (sp.random(90, 400, 0.02, "csr", random_state=0).ceil() * 3, {"words": True}),
    ],
)
def test_what_a_table_is_decides_what_enters(rows, has):
    looked = SampleTraits.of(rows, 2, is_few=True)
    assert {name: getattr(looked, f"has_{name}") for name in has} == has


def test_many_rows_pay_for_logarithms_of_shares_only_where_entries_have_a_long_tail():
    words = traits(is_counted=True, density=0.01, n_bins=10_000)
    names = {(entry.kernel, entry.normalize) for entry in kernels_worth_trying(words)}
    assert ("gaussian", "tf-idf") in names
    assert not any(normalize in ("log-cpm", "presence") for _, normalize in names)
    species = traits(is_counted=True, has_tail=True, density=0.3, n_bins=500)
    assert ("exp-hellinger", "log-cpm") in {(entry.kernel, entry.normalize) for entry in kernels_worth_trying(species)}


@pytest.mark.parametrize("density", [0.2, 1.0])
def test_a_table_has_one_winner_however_it_is_stored(density):
    rng = np.random.default_rng(0)
    profiles, y = rng.gamma(0.3, size=(3, 40)), rng.integers(3, size=100)
    X = rng.poisson(2 * density * profiles[y] * rng.gamma(2, 1, (100, 1))).astype(np.float32)
    X[X.sum(axis=1) == 0, 0] = 1
    dense, sparse = (HistogramClassifier(random_state=0).fit(form(X), y) for form in (np.asarray, sp.csr_matrix))
    scores = [[row["score"] for row in model.race_.rows()] for model in (dense, sparse)]
    np.testing.assert_allclose(*scores, atol=1e-6)
    assert dense.describe()["kernel"] == sparse.describe()["kernel"]
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(X))
