"""What bins add to a score adds up to it, over all kernels and feature families."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import chimap
from chimap import HistogramClassifier, HistogramRegressor, PrincipalFeatures
from chimap.kernels import names

BINS = 8
RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(BINS), size=90)
X[X < 0.05] = 0
Y = X[:, :3].argmax(axis=1)
SETTINGS = {
    "landmarks": {"features": "landmarks", "n_components": 20},
    "exact": {"features": "exact"},
    "fourier": {"features": "fourier", "n_components": 32},
    "blocks": {"blocks": {"a": slice(0, 5), "b": [7, 6, 5]}, "n_components": 16},
    "l1": {"normalize": "l1", "n_components": 16},
    "principal": {"features": PrincipalFeatures(6), "n_components": 32},
    "gaussian": {"kernel": "gaussian", "n_components": 16},
    "product": {"kernel": "skewed-chi2", "n_components": 16},
    "logistic": {"loss": "logistic", "n_components": 16},
}


def off(model, rows, background=None):
    explanation = model.explain(rows, background)
    scores = model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)
    assert explanation.contributions.shape == (rows.shape[0], BINS, explanation.base.size)
    assert explanation.output_names.shape == explanation.base.shape
    return np.abs(explanation.scores - scores.reshape(rows.shape[0], -1)).max()


def fitted(labels=Y, **settings):
    return HistogramClassifier(**{"kernel": "exp-chi2", "random_state": 0, **settings}).fit(X, labels)


@pytest.mark.covering(1)
@pytest.mark.parametrize("kernel", names())
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_they_add_up_over_every_kernel(kernel, precision):
    model = fitted(kernel=kernel, n_components=32, precision=precision)
    is_additive = isinstance(model.kernel_, chimap.kernels.AdditiveKernel)
    limit = 1e-6 if is_additive else 1e-3
    assert off(model, X[:9]) < limit
    assert off(model, sp.csr_matrix(X[:9])) < limit


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_they_add_up_whatever_the_features(settings):
    model = fitted(**settings)
    assert off(model, X[:9]) < 1e-3
    assert off(model, X[:9], background=X[:4]) < 1e-3


@pytest.mark.parametrize("kernel", names())
def test_they_add_up_for_exact_machines(kernel):
    model = HistogramClassifier(kernel, features="exact", precision="float64", alpha=1.0).fit(X, Y)
    assert off(model, X[:3]) < 1e-6
    assert off(model, sp.csr_matrix(X[:3])) < 1e-6


def test_they_add_up_for_two_classes_regressions_and_learned_widths():
    two = fitted(Y == 1, kernel="exp-chi2", n_components=16)
    assert off(two, X[:9]) < 1e-3
    assert two.explain(X[:1]).output_names.tolist() == [True]
    assert off(HistogramRegressor("exp-chi2", n_components=16, random_state=0).fit(X, X[:, 0]), X[:9]) < 1e-3
    learned = chimap.FourierKernelLearner(
        blocks=[slice(0, 4), slice(4, 8)], n_components=16, n_tune_components=8, max_iter=2, random_state=0
    )
    assert off(learned.fit(X, Y), X[:9]) < 1e-3
    many = chimap.MultipleKernelLearner(blocks=[slice(0, 4), slice(4, 8)], n_components=16, random_state=0).fit(X, Y)
    assert off(many, X[:9]) < 1e-3


def test_they_add_up_after_batches():
    model = HistogramClassifier("chi2", random_state=0)
    model.partial_fit(X[:50], Y[:50], classes=np.unique(Y)).partial_fit(X[50:], Y[50:])
    assert off(model, X[:9]) < 1e-6


def test_a_narrow_kernel_is_followed_along_its_path():
    model = fitted(kernel="exp-chi2", gamma=300.0, features="landmarks", n_components=40, precision="float64")
    assert off(model, X[:20]) < 1e-5


def test_names_of_bins_and_classes_are_those_of_the_fit():
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"otu {i}" for i in range(BINS)])
    labels = np.array(["gut", "skin", "soil"])[Y]
    model = HistogramClassifier("chi2").fit(frame, labels)
    explanation = model.explain(frame[:2])
    assert explanation.bin_names.tolist() == list(frame)
    assert explanation.output_names.tolist() == ["gut", "skin", "soil"]
    assert set(model.importance().names) == set(frame)


def test_without_a_mean_row_a_background_is_asked_for():
    model = fitted(kernel="chi2")
    model.remember(rows=None)
    with pytest.raises(ValueError, match="background=X"):
        model.explain(X[:1])
    assert off(model, X[:2], background=X) < 1e-6


def test_a_saved_model_explains_itself_the_same(tmp_path):
    model = fitted(kernel="exp-chi2", n_components=16)
    model.save(tmp_path / "my.model")
    again = chimap.load(tmp_path / "my.model")
    np.testing.assert_allclose(again.explain(X[:2]).contributions, model.explain(X[:2]).contributions, atol=1e-6)
    np.testing.assert_array_equal(again.importance().bins, model.importance().bins)
