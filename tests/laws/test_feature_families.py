"""Where one family of features goes, all go: every loss, precision, order of batches, block, engine and file."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import chimap
from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.features.families import FAMILIES
from chimap.losses import OF_CLASSES

N = 600
EXPLICIT = [name for name in FAMILIES if name != "exact"]
CLASSES = OF_CLASSES


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.astype(np.float32), y


def model_of(features, **settings):
    kernel = "chi2" if features == "additive" else "exp-chi2"
    fixed = {"n_components": 60, "random_state": 0, "alpha": 0.1}
    return HistogramClassifier(kernel, features=features, **fixed | settings)


def accuracy(model, X, y):
    return float(np.mean(model.predict(X[N:]) == y[N:]))


@pytest.mark.parametrize("loss", CLASSES)
@pytest.mark.parametrize("features", EXPLICIT)
def test_every_loss(features, loss, digits):
    X, y = digits
    model = model_of(features, loss=loss, alpha=1.0, n_components=150).fit(X[:N], y[:N])
    assert accuracy(model, X, y) > 0.85
    # the outputs are those of weights on the features
    outputs = model.features_.transform(X[N : N + 20]) @ model.feature_coef_.T + model.intercept_
    np.testing.assert_allclose(outputs, model.decision_function(X[N : N + 20]), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("features", [*EXPLICIT, "exact"])
def test_batches_are_the_whole(features, digits):
    X, y = digits
    whole, batches = (
        model_of(features, precision="float64").partial_fit(X[:N], y[:N], classes=np.unique(y)) for _ in range(2)
    )  # the first batch fixes the features
    whole.partial_fit(X[N : N + 300], y[N : N + 300])
    for first in range(N, N + 300, 100):
        batches.partial_fit(X[first : first + 100], y[first : first + 100])
    np.testing.assert_allclose(
        batches.decision_function(X[-50:]), whole.decision_function(X[-50:]), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("features", [*EXPLICIT, "exact"])
def test_files_give_the_same_model_back(features, digits, tmp_path):
    X, y = digits
    model = model_of(features).fit(X[:N], y[:N])
    model.save(tmp_path / "model")
    again = chimap.load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X[-50:]), model.decision_function(X[-50:]))
    np.testing.assert_array_equal(again.predict_proba(X[-50:]), model.predict_proba(X[-50:]))


@pytest.mark.parametrize("features", EXPLICIT)
def test_blocks_are_a_sum_of_kernels(features, digits):
    X, y = digits
    model = model_of(features, blocks={"top": slice(0, 32), "bottom": slice(32, 64)}).fit(X[:N], y[:N])
    assert accuracy(model, X, y) > 0.85
    # a row's features of one block do not depend on the other
    moved = X[N : N + 5].copy()
    moved[:, 32:] = X[N + 5 : N + 10, 32:]
    Z, other = model.features_.transform(X[N : N + 5]), model.features_.transform(moved)
    same = np.isclose(Z, other, atol=1e-6).all(axis=0)
    assert 0.3 < same.mean() < 0.7


@pytest.mark.parametrize("kind", ["zero rows", "one bin", "a column of one value", "large means"])
@pytest.mark.parametrize("features", [*EXPLICIT, "exact"])
def test_rows_that_say_little(features, kind, digits):
    """They give a model whose outputs are finite."""
    X, y = digits
    X, y = X[:80].copy(), y[:80] % 2
    if kind == "zero rows":
        X[:40] = 0
    elif kind == "one bin":
        X = X[:, 20:21]
    elif kind == "a column of one value":
        X[:, 3] = 7
    else:
        X += 1e6 * X.std()
    model = model_of(features, n_components=20, alpha="auto").fit(X, y)
    outputs = model.decision_function(X)
    assert np.isfinite(outputs).all()
    if kind == "large means":  # 10^6 times the spread, in single precision
        assert np.mean((outputs > 0) == y) > 0.9


@pytest.mark.parametrize("features", [*EXPLICIT, "exact"])
def test_equal_rows(features):
    """There is no mean distance for gamma; with gamma given, and for the additive map, all outputs are the same."""
    X, y = np.full((40, 5), 3.0, dtype=np.float32), np.arange(40) % 2
    if features != "additive":
        with pytest.raises(DataError, match=r"all (sampled )?rows are equal.*[Pp]ass gamma"):
            model_of(features).fit(X, y)
    model = model_of(features, gamma=1.0, n_components=20).fit(X, y)
    outputs = model.decision_function(X)
    np.testing.assert_allclose(outputs, outputs[0], atol=1e-5)
