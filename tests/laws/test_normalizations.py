"""Every normalisation: its formula, dense and sparse, in float32, in models, files and explanations."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.models.explain import rows_like_fit
from chimap.normalizations import CATALOGUE, KnownTargets, TfIdf

RNG = np.random.default_rng(0)
X = RNG.poisson(np.array([0.2, 0.5, 1, 2, 4, 9, 30, 200]), (90, 8)).astype(float)
X[3] = 0
Y = (X[:, 3] > 1.5).astype(int)
ALL = [np.arange(8)]
BLOCKS = [np.array([0, 5, 6]), np.array([1, 2, 3, 4, 7])]


def shares(rows):
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)


def in_units(name, model):
    """Return the rows as effects show their values; a model has not seen the labels of all rows."""
    if CATALOGUE[name].needs_labels:
        return model.normalization_(X, ALL)
    units = {"log1p": X, "sqrt": X, "log-cpm": 1e6 * shares(X), "log-cp10k": 1e4 * shares(X)}
    return units.get(name, FORMULAS[name](X))


def tf_idf(rows, factors=1.0):
    idf = np.log((1 + 90) / (1 + (X > 0).sum(axis=0))) + 1
    weighed = np.where(rows > 0, 1 + np.log(np.maximum(rows, 1)), 0) * idf * factors
    return weighed / np.maximum(np.sqrt((weighed**2).sum(axis=1, keepdims=True)), 1e-300)


def tf_idf_ratio(rows):
    p, q = (1 + (X[label == Y] > 0).sum(axis=0) for label in (0, 1))
    told = np.abs(np.log(p / p.sum()) - np.log(q / q.sum()))
    return tf_idf(rows, 0.25 * told.mean() + 0.75 * told)


def log_scores(rows):
    out = np.zeros(rows.shape)
    for row, to in zip(rows, out, strict=True):
        logs = np.log(row[row > 0])
        if logs.size:
            to[row > 0] = np.maximum(3 + (logs - logs.mean()) / (logs.std() or 1), 0.1)
    return out


FORMULAS = {
    "log-z": log_scores,
    "l1": shares,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "log-cpm": lambda rows: np.log1p(1e6 * shares(rows)),
    "log-cp10k": lambda rows: np.log1p(1e4 * shares(rows)),
    "presence": lambda rows: (rows > 0) * 1.0,
    "tf-idf": tf_idf,
    "tf-idf-ratio": tf_idf_ratio,
}


def classes(y=Y):
    return KnownTargets(lambda rows: np.where(y[rows, None] == 1, 1.0, -1.0), 1, True)


def fitted(name, rows=X):
    return CATALOGUE[name].fitted(ArraySource(rows), classes())


def fitted_to_columns(name, columns):
    """Return the normalisation of some bins; what labels tell of a bin is compared with all bins."""
    if not CATALOGUE[name].needs_labels:
        return fitted(name, X[:, columns])
    return replace(fitted(name), idf=fitted(name).idf[columns])


def test_each_has_a_formula_here():
    assert set(FORMULAS) == set(CATALOGUE)
    assert all(normalization.name == name for name, normalization in CATALOGUE.items())


@pytest.mark.parametrize("name", CATALOGUE)
def test_formula(name):
    np.testing.assert_allclose(fitted(name)(X, ALL), FORMULAS[name](X), rtol=1e-12)
    sparse = fitted(name)(sp.csr_matrix(X), ALL)
    assert sp.issparse(sparse)
    np.testing.assert_allclose(sparse.toarray(), FORMULAS[name](X), rtol=1e-12)
    single = fitted(name)(X.astype(np.float32), ALL)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, FORMULAS[name](X), rtol=1e-5)


def test_standardised_logs_do_not_know_powers_of_shares_and_equal_entries():
    np.testing.assert_allclose(fitted("log-z")(X**1.7, ALL), fitted("log-z")(X, ALL), rtol=1e-9)
    equal = np.float32([[0, 0.1, 0.1, 0.1], [0, 7, 0, 0], [1e-30, 1e30, 0, 0]])
    scores = fitted("log-z")(equal, [np.arange(4)])
    np.testing.assert_allclose(scores, [[0, 3, 3, 3], [0, 3, 0, 0], [2, 4, 0, 0]], rtol=1e-6)


@pytest.mark.parametrize("name", CATALOGUE)
def test_rows_are_joined_within_blocks_only(name):
    rows, whole = fitted(name)(X, BLOCKS), fitted(name)(X, ALL)
    for columns in BLOCKS:
        part = fitted_to_columns(name, columns)(X[:, columns], [np.arange(columns.size)])
        np.testing.assert_allclose(rows[:, columns], part, rtol=1e-12)
    assert CATALOGUE[name].joins_bins is not np.allclose(rows, whole)


@pytest.mark.parametrize("name", CATALOGUE)
def test_rows_of_zeros_stay_and_the_argument_is_not_changed(name):
    before = X.copy()
    assert not fitted(name)(X, ALL)[3].any()
    fitted(name)(X, BLOCKS)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_model_keeps_what_it_learned(name, tmp_path):
    model = HistogramClassifier("chi2", normalize=name, alpha=1.0, random_state=0).fit(X[:60], Y[:60])
    rows = model.normalization_(X, ALL) if CATALOGUE[name].needs_labels else fitted(name, X[:60])(X, ALL)
    plain = HistogramClassifier("chi2", alpha=1.0, random_state=0).fit(rows[:60], Y[:60])
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(rows), atol=2e-4)
    model.save(tmp_path / "a.model")
    loaded = chimap.load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    explained = loaded.explain(X[:5])
    np.testing.assert_allclose(
        explained.base + explained.contributions.sum(axis=1), loaded.decision_function(X[:5])[:, None], atol=1e-4
    )


@pytest.mark.parametrize("name", CATALOGUE)
def test_negative_entries_are_named_where_they_are_refused(name):
    rows = X.copy()
    rows[5, 2] = -1
    model = HistogramClassifier("linear", normalize=name, alpha=1.0)
    if CATALOGUE[name].takes_signs:
        model.fit(rows, Y)
        return
    with pytest.raises(DataError, match=rf"row 5, column 2: -1. normalize='{name}' takes amounts"):
        model.fit(rows, Y)


@pytest.mark.parametrize("name", CATALOGUE)
def test_integer_weights_are_copies(name):
    weights = RNG.integers(1, 4, 90)
    source = ArraySource(X)
    source.weights = weights.astype(float)
    copies = ArraySource(np.repeat(X, weights, axis=0))
    one = CATALOGUE[name].fitted(source, classes())
    other = CATALOGUE[name].fitted(copies, classes(np.repeat(Y, weights)))
    np.testing.assert_allclose(one(X, ALL), other(X, ALL), rtol=1e-12)


def test_inverse_document_frequencies_are_those_of_scikit_learn():
    transformer = TfidfTransformer(sublinear_tf=True).fit(X[:50])
    learned = fitted("tf-idf", X[:50])
    np.testing.assert_allclose(learned.idf, transformer.idf_, rtol=1e-12)
    np.testing.assert_allclose(learned(X, ALL), transformer.transform(X).toarray(), rtol=1e-10)


def test_words_that_training_never_saw_and_amounts_below_one():
    rows = X.copy()
    rows[:, 0] = 0
    learned = fitted("tf-idf", rows)
    new = np.zeros((2, 8))
    new[0, 0], new[1, 1] = 3, 0.5
    np.testing.assert_allclose(learned(new, ALL), [[1, *[0] * 7], [0, 1, *[0] * 6]])
    assert learned.idf[0] == pytest.approx(1 + np.log(91))
    small = fitted("tf-idf")(np.array([[0.0, 0.2, 0, 0.1, 0, 0, 0, 0]]), ALL)[0]
    assert (small >= 0).all()
    assert small[1] / small[3] == pytest.approx(2 * fitted("tf-idf").idf[1] / fitted("tf-idf").idf[3])


def test_correlations_with_numbers_and_several_targets_of_which_entries_are_missing():
    targets = np.column_stack([X[:, 2] + RNG.normal(0, 1, 90), RNG.normal(0, 1, 90)])
    targets[:20, 0], targets[70:, 1] = np.nan, np.nan
    weights = RNG.uniform(0.5, 2, 90)
    source = ArraySource(X)
    source.weights = weights
    told = np.zeros(8)
    for target in targets.T:
        known = ~np.isnan(target)
        for j in range(8):
            C = np.cov(X[known, j] > 0, target[known], aweights=weights[known])
            told[j] = max(told[j], abs(C[0, 1]) / np.sqrt(C[0, 0] * C[1, 1]) if C[0, 0] > 1e-9 else 0)
    frequencies = TfIdf().fitted(source).idf

    def factors(Y, are_classes):
        targets = KnownTargets(lambda rows: Y[rows], Y.shape[1], are_classes)
        return CATALOGUE["tf-idf-ratio"].fitted(source, targets).idf / frequencies

    np.testing.assert_allclose(factors(targets, False), 0.25 * told.mean() + 0.75 * told, rtol=1e-9)
    signs = np.sign(targets)
    apart = [factors(signs[:, [t]], True) for t in (0, 1)]  # mean of w is the mean of |r|
    largest = np.maximum(*((w - w.mean() / 4) / 0.75 for w in apart))
    np.testing.assert_allclose(factors(signs, True), 0.25 * largest.mean() + 0.75 * largest, rtol=1e-9)


def test_without_labels_or_where_they_tell_nothing():
    ratio = CATALOGUE["tf-idf-ratio"]
    with pytest.raises(DataError, match="learns from labels, and there are none: use normalize='tf-idf'"):
        ratio.fitted(ArraySource(X))
    nothing = ratio.fitted(ArraySource(np.ones((6, 3))), KnownTargets(lambda rows: np.eye(6)[rows, :1], 1, False))
    np.testing.assert_allclose(nothing(np.ones((1, 3)), [np.arange(3)]), 3**-0.5)


def test_one_that_has_learned_nothing_says_so():
    with pytest.raises(DataError, match="tf-idf has learned no frequencies"):
        TfIdf()(X, ALL)


@pytest.mark.covering(1)
@pytest.mark.parametrize("name", sorted(CATALOGUE))
@pytest.mark.parametrize(
    ("kernel", "features"), [("chi2", "additive"), ("exp-chi2", "landmarks"), ("exp-chi2", "exact")]
)
def test_batches_are_of_normalised_rows(name, kernel, features):
    def grown(normalize, rows):
        model = HistogramClassifier(kernel, features=features, normalize=normalize, alpha=1.0, random_state=0)
        for part in (slice(0, 30), slice(30, None)):
            model.partial_fit(rows[part], Y[part], classes=[0, 1])
        return model.decision_function(rows)

    if CATALOGUE[name].learns:
        with pytest.raises(ValueError, match=rf"normalize='{name}' learns from all rows.*use fit"):
            grown(name, X)
        return
    np.testing.assert_allclose(grown(name, X), grown(None, CATALOGUE[name](X, ALL)), rtol=1e-5, atol=1e-5)


def test_a_race_on_a_batch_takes_no_frequencies_of_it():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.1), 2)
    y = np.arange(60) % 2
    words = sp.csr_matrix(rng.poisson(30 * topics[y]))
    model = HistogramClassifier("linear", normalize=["tf-idf", "l1"], random_state=0).partial_fit(
        words, y, classes=[0, 1]
    )
    assert model.normalize_ == "l1"


def test_a_race_among_normalisations_takes_the_best():
    target = np.log1p(1e4 * shares(X[:, :7]))[:, 2]
    names = [None, "presence", "log-cp10k"]
    model = HistogramRegressor("linear", normalize=names, bin_weights=None, random_state=0).fit(X[:, :7], target)
    assert model.normalize_ == "log-cp10k"
    assert model.normalization_.name == "log-cp10k"
    assert len(model.race_.trials) == 3
    auto = HistogramRegressor("auto", normalize=names, bin_weights=None, random_state=0).fit(X[:, :7], target)
    assert {t.candidate.settings["normalize"] for t in auto.race_.trials} == set(names)
    only = HistogramRegressor("auto", normalize="presence", bin_weights=None, random_state=0).fit(X[:, :7], target)
    assert only.normalize_ == "presence"


def test_names_that_are_none_are_refused():
    for wrong in ("l2", ["l1", "l2"], []):
        with pytest.raises(ValueError, match="normalize must be"):
            HistogramClassifier("chi2", normalize=wrong).fit(X, Y)
    with pytest.raises(ValueError, match="several normalize are compared by the race"):
        chimap.FourierKernelLearner(normalize=["l1", None]).fit(X, Y)


def test_tables_hold_the_frequencies(tmp_path):
    from chimap.export import export_model

    model = HistogramClassifier("chi2", normalize="tf-idf", alpha=1.0).fit(X, Y)
    export_model(model, tmp_path / "a.json", format="tables")
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["normalize"] == "tf-idf"
    np.testing.assert_allclose(document["idf"], model.normalization_.idf)


@pytest.mark.parametrize("name", CATALOGUE)
def test_effects_are_over_values_as_they_came(name):
    weights = np.array([1.0, 2, 1, 1, 1, 1, 0.5, 1])
    model = HistogramClassifier("chi2", normalize=name, alpha=1.0, bin_weights=weights).fit(X, Y)
    (effect,) = model.effects([1], X)
    column = in_units(name, model)[:, 1]
    assert effect.values[-1] == pytest.approx(np.quantile(column, 0.995), rel=0.1)
    assert effect.values[0] == 0
    assert effect.edges[[0, -1]] == pytest.approx(effect.values[[0, -1]])


@pytest.mark.parametrize("name", CATALOGUE)
def test_rows_like_those_of_the_fit_are_prepared_once(name):
    model = HistogramClassifier("chi2", normalize=name, alpha=1.0).fit(X, Y)
    np.testing.assert_allclose(rows_like_fit(model.fitted).mean(axis=0), model.mean_row_, rtol=0.4, atol=1e-3)
    for effect, largest in zip(model.effects(range(8)), in_units(name, model).max(axis=0), strict=True):
        assert 0 <= effect.values[0] < effect.values[-1] <= largest * 1.0001  # counts per million, below a million
