"""The race told in full: who runs, on which rows, what is recommended and what it becomes on all rows."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, HistogramRegressor
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import ArraySource
from chimap.machines import blocks, matrix
from chimap.machines.block_plan import BlockPlan
from chimap.race.candidates import HISTOGRAM_KERNELS, candidates_of_kernel, features_of_kernel, kernels_worth_trying
from chimap.race.compare import seconds_of_exact, seconds_of_pass
from chimap.race.traits import SampleTraits
from chimap.recipe import Recipe
from chimap.reports import compare
from tests.histograms import classes, tracks

X, y = classes(300, 12)
COUNTS = np.round(50 * X)
ASKED = Recipe("HistogramClassifier", True)


def traits(**more):
    usual = {"is_signed": False, "density": 0.5, "has_sums": True, "has_counts": True, "n_classes": 3}
    return SampleTraits(**(usual | more))


def model(**given):
    return HistogramClassifier(random_state=0, **given)


@pytest.fixture(scope="module")
def raced():
    return compare(model(), ArraySource(COUNTS, y))


@pytest.fixture(scope="module")
def of_one():
    return compare(model(), ArraySource(sp.csr_matrix(COUNTS), y), kernel="exp-chi2", sizes=[32, 64])


def test_every_kernel_and_normalisation_runs_however_few_the_rows(raced):
    kernels = {e.settings["kernel"] for e in raced.ranked}
    assert {*HISTOGRAM_KERNELS, *(f"exp-{k}" for k in HISTOGRAM_KERNELS), "gaussian", "linear"} <= kernels
    assert len(raced.ranked) == len(kernels_worth_trying(SampleTraits.of(COUNTS, 3, is_few=True)))
    assert {e.settings["normalize"] for e in raced.ranked} >= {None, "l1", "log1p", "sqrt", "log-cpm"}


def test_rivals_learn_from_the_same_rows_and_are_scored_on_the_same(raced):
    last = raced.finalists
    assert sum(e.is_linear for e in last) == 2
    assert len({e.last.n_rows for e in last}) == 1
    assert raced.n_held_out == 300
    for e in raced.ranked:
        assert len(e.deviations) >= 10
        assert e.last.predict_seconds > 0
    rounds = [run.n_rows for run in last[0].runs]
    assert rounds == sorted(rounds)
    assert rounds == [300]  # few rows are left out of machines of all of them


def test_the_recommended_settings_are_those_of_a_fit(raced):
    advice = raced.recommendation
    settings = advice.chosen.fit_settings
    fitted = model(**settings).fit(COUNTS, y)
    assert fitted.score(COUNTS, y) > 0.8
    assert raced.fit_seconds[advice.chosen.name] > 0
    assert "all 300 rows" in raced.time_words


def test_a_named_kernel_has_its_exact_machine_beside_its_features(of_one):
    methods = {e.method for e in of_one.ranked if not e.is_linear}
    assert methods == {"exact", "32 landmarks", "64 landmarks", "32 random features", "64 random features"}
    assert {e.settings["kernel"] for e in of_one.ranked if not e.is_linear} == {"exp-chi2"}
    assert any(e.is_linear for e in of_one.finalists)
    exact = next(e for e in of_one.finalists if e.method == "exact")
    features = [e for e in of_one.finalists if e.method not in ("exact", "ridge", "SVM")]
    assert {e.last.n_rows for e in features} == {exact.last.n_rows}
    assert {e.settings["gamma"] for e in features} == {features[0].settings["gamma"]}
    assert exact.settings["gamma"] == "auto"


@pytest.mark.parametrize(
    ("kernel", "more", "expected"),
    [
        ("chi2", {}, {"additive"}),
        ("chi2", {"density": 0.01}, {"additive", "SVM"}),
        ("gaussian", {}, {"64 landmarks", "64 fourier"}),
        ("skewed-chi2", {}, {"64 landmarks", "64 fourier"}),
        ("minmax", {}, {"64 landmarks"}),
    ],
)
def test_features_of_each_kind_of_kernel(kernel, more, expected):
    listed = candidates_of_kernel(ASKED, kernel, "auto", traits(**more))
    exact = [c for c in listed if not c.is_baseline]
    found = features_of_kernel(ASKED, exact[0], {"alpha": 1.0, "gamma": 2.0}, traits(**more), [64, 10_000], 3000)
    assert {c.name.rpartition(", ")[2] for c in found} - {"10,000 fourier", "fourier 10,000"} == {
        " ".join(reversed(word.split())) for word in expected
    }
    assert not any(c.settings["features"] == "landmarks" and c.settings["n_components"] > 3000 for c in found)
    assert all("gamma" not in c.settings or c.settings["gamma"] == 2.0 for c in found)


def test_normalisations_are_those_that_suit_the_rows():
    def tried(kernel, normalize=None, **more):
        listed = candidates_of_kernel(ASKED, kernel, 1.0, traits(**more), normalize)
        return [c.settings["normalize"] for c in listed if not c.is_baseline]

    assert tried("exp-chi2") == [None, "l1"]
    assert tried("exp-chi2", has_sums=False) == [None]
    assert tried("gaussian") == [None, "log1p"]
    assert tried("gaussian", has_counts=False) == [None]
    assert tried("gaussian", is_signed=True) == [None]
    assert tried("chi2", "sqrt") == ["sqrt"]


def test_many_rows_are_told_what_they_will_be_fitted_with(monkeypatch):
    for module in (matrix, blocks):
        monkeypatch.setattr(module, "holds_matrix", lambda *given: False)
    monkeypatch.setattr(BlockPlan, "fits", lambda *given: False)
    monkeypatch.setattr("chimap.race.compare.landmarks_of", lambda n: 40)
    found = compare(model(), ArraySource(X, y), kernel="exp-chi2", sizes=[16])
    exact = [e for e in found.finalists if e.method == "exact"]
    final = next(e for e in found.finalists if e.method == "40 landmarks")
    assert all(not e.fits for e in exact)
    assert final.fits
    assert "n_components" not in final.fit_settings  # a fit finds as many as its rows and its memory ask for
    assert found.recommendation.chosen.fits
    assert final.last.n_rows == exact[0].last.n_rows


def test_groups_are_held_out_together():
    rows, labels, groups = tracks(20, 6, 8)
    alone = compare(model(), ArraySource(rows, labels), kernel="exp-chi2", sizes=[16])
    together = compare(model(), ArraySource(rows, labels), kernel="exp-chi2", sizes=[16], groups=groups)
    assert together.data["groups"] == 20
    best = [c.recommendation.best.last for c in (alone, together)]
    assert best[0].score > best[1].score + 0.1
    assert best[1].standard_error > best[0].standard_error


def test_columns_with_names_are_nothing_to_warn_of():
    named = ArraySource(COUNTS, y, column_names=[f"bin {i}" for i in range(COUNTS.shape[1])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare(model(), named, kernel="exp-chi2", sizes=[16])
    assert len(found.entrants) > 1


def test_numbers_for_labels():
    target = np.sqrt(X[:, 0]) + X[:, 3]
    found = compare(HistogramRegressor(random_state=0), ArraySource(X, target), kernel="chi2")
    assert (found.metric, found.floor) == ("R²", 0.0)
    assert found.recommendation.chosen.last.score > 0.9


def test_another_score_leads():
    found = compare(model(scoring="balanced_accuracy"), ArraySource(X, y), kernel="chi2")
    assert found.measure == "balanced_accuracy"
    assert found.floor is None


def test_same_seed_same_scores(of_one):
    again = compare(model(), ArraySource(sp.csr_matrix(COUNTS), y), kernel="exp-chi2", sizes=[32, 64])
    scores = [[(e.name, run.score) for e in c.entrants for run in e.runs] for c in (of_one, again)]
    assert scores[0] == scores[1]


def test_json_is_plain(raced):
    back = json.loads(json.dumps(raced.as_dict(), allow_nan=False))
    assert back["recommendation"]["sentence"] == raced.recommendation.sentence
    assert [e["name"] for e in back["entrants"]] == [e.name for e in raced.ranked]


def test_seconds_of_an_exact_machine_grow_by_a_power_between_two_fits():
    assert seconds_of_exact([(1000, 2.0)], 800) == 2.0
    assert seconds_of_exact([(1000, 2.0)], 2000) == 8.0
    assert seconds_of_exact([(1000, 1.0), (2000, 4.0)], 8000) == pytest.approx(64.0)
    assert seconds_of_exact([(1000, 3.0), (2000, 2.0)], 4000) == 4.0  # noise: never less than by the rows


def test_seconds_of_a_pass_grow_where_rows_are_read():
    sums = {"map": 1.0, "features": 2.0, "moments": 1.0, "choose alpha": 5.0}
    assert seconds_of_pass(sums, 1000, 1000) == 9.0
    assert seconds_of_pass(sums, 1000, 3000) == 15.0
    assert seconds_of_pass(sums, 1000, 10) == 9.0
    assert seconds_of_pass({"features": 1.0, "choose alpha": 2.0, "solve": 1.0}, 1000, 3000) == 12.0


def test_margins_of_very_many_classes_are_left_out():
    rows = sp.random(360, 200, 0.05, format="csr", random_state=0)
    labels = np.arange(360) % 60
    rows = sp.csr_matrix(rows + sp.csr_matrix((np.full(360, 3.0), (np.arange(360), labels)), shape=rows.shape))
    found = compare(model(), ArraySource(rows, labels), kernel="chi2")
    assert not any(e.method == "SVM" for e in found.entrants)
    assert any(e.is_linear for e in found.finalists)


@pytest.mark.parametrize(
    ("source", "given", "error", "message"),
    [
        (ArraySource(X), {}, DataError, "array has no labels"),
        (ArraySource(X, y), {"kernel": "rbf"}, ValueError, "kernel must be one of"),
        (ArraySource(X[:3], [0, 1, 0]), {}, DataError, "3 are too few to compare kernels"),
        (ArraySource(-X, y), {"kernel": "chi2"}, None, "pass"),
    ],
)
def test_bad_input(source, given, error, message):
    if error is None:  # a kernel that refuses the rows leaves with its reason; the linear machine stays
        found = compare(model(), source, **given)
        assert found.recommendation.chosen.is_linear
        assert found.failed[0].error
        return
    with pytest.raises(error, match=message):
        compare(model(), source, **given)


def test_one_group_and_too_little_memory():
    with pytest.raises(DataError, match="all rows are of one group"):
        compare(model(), ArraySource(X, y), groups=np.zeros(300))
    with pytest.raises(MemoryBudgetError, match=r"the kernel matrix of \d+ rows needs .*Give memory='"):
        compare(model(memory="300KiB"), ArraySource(X, y))
