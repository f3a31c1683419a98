"""Importance ranks the bins that decide first, and neighbours are rows of the predicted class."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, HistogramRegressor, open_source
from chimap._validation import DataError
from chimap.explain.background import RowStatistics, rows_like
from chimap.normalizations import CATALOGUE as NORMALIZATIONS

RNG = np.random.default_rng(1)
X = RNG.dirichlet(np.ones(10), size=300)
Y = np.where(X[:, 4] > 0.08, "much", "little")


@pytest.mark.parametrize("kind", ["gradient", "variance", "permutation"])
@pytest.mark.parametrize("settings", [{"kernel": "chi2"}, {"kernel": "exp-chi2", "n_components": 128}])
def test_the_bin_that_decides_comes_first(kind, settings):
    model = HistogramClassifier(random_state=0, **settings).fit(X, Y)
    ranked = model.importance(X, Y if kind == "permutation" else None, kind=kind)
    assert ranked.bins[0] == 4
    assert (np.diff(ranked.values) <= 0).all()
    np.testing.assert_array_equal(ranked.by_bin[ranked.bins], ranked.values)


WEIGHTS = np.r_[4.0, 0.1, np.ones(8)]


def prepared(rows, model, weights):
    """Rows as a model with the kernel chi2 takes them: its kernel is linear in the weight of a bin."""
    if model.normalization_ is not None:
        rows = model.normalization_(rows, [np.arange(10)])
    return rows if weights is None else rows * weights


@pytest.mark.covering(2)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal bins", "weights"])
@pytest.mark.parametrize("normalize", [None, *NORMALIZATIONS])
@pytest.mark.parametrize("features", ["exact", "landmarks", "additive"])
def test_stand_in_rows_are_prepared_once(features, normalize, weights):
    """A model that prepares rows ranks the bins as one that was fitted on prepared rows."""
    if features == "landmarks" and normalize and NORMALIZATIONS[normalize].needs_labels:
        pytest.skip("rows that hide their labels are scored, and landmarks are drawn from others")
    kernel = "chi2" if features == "additive" else "exp-chi2"
    settings = {"features": features, "alpha": 0.1, "n_components": 64, "random_state": 0}
    rows = (100 * X).astype(np.float32)
    rows[rows < np.quantile(rows, 0.3)] = 0  # or all bins would be present in all rows
    model = HistogramClassifier(kernel, normalize=normalize, bin_weights=weights, **settings).fit(rows, Y)
    other = HistogramClassifier(kernel, **settings).fit(prepared(rows, model, weights), Y)
    for kind in ("gradient", "variance", "removal"):
        ours, theirs = model.importance(kind=kind).by_bin, other.importance(kind=kind).by_bin
        np.testing.assert_allclose(ours, theirs, atol=2e-3 * theirs.max())


@pytest.mark.parametrize("known", [False, True], ids=["stand-ins", "rows"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal bins", "weights"])
@pytest.mark.parametrize("normalize", [None, "log1p", "sqrt"])
def test_effects_are_those_of_the_values_of_a_bin_in_rows(normalize, weights, known):
    rows = (100 * X).astype(np.float32)
    model = HistogramClassifier("exp-chi2", normalize=normalize, bin_weights=weights, alpha=0.1).fit(rows, Y)
    effect = model.effects([4], rows if known else None)[0]
    assert 20 < effect.values[-1] < 200
    mean = model.mean_row_ if weights is None else model.mean_row_ / weights
    undone = {None: mean, "log1p": np.expm1(mean), "sqrt": np.square(mean)}[normalize]
    path = np.tile(undone, (effect.values.size, 1))
    path[:, 4] = effect.values
    scores = model.decision_function(path)
    np.testing.assert_allclose(effect.effects[:, 0] - effect.effects[0, 0], scores - scores[0], atol=1e-4)
    if known:
        assert effect.counts.sum() == pytest.approx(300, abs=3)
        assert effect.edges[-1] == pytest.approx(effect.values[-1])


def test_values_of_effects_are_shares_where_rows_are_divided_by_their_sum():
    model = HistogramClassifier("exp-chi2", normalize="l1", bin_weights=WEIGHTS, alpha=0.1).fit(100 * X, Y)
    assert model.effects([0], 100 * X)[0].values[-1] == pytest.approx(np.quantile(X[:, 0], 0.995), rel=1e-3)


def weights_with_zeros():
    weights = np.ones(len(X))
    weights[::3] = 0
    return weights


@pytest.mark.parametrize("sample_weight", [None, weights_with_zeros()], ids=["all rows", "rows of weight 0"])
def test_neighbours_are_numbered_as_the_rows_that_were_given(sample_weight):
    model = HistogramClassifier("exp-chi2", features="exact", alpha=0.1).fit(X, Y, sample_weight=sample_weight)
    kept = np.arange(len(X)) if sample_weight is None else np.flatnonzero(sample_weight)
    for i, neighbours in zip(kept[:20], model.nearest(X[kept[:20]], k=len(kept)), strict=True):
        assert neighbours.places[np.argmax(neighbours.similarities)] == i
        assert set(neighbours.places) == set(kept)


def test_neighbours_among_rows_some_of_which_have_no_label():
    y = Y.astype(object)
    y[::4] = None
    model = HistogramClassifier("exp-chi2", features="exact", alpha=0.1).fit_source(open_source(X, y))
    nearest = model.nearest(X[1:3], k=300)
    assert [n.places[np.argmax(n.similarities)] for n in nearest] == [1, 2]
    model.set_params(features="landmarks", n_components=16).fit_source(open_source(X, y))
    assert model.nearest(X[:1], k=300)[0].places.max() < 16


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_matrix])
def test_removal_ranks_the_bins_that_are_missed_together(rows):
    model = HistogramClassifier("exp-chi2", n_components=128, random_state=0).fit(X, Y)
    ranked = model.importance(rows(X[:60]), kind="removal")
    first = model._outputs(X[:60])

    def moved(bins):
        emptied = X[:60].copy()
        emptied[:, bins] = 0
        return np.sqrt(np.square(model._outputs(emptied) - first).sum(axis=1).mean())

    gone = []
    for i, value in zip(ranked.bins, ranked.values, strict=True):
        others = [moved([*gone, j]) for j in range(10) if j not in gone]
        assert moved([*gone, i]) == pytest.approx(max(others), rel=1e-4)
        assert value == pytest.approx(max(0, max(others) - moved(gone)), abs=1e-4)
        gone.append(i)


@pytest.mark.parametrize("kind", ["gradient", "variance", "removal"])
@pytest.mark.parametrize("settings", [{"kernel": "chi2"}, {"kernel": "exp-chi2", "n_components": 128}])
def test_several_regressions_count_alike_whatever_their_units(kind, settings):
    targets = np.column_stack([X[:, 4] + 0.3 * X[:, 1], X[:, 7]])
    one, other = (
        HistogramRegressor(random_state=0, alpha=1e-3, **settings).fit(X, targets * units).importance(X, kind=kind)
        for units in ([1, 1], [1, 1000])
    )
    assert set(one.bins[:2]) == {4, 7}
    np.testing.assert_allclose(other.by_bin, one.by_bin, rtol=1e-3, atol=1e-3 * one.values[0])


@pytest.mark.parametrize("kind", ["gradient", "variance", "removal"])
def test_without_rows_it_comes_first_too(kind):
    model = HistogramClassifier("chi2", random_state=0).fit(X, Y)
    assert model.importance(kind=kind).bins[0] == 4


def test_the_table_has_names_and_places():
    ranked = HistogramRegressor("chi2").fit(X, X[:, 7]).importance()
    frame = ranked.to_frame()
    assert frame.columns.tolist() == ["bin", "name", "importance"]
    assert frame.bin[0] == 7
    assert str(ranked).splitlines()[0].split()[:2] == ["1", "7"]


def test_what_cannot_be_measured_says_what_to_do():
    model = HistogramClassifier("chi2").fit(X, Y)
    with pytest.raises(ValueError, match="give X and y"):
        model.importance(kind="permutation")
    with pytest.raises(ValueError, match="kind must be"):
        model.importance(kind="shap")
    without = HistogramClassifier("pq", n_components=20, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="kind='variance'"):
        without.importance()


@pytest.mark.parametrize("features", ["landmarks", "exact"])
def test_most_neighbours_are_of_the_predicted_class(features):
    model = HistogramClassifier("exp-chi2", features=features, n_components=60, random_state=0).fit(X, Y)
    rows = X[:12]
    found = model.nearest(rows, k=3)
    agree = [one.answers == answer for one, answer in zip(found, model.predict(rows), strict=True)]
    assert np.mean(agree) > 0.75
    for one in found:
        assert (np.diff(np.abs(one.contributions)) <= 0).all()
        assert np.unique(np.sign(one.contributions)).size == 1
        assert (one.similarities <= 1).all()


def test_an_additive_model_has_no_neighbours():
    with pytest.raises(DataError, match="features='landmarks'"):
        HistogramClassifier("chi2").fit(X, Y).nearest(X[:1])


def test_mean_and_deviation_of_sparse_rows_are_those_of_dense_ones():
    rows = np.where(X > 0.1, X, 0)
    dense, sparse = RowStatistics.of(rows), RowStatistics.of(sp.csr_matrix(rows))
    np.testing.assert_allclose(dense.mean_row, rows.mean(axis=0))
    np.testing.assert_allclose(dense.deviation_row, rows.std(axis=0))
    np.testing.assert_allclose(dense.largest_row, rows.max(axis=0))
    for name, values in vars(dense).items():
        np.testing.assert_allclose(getattr(sparse, name), values)


@pytest.mark.parametrize("is_signed", [False, True])
def test_rows_like_others_have_their_means(is_signed):
    mean, deviation = np.array([0.5, 0.0, 2.0]), np.array([0.1, 0.0, 1.0])
    rows = rows_like(mean, deviation, np.array([0.6, 0.0, 4.0]), is_signed)
    assert (np.abs(rows).max(axis=0) <= [0.6, 0, 4]).all()
    np.testing.assert_allclose(rows.mean(axis=0), mean, atol=0.2)
    np.testing.assert_allclose(rows.std(axis=0), deviation, atol=0.2)
    assert is_signed or rows.min() >= 0


def test_effects_of_bins_by_name():
    pd = pytest.importorskip("pandas")
    named = pd.DataFrame(X, columns=[f"{'moss' if j < 3 else 'grass'}_{j}" for j in range(10)])
    model = HistogramClassifier("chi2", random_state=0).fit(named, Y)
    by_name, by_place = model.effects(["grass_4", "moss_*"]), model.effects([4, 0, 1, 2])
    assert [effect.name for effect in by_name] == ["grass_4", "moss_0", "moss_1", "moss_2"]
    for one, other in zip(by_name, by_place, strict=True):
        np.testing.assert_array_equal(one.effects, other.effects)
    with pytest.raises(DataError, match="sedge"):
        model.effects(["sedge"])
    with pytest.raises(DataError, match="there is no bin 10; the rows have 10 bins"):
        model.effects([3, 10])
