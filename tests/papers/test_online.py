"""The online intersection machine: its steps, its tables, and the machine that it approximates."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from chimap import OnlineIntersectionClassifier, intersection
from chimap._validation import DataError

from ..histograms import classes


def by_hand(X, y, alpha, n_steps):
    """The same steps in the kernel's space: coefficients of the rows, the whole Gram matrix at hand."""
    K = intersection(X) / intersection.diagonal(X).mean()
    coefficients, intercept = np.zeros(len(X)), 0.0
    for t in range(n_steps):
        eta = 1 / (alpha * (alpha**-0.75 + t))
        violated = y[t] * (coefficients @ K[t] + intercept) < 1
        coefficients *= 1 - eta * alpha
        if violated:
            coefficients[t] += eta * y[t]
            intercept += eta * y[t]
    return coefficients @ K + intercept


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_steps_are_those_of_the_kernel_machine(kind):
    X = np.random.default_rng(0).integers(0, 9, (60, 7)).astype(float)  # values at the knots: nothing is rounded
    X[0] = 8
    y = np.where(X[:, 0] > X[:, 3], 1.0, -1.0)
    model = OnlineIntersectionClassifier(alpha=1e-3, n_knots=8).partial_fit(kind(X), y)
    np.testing.assert_allclose(model.decision_function(X), by_hand(X, y, 1e-3, 60), rtol=1e-10)
    assert model.t_ == 60


def test_close_to_the_exact_machine():
    X, y = load_digits(return_X_y=True)
    train, test = slice(1200), slice(1200, None)
    model = OnlineIntersectionClassifier(max_iter=20, random_state=0).fit(X[train], y[train])
    exact = SVC(kernel=intersection).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > exact.score(X[test], y[test]) - 0.03


def test_the_strength_is_that_of_the_exact_machine_over_rows_and_scale():
    """The documented objective: its strength beside the sum of the losses is N m alpha."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:200], y[:200] % 2
    scale = intersection.diagonal(X).mean()
    model = OnlineIntersectionClassifier(alpha=0.02, n_knots=16, max_iter=400, random_state=0).fit(X, y)

    def gap(factor):
        exact = SVC(kernel=intersection, C=1 / (factor * 200 * scale * 0.02)).fit(X, y)
        return np.abs(exact.decision_function(X) - model.decision_function(X)).max()

    assert gap(1) < 0.05
    assert min(gap(0.5), gap(2)) > 3 * gap(1)


def test_in_parts_as_in_one():
    X, y = classes(300)
    parts = OnlineIntersectionClassifier().partial_fit(X[:100], y[:100], classes=np.unique(y))
    again = pickle.loads(pickle.dumps(parts)).partial_fit(X[100:], y[100:])
    parts.partial_fit(X[100:200], y[100:200]).partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(parts.tables_, again.tables_, rtol=1e-9, atol=1e-12)
    assert parts.score(X, y) > 0.6


def test_units_threads_and_seeds_do_not_matter():
    X, y = classes(200)
    model = OnlineIntersectionClassifier(random_state=3).fit(X, y)
    outputs = model.decision_function(X)
    scaled = OnlineIntersectionClassifier(random_state=3).fit(1024 * X, y)
    np.testing.assert_allclose(scaled.decision_function(1024 * X), outputs, rtol=1e-6, atol=1e-9)
    alone = OnlineIntersectionClassifier(random_state=3, n_jobs=1).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(alone.decision_function(sp.csr_matrix(X)), outputs, rtol=1e-9, atol=1e-12)


def test_values_beyond_the_range_count_as_its_end():
    X, y = classes(200)
    model = OnlineIntersectionClassifier(random_state=0).fit(X, y)
    top = np.maximum(X[:5], model.ranges_)
    np.testing.assert_allclose(model.decision_function(5 * top), model.decision_function(top), rtol=1e-12)


def test_bad_input():
    X, y = classes(50)
    for settings, message in (
        ({"alpha": 0}, "alpha must be a positive number"),
        ({"n_knots": 0}, "n_knots must be a positive whole number"),
        ({"max_iter": 1.5}, "max_iter must be a positive whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            OnlineIntersectionClassifier(**settings).fit(X, y)
    with pytest.raises(DataError, match="one class only"):
        OnlineIntersectionClassifier().fit(X, np.ones(50))
    with pytest.raises(DataError, match="unknown label"):
        OnlineIntersectionClassifier().partial_fit(X, y, classes=np.unique(y)).partial_fit(X, y + 100)
    with pytest.raises(DataError, match="Negative values"):
        OnlineIntersectionClassifier().fit(-X, y)
