"""The ridge of a comparison is the ridge of the definition, by either way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from chimap import HistogramClassifier, OptimalMap
from chimap._validation import DataError, MemoryBudgetError
from chimap.comparison import learning
from chimap.comparison.learning import RawRows, Targets, learn, stored_bytes
from chimap.comparison.references import stratified
from tests.histograms import classes

X, y = classes(160, 30)
TRAIN, TEST = X[:110], X[110:]
Y = Targets.of(y[:110], "classify").encode(y[:110])
BUDGET = 2**30


class Wide:
    """More features than rows, and a mean that dominates."""

    def __init__(self, n_features):
        self.weights = np.random.default_rng(0).standard_normal((30, n_features))

    def transform(self, rows):
        return np.asarray(np.cos(rows @ self.weights)) + 5


def test_more_features_than_rows_give_the_ridge_all_the_same(monkeypatch):
    alphas = []

    def record(moments, whole, how):
        found = original(moments, whole, how)
        alphas.append(found.best["alpha"])
        return found

    original = learning.choose_alpha
    monkeypatch.setattr(learning, "choose_alpha", record)
    features = Wide(5000)
    found = learn(features, TRAIN, Y, TEST, 0, BUDGET)
    assert found.solved == "Gram matrix"
    direct = Ridge(alpha=alphas[0], solver="cholesky").fit(features.transform(TRAIN), Y)
    np.testing.assert_allclose(found.outputs, direct.predict(features.transform(TEST)), atol=1e-8)


def test_sparse_and_dense_and_repeated_rows_by_the_gram_matrix():
    rows = np.vstack([TRAIN[:40], TRAIN[:40]])
    psi = OptimalMap(n_terms=4).fit(rows)
    targets = np.vstack([Y[:40], Y[:40]])
    dense = learn(psi, rows, targets, TEST, 0, BUDGET)
    sparse = learn(psi, sp.csr_matrix(rows), targets, sp.csr_matrix(TEST), 0, BUDGET)
    assert dense.solved == sparse.solved == "Gram matrix"
    np.testing.assert_allclose(dense.outputs, sparse.outputs, atol=1e-8)


def test_from_moments_it_is_the_estimator_of_the_package():
    psi = OptimalMap("chi2", n_terms=2).fit(TRAIN)
    found = learn(psi, TRAIN, Y, TEST, 7, BUDGET)
    assert found.solved == "moments"
    model = HistogramClassifier("chi2", n_terms=2, precision="float64", random_state=7).fit(TRAIN, y[:110])
    strong = Ridge(alpha=model.alpha_, solver="cholesky").fit(psi.transform(TRAIN), Y)
    # folds are drawn from another seed, so the strengths may differ by a step; answers agree but for rows at a border
    agree = np.mean(found.outputs.argmax(axis=1) == strong.predict(psi.transform(TEST)).argmax(axis=1))
    assert agree >= 0.9


def test_raw_rows_of_two_classes_and_of_numbers():
    pair = Targets.of(y[:110] == 1, "classify")
    assert pair.encode(np.array([True, False])).tolist() == [[1.0], [-1.0]]
    assert pair.decode(np.array([[0.3], [-0.1]])).tolist() == [True, False]
    numbers = Targets.of(y[:110], "regress")
    target = TRAIN @ np.arange(30.0)
    found = learn(RawRows(), TRAIN, numbers.encode(target), TEST, 0, BUDGET)
    assert numbers.score(TEST @ np.arange(30.0), numbers.decode(found.outputs)).value > 0.99


def test_scores_have_the_error_of_a_share():
    score = Targets.of(np.array([0, 1]), "classify").score(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    assert score.value == 0.75
    assert score.standard_error == pytest.approx(np.sqrt(0.75 * 0.25 / 4))
    assert score.interval[0] < 0.75 < score.interval[1]


def test_one_class_and_too_little_memory_are_refused():
    with pytest.raises(DataError, match=r"one class only.*two classes"):
        Targets.of(np.ones(5), "classify")
    for features in (Wide(100), Wide(5000)):
        with pytest.raises(MemoryBudgetError, match="too small"):
            learn(features, TRAIN, Y, TEST, 0, 10_000)


def test_bytes_are_those_of_the_arrays():
    rows = sp.csr_matrix(np.array([[1.0, 0, 2], [0, 0, 3]], np.float32))
    assert stored_bytes(rows) == 3 * 4 + 3 * 4 + 3 * 4
    assert stored_bytes(np.ones((2, 3), np.float32)) == 24


def test_stratified_rows_keep_the_shares():
    labels = np.repeat(["a", "b", "c"], [700, 200, 100])
    for n in (10, 100, 999):
        chosen = stratified(labels, n, seed=1)
        assert len(np.unique(chosen)) == n
        counts = np.unique(labels[chosen], return_counts=True)[1]
        np.testing.assert_allclose(counts, n * np.array([0.7, 0.2, 0.1]), atol=1)
