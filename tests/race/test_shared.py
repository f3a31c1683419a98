"""Machines of the race: those that the estimators fit, at the settings that score best."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from chimap import HistogramClassifier, HistogramRegressor
from chimap._validation import DataError
from chimap.features.additive import OptimalMap
from chimap.features.exact import ExactFeatures
from chimap.race.machines import KernelMachine, MappedRows, Products
from chimap.race.shared import Search, SharedMachines
from chimap.recipe import Recipe
from chimap.recipe.codecs import ClassCodec, RealCodec

X, LABELS = load_digits(return_X_y=True)
X, LABELS = X[:240], LABELS[:240]
SPLIT = np.arange(160), np.arange(160, 240)


def trials(y=LABELS, rows=X, alphas=None, codec=ClassCodec, scoring=None, dtype="float64", n_terms=2, weights=None):
    codec = codec.of(y)
    asked = Recipe("HistogramClassifier", True, precision=dtype, alpha=alphas or "auto", n_terms=n_terms)
    return SharedMachines(rows, y, codec, codec.score(y, scoring, weights), weights, asked)


def settings(kernel, normalize=None, features="exact", loss="square", **more):
    """The recipe of a candidate."""
    return Recipe("HistogramClassifier", True, n_terms=2).with_raced(
        kernel=kernel, normalize=normalize, features=features, loss=loss, **more
    )


@pytest.mark.parametrize("normalize", [None, "l1"])
@pytest.mark.parametrize("kernel", ["chi2", "exp-jensen_shannon", "gaussian", "linear"])
@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_a_machine_is_the_exact_one_of_the_estimator(kernel, normalize, as_rows):
    rows, (train, test) = as_rows(X), SPLIT
    given = {"gamma": 0.01} if kernel in ("exp-jensen_shannon", "gaussian") else {}
    found = trials(rows=rows, alphas=[0.3]).best(settings(kernel, normalize, **given), [SPLIT], None)
    model = HistogramClassifier(
        kernel, normalize=normalize, features="exact", alpha=0.3, precision="float64", random_state=0, **given
    ).fit(rows[train], LABELS[train])
    # the map is fitted on all rows of the sample here, on those to learn from there
    np.testing.assert_allclose(found.outputs[0], model.decision_function(rows[test]), atol=2e-2)
    assert found.alpha == 0.3
    assert found.gamma == (given["gamma"] if given else None)


@pytest.mark.parametrize("factor", [1.0, 1e-12])
def test_gamma_is_that_of_rows_as_they_come(factor):
    found = trials(rows=X * factor).best(settings("exp-chi2", gamma="auto"), [SPLIT], None)
    train, test = (X[rows] * factor for rows in SPLIT)
    model = HistogramClassifier("exp-chi2", gamma=found.gamma, alpha=found.alpha, features="exact", precision="float64")
    outputs = model.fit(train, LABELS[SPLIT[0]]).decision_function(test)
    np.testing.assert_allclose(outputs, found.outputs[0], atol=2e-2)


def test_the_strength_of_the_best_score_is_taken_and_of_equal_scores_the_smaller_error():
    alphas = [0.001, 0.1, 10.0, 1000.0]
    one = {a: trials(alphas=[a]).best(settings("exp-chi2"), [SPLIT], None) for a in alphas}
    best = trials(alphas=alphas).best(settings("exp-chi2"), [SPLIT], None)
    assert best.score == max(found.score for found in one.values())
    np.testing.assert_allclose(best.outputs[0], one[best.alpha].outputs[0])


def test_gamma_is_chosen_where_it_is_left_open():
    fixed = trials().best(settings("gaussian"), [SPLIT], None)
    free = trials().best(settings("gaussian", gamma="auto"), [SPLIT], None)
    assert free.score >= fixed.score
    assert np.log2(free.gamma / fixed.gamma) == pytest.approx(free.setting[1])


def test_a_search_from_the_best_setting_stays_there():
    t = trials()
    found = t.best(settings("exp-chi2", gamma="auto"), [SPLIT], None)
    again = t.best(settings("exp-chi2", gamma="auto"), [SPLIT], found.setting)
    assert again.setting == found.setting


def test_the_score_is_the_mean_over_the_splits():
    splits = [SPLIT, (np.arange(80, 240), np.arange(80))]
    found = trials(alphas=[1.0]).best(settings("chi2"), splits, None)
    each = [trials(alphas=[1.0]).best(settings("chi2"), [split], None).score for split in splits]
    assert found.score == pytest.approx(np.mean(each))


@pytest.mark.parametrize(
    "given", [settings("exp-chi2", gamma=0.01), settings("chi2", features="additive", loss="hinge")]
)
def test_a_weight_of_two_is_a_row_twice(given):
    counts = np.arange(240) % 3 + 1
    twice = np.repeat(np.arange(240), counts)
    split = tuple(np.flatnonzero(np.isin(twice, part)) for part in SPLIT)
    weighted = trials(weights=counts.astype(float), alphas=[3.0]).best(given, [SPLIT], None)
    repeated = trials(LABELS[twice], X[twice], alphas=[3.0]).best(given, [split], None)
    assert weighted.score == pytest.approx(repeated.score, abs=0.02)
    np.testing.assert_allclose(repeated.outputs[0], np.repeat(weighted.outputs[0], counts[160:], axis=0), atol=0.1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_margins_are_those_of_liblinear(loss):
    rows = sp.csr_matrix(X)
    given = settings("linear", "sqrt", features="additive", loss=loss)
    found = trials(rows=rows, alphas=[5.0]).best(given, [SPLIT], None)
    train, test = (rows[part].sqrt() for part in SPLIT)
    svm = LinearSVC(loss=loss, C=1 / 5.0, max_iter=10_000, random_state=0).fit(train, LABELS[SPLIT[0]])
    np.testing.assert_allclose(found.outputs[0], svm.decision_function(test), atol=0.1)


def test_targets_that_are_numbers_are_scored_by_r2():
    y = np.sqrt(X[:, 20]) + X[:, 30]
    found = trials(y, codec=RealCodec).best(settings("exp-chi2", "l1", gamma="auto"), [SPLIT], None)
    model = HistogramRegressor("exp-chi2", normalize="l1", gamma=found.gamma, alpha=found.alpha, features="exact")
    assert found.score == pytest.approx(model.fit(X[:160], y[:160]).score(X[160:], y[160:]), abs=1e-2)


def test_what_is_tried_here():
    assert SharedMachines.takes(settings("exp-chi2"))
    assert SharedMachines.takes(settings("chi2", features="additive", loss="hinge"))
    assert not SharedMachines.takes(settings("chi2", features="additive"))
    assert SharedMachines.takes(settings("pq"))
    assert SharedMachines.weighs(settings("exp-chi2"))
    assert not SharedMachines.weighs(settings("pq"))
    assert not SharedMachines.takes(settings("exp-chi2", features="landmarks"))


def test_rows_that_will_not_do_are_named():
    rows = X.copy()
    rows[7, 3] = np.nan
    with pytest.raises(DataError, match="row 7"):
        trials(rows=rows).best(settings("chi2"), [SPLIT], None)
    with pytest.raises(DataError, match="all rows are equal"):
        trials(rows=np.ones_like(X)).best(settings("exp-chi2"), [SPLIT], None)
    y = np.where(np.arange(240) < 160, LABELS % 2, 0)  # one class among the rows to score: it has no AUC
    with pytest.raises(DataError, match="none of the strengths has a score"):
        trials(y, scoring="roc_auc").best(settings("chi2"), [SPLIT], None)


def test_a_search_that_is_not_worth_its_work_stays_where_it_starts():
    t, told = trials(), []

    def searches_on(score, outputs):
        told.append((score, outputs[0].shape))
        return False

    given = settings("exp-chi2", gamma="auto")
    found = t.best(given, [SPLIT], (-4, 1), searches_on)
    assert found.setting == (-4, 1)
    assert told == [(found.score, (80, 10))]
    assert t.best(given, [SPLIT], (-4, 1)).score >= found.score


def test_machines_of_one_kernel_normalisation_and_split_share_their_products(monkeypatch):
    made = []
    monkeypatch.setattr(Products, "of", lambda rows, split, of=Products.of: made.append(split) or of(rows, split))
    t, fewer = trials(), (SPLIT[0][:80], SPLIT[1])
    other = SPLIT[0], SPLIT[1][:40]
    for given, split, n_made in [
        (settings("chi2"), SPLIT, 1),
        (settings("exp-chi2", gamma="auto"), SPLIT, 1),
        (settings("chi2", "l1"), SPLIT, 2),
        (settings("chi2"), SPLIT, 3),
        (settings("chi2"), fewer, 4),
        (settings("chi2"), other, 5),
        (settings("chi2", bin_weights=np.ones(64)), other, 6),
    ]:
        t.best(given, [split], None)
        assert len(made) == n_made
    t.let_go()
    t.best(settings("chi2", bin_weights=np.ones(64)), [other], None)
    assert len(made) == 7


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_rows_to_score_are_mapped_some_at_a_time_with_the_same_answers(as_rows, monkeypatch):
    given = settings("exp-chi2", gamma="auto")
    whole = trials(rows=as_rows(X)).best(given, [SPLIT], None)
    monkeypatch.setattr("chimap.race.machines.MAPPED_BYTES", 1)
    monkeypatch.setattr("chimap.race.machines._FEWEST_MAPPED", 17)
    found = trials(rows=as_rows(X)).best(given, [SPLIT], None)
    assert found.setting == whole.setting
    assert found.gamma == pytest.approx(whole.gamma, rel=1e-12)
    np.testing.assert_allclose(found.outputs[0], whole.outputs[0], rtol=0, atol=1e-9)


def test_the_mean_distance_is_of_rows_to_learn_from_and_to_score():
    found = trials(alphas=[0.3]).best(settings("exp-chi2", gamma="mean"), [SPLIT], None)
    features = ExactFeatures("exp-chi2", gamma="mean").fit(X)
    assert found.gamma == pytest.approx(features.kernel_.gamma, rel=1e-9)


def test_products_take_no_matrix_of_all_mapped_rows(monkeypatch):
    monkeypatch.setattr("chimap.race.machines._FEWEST_MAPPED", 32)
    monkeypatch.setattr("chimap.race.machines.MAPPED_BYTES", 2**18)
    rows = np.random.default_rng(0).dirichlet(np.ones(400), size=1000).astype(np.float32)
    of, split = MappedRows(OptimalMap("chi2", 4).fit(rows), rows), (np.arange(100), np.arange(100, 1000))
    Products.of(of, split)  # compiles
    tracemalloc.start()
    Products.of(of, split)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    all_mapped = 4 * rows.nbytes
    assert peak < all_mapped / 2


@pytest.mark.parametrize("given", [settings("exp-chi2"), settings("chi2", features="additive", loss="hinge")])
def test_work_is_counted_and_grows_with_the_rows(given):
    def work(rows):
        t = trials(alphas=[3.0])
        t.best(given, [(np.arange(rows), SPLIT[1])], None)
        return t.work

    few, many = work(40), work(160)
    assert few < many
    assert work(160) == many


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_the_footprint_is_what_machines_take(as_rows):
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(60, 0.05), size=2400).astype(np.float32)
    rows[:, 30:] *= rng.random((2400, 30)) < 0.03  # rare columns
    y = rows[:, 0] > np.median(rows[:, 0])
    t, split = trials(y, as_rows(rows), [0.3], dtype="float32"), (np.arange(1000), np.arange(1000, 2400))
    t.best(settings("exp-chi2"), [split], None)  # compiles
    t.let_go()
    tracemalloc.start()
    t.best(settings("exp-chi2"), [split], None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.9 < t.footprint([split]) / peak < 1.2
    assert t.footprint([split, split]) > 1.5 * t.footprint([split])


class SolvedFrom:
    """A machine whose matrix is singular at strengths below ``least``."""

    first, seconds, work = -2, 0.0, 0.0

    def __init__(self, least: float):
        self.least = least

    def scale(self) -> float:
        return 1.0

    def outputs(self, alpha: float, octaves: int) -> np.ndarray | None:
        return None if alpha < self.least else np.full((2, 1), 0.5)


def test_a_strength_of_fewer_rows_that_is_too_small_for_these_is_raised():
    y, split = np.array([[0.0], [1.0], [0.0], [1.0]]), (np.array([0, 1]), np.array([2, 3]))

    def best(least: float):
        shared = trials(y[:, 0], np.zeros((4, 1)), codec=RealCodec)
        search = Search(shared, [SolvedFrom(least)], [split])
        return search.best((-4, 0), lambda score, outputs: False)

    assert best(0.9).setting == (0, 0)
    assert best(0.0).setting == (-4, 0)
    with pytest.raises(DataError, match="singular to rounding"):
        best(np.inf)


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_an_additive_machine_is_ridge_at_strengths_near_the_rounding_of_its_products(as_rows, alpha):
    rng = np.random.default_rng(0)
    X = rng.poisson(2, (90, 150)).astype(np.float32)
    Y = np.sqrt(X[:, :10]).sum(axis=1, keepdims=True).astype(np.float64)
    train, test = np.arange(60), np.arange(60, 90)
    psi = OptimalMap(n_terms=2).fit(X)
    machine = KernelMachine(Products.of(MappedRows(psi, as_rows(X)), (train, test)), None, Y[train], None)
    Z = psi.transform(X).astype(np.float64)
    expected = Ridge(alpha).fit(Z[train], Y[train]).predict(Z[test])
    np.testing.assert_allclose(machine.outputs(alpha, 0).ravel(), expected.ravel(), atol=1e-3)
