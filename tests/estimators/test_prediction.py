"""Rows one by one, in batches and in chunks: the same answers, and the same checks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import FourierFeatures, HistogramClassifier, HistogramRegressor
from chimap._validation import DataError
from chimap.data import ArraySource

from ..histograms import classes

X, Y = classes(150, 20)
MODELS = {
    "additive": HistogramClassifier("chi2", alpha=1.0),
    "random": HistogramClassifier("exp-chi2", n_components=64, alpha=1.0, random_state=0),
    "structured": HistogramClassifier(
        "exp-chi2", n_components=64, features=FourierFeatures(sampling="structured"), alpha=1.0, random_state=0
    ),
    "landmarks": HistogramClassifier("exp-chi2", features="landmarks", n_components=64, alpha=1.0, random_state=0),
    "gaussian": HistogramClassifier("gaussian", n_components=64, alpha=1.0, random_state=0),
    "float64": HistogramClassifier("exp-chi2", n_components=64, precision="float64", alpha=1.0, random_state=0),
    "blocks": HistogramClassifier("chi2", blocks=[slice(0, 9), slice(9, 20)], normalize="l1", alpha=1.0),
    "regression": HistogramRegressor("chi2", alpha=1.0),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(X, Y)


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_matrix, sp.csr_array])
def test_a_row_alone_is_as_among_others(model, kind):
    rows = kind(X)
    together = model._outputs(rows)
    alone = np.concatenate([model._outputs(rows[[i]]) for i in range(20)])
    np.testing.assert_allclose(alone, together[:20], atol=1e-5 if model.precision == "float32" else 1e-13)
    np.testing.assert_array_equal(model.predict_source(ArraySource(rows)), together)


def test_an_empty_row(model):
    zero = np.zeros((1, 20))
    np.testing.assert_allclose(
        model._outputs(zero), model._outputs(sp.csr_matrix(zero)), atol=1e-6, err_msg="dense and sparse differ"
    )


def test_other_kinds_of_input_are_still_converted_and_checked(model):
    expected = model._outputs(X[:3])
    for rows in (X[:3].tolist(), np.asfortranarray(X[:3]), sp.csc_matrix(X[:3]), sp.coo_array(X[:3])):
        np.testing.assert_allclose(model._outputs(rows), expected, atol=1e-6)
    counts = np.arange(20)[None]
    np.testing.assert_array_equal(model.predict(counts), model.predict(counts.astype(float)))
    for bad, message in (
        (X[:1, :19], "19 features, but"),
        (np.zeros((0, 20)), "0 sample"),
        (X[0], "1D array"),
        (X[:1].astype(complex), "Complex"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(bad)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_rows_are_named(model, kind, bad):
    rows = X[:5].copy()
    rows[3, 2] = bad
    with pytest.raises(DataError, match="X, row 3, column 2"):
        model.predict(kind(rows))
    with pytest.raises(DataError, match="X, row 0, column 2"):
        model.predict(kind(rows[3:4]))


def test_a_row_alone_is_checked_as_others_are(model):
    """However short the way of a row is."""
    model.predict(X[:1])
    bad, word = (np.nan, "NaN") if model.kernel == "gaussian" else (-1.0, "-1")  # that kernel takes signs
    with pytest.raises(DataError, match=f"X, row 0, column 4: {word}"):
        model.predict(np.where(np.arange(20) == 4, bad, X[:1]))
    with pytest.raises(ValueError, match="21 features, but"):
        model.predict(np.zeros((1, 21)))


@pytest.mark.parametrize(
    "changed", [{"normalize": "l1"}, {"kernel": "linear"}, {"blocks": [slice(0, 9), slice(9, 20)]}]
)
def test_rows_are_prepared_by_the_settings_of_now(changed):
    settings = {"kernel": "hellinger", "normalize": "sqrt", "bin_weights": None, "alpha": 1.0}
    model, fresh = HistogramClassifier(**settings).fit(X, Y), HistogramClassifier(**settings | changed)
    first = model.predict_proba(X[:4])
    changed_fit = model.set_params(**changed).fit(3 * X, Y).predict_proba(X[:4])
    assert np.abs(changed_fit - first).max() > 1e-6
    np.testing.assert_array_equal(changed_fit, fresh.fit(3 * X, Y).predict_proba(X[:4]))


def test_weights_are_cast_again_after_a_change():
    model = HistogramClassifier("chi2", alpha=1.0)
    model.partial_fit(X[:80], Y[:80], classes=[0, 1, 2])
    first = model.decision_function(X)
    model.partial_fit(X[80:], Y[80:])
    assert np.abs(model.decision_function(X) - first).max() > 1e-3
    fresh = HistogramClassifier("chi2", alpha=1.0).partial_fit(X[:80], Y[:80], classes=[0, 1, 2])
    np.testing.assert_allclose(fresh.decision_function(X), first, atol=1e-6)
