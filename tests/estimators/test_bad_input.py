"""What the estimators refuse, and what they say."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from chimap import (
    AutomaticFeatures,
    Exponential,
    HistogramClassifier,
    HistogramRegressor,
    MultipleKernelRegressor,
    chi2,
    open_source,
)
from chimap._validation import DataError, MemoryBudgetError

from ..histograms import classes

SMALL = {"n_components": 32, "random_state": 0}


@pytest.mark.parametrize(("value", "message"), [(-0.5, "Negative values"), (np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_bad_values_are_named_by_row_and_column(kind, value, message):
    X, y = classes(300)
    fitted = HistogramClassifier(**{"kernel": "exp-chi2"} | SMALL).fit(kind(X), y)
    X[217, 3] = value
    for call in (
        HistogramClassifier(**{"kernel": "exp-chi2"} | SMALL).fit,
        HistogramRegressor(**{"kernel": "exp-chi2"} | SMALL).partial_fit,
        lambda rows, _: fitted.predict(rows),
    ):
        with pytest.raises(DataError, match="row 217, column 3") as error:
            call(kind(X), y)
        assert message in str(error.value)


def test_bad_value_beyond_the_sample_is_named_too():
    X, y = classes(9000, 5)
    X[8999, 4] = np.nan
    with pytest.raises(DataError, match="row 8999, column 4"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SMALL).fit(X, y)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("kernel", ["auto", "chi2", "exp-chi2"])
@pytest.mark.parametrize(
    ("value", "message"), [(1e200, "a bin is too large for float32"), (1e-200, "all bins are too small for float32")]
)
def test_rows_beyond_the_precision_are_named(kind, kernel, value, message):
    X, y = classes(120)
    fitted = HistogramClassifier("chi2", random_state=0).fit(X, y)
    X[17] *= value
    for call in (HistogramClassifier(kernel, random_state=0).fit, lambda rows, _: fitted.predict(rows)):
        with pytest.raises(DataError, match=rf"row 17: {message}.*precision='float64'"):
            call(kind(X), y)
    wide = HistogramClassifier("chi2", random_state=0, precision="float64").fit(kind(X), y)
    assert np.isfinite(wide.decision_function(kind(X))).all()


def test_a_bin_that_vanishes_beside_others_is_none():
    X, y = classes(60)
    X[3, 2] = 1e-60
    HistogramClassifier("chi2", random_state=0).fit(X, y)


@pytest.mark.parametrize("scale", [1e-320, 1e-60, 1e40, 1e200, 1e307])
@pytest.mark.parametrize("tasks", [1, 2])
def test_targets_whose_products_vanish_or_overflow_are_refused(scale, tasks):
    X, _ = classes(60)
    y = X[:, :tasks] * scale if tasks > 1 else X[:, 0] * scale
    with pytest.raises(DataError, match=r"targets deviate .* which is too (small|large).*y / 1e"):
        HistogramRegressor("chi2").fit(X, y)


@pytest.mark.parametrize("constant", [1e-300, 1 / 3, 1e20 / 3])
def test_rounding_of_a_constant_target_is_no_deviation(constant):
    X, _ = classes(60)
    y = np.full(60, constant)
    y[7] = np.nextafter(constant, 1)
    predicted = HistogramRegressor("chi2").fit(X, y).predict(X)
    np.testing.assert_allclose(predicted, constant)


@pytest.mark.parametrize("constant", [0, 3, 1 / 3, 1e-300])
@pytest.mark.parametrize(
    "make",
    [
        lambda: HistogramRegressor("chi2"),
        HistogramRegressor,
        lambda: HistogramRegressor("exp-chi2", features="exact"),
        lambda: HistogramRegressor("chi2", loss="epsilon_insensitive"),
        MultipleKernelRegressor,
    ],
)
def test_a_constant_target_is_refused(make, constant):
    X, _ = classes(60)
    y = np.full(60, constant)
    with pytest.raises(DataError, match=r"every target is .*nothing to predict.*Check which array or column"):
        make().fit(X, y)
    y[:20] = 7  # of weight 0, so the others are all that is learned
    with pytest.raises(DataError, match=r"nothing to predict"):
        make().fit(X, y, sample_weight=np.repeat([0.0, 1.0], [20, 40]))


def test_targets_of_one_row_and_of_a_batch_may_be_equal():
    X, _ = classes(60)
    HistogramRegressor("chi2", features="landmarks", alpha=1.0).fit(X[:1], [3.0])
    with pytest.raises(DataError, match="at least two rows"):
        HistogramRegressor("chi2", alpha=1.0).fit(X[:1], [3.0])
    model = HistogramRegressor("chi2", alpha=1.0).partial_fit(X[:30], np.full(30, 3.0))
    assert np.ptp(model.partial_fit(X[30:], np.full(30, 4.0)).predict(X)) > 0


def test_one_constant_target_among_several_is_learned():
    X, _ = classes(60)
    Y = np.column_stack([X[:, 0], np.full(60, 3.0)])
    np.testing.assert_allclose(HistogramRegressor("chi2").fit(X, Y).predict(X)[:, 1], 3.0)
    with pytest.raises(DataError, match=r"every target is 3, 3, so"):
        HistogramRegressor("chi2").fit(X, np.full((60, 2), 3))


@pytest.mark.parametrize("nothing", [None, np.nan, ""])
def test_a_missing_label_is_named_and_not_left_out_unseen(nothing):
    X, y = classes(60)
    labels = np.where(y == y[0], "a", "b").astype(object)
    labels[4] = nothing
    for given in (labels, labels.tolist(), *([labels.astype(str)] if nothing == "" else [])):
        with pytest.raises(DataError, match=r"y, row 4: no label \(1 of 60 are missing\)"):
            HistogramClassifier("chi2").fit(X, given)


def test_score_takes_whole_numbers_that_are_objects():
    X, y = classes(60)
    model = HistogramClassifier("chi2").fit(X, y.astype(object))
    assert model.score(X, y.astype(object)) == model.score(X, y)


def test_one_class():
    X, _ = classes(50)
    with pytest.raises(DataError, match="one class only"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SMALL).fit(X, np.ones(50, int))


def test_other_width_at_prediction():
    X, y = classes(100)
    with pytest.raises(ValueError, match=r"19 features.*expecting 20"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SMALL).fit(X, y).predict(X[:, :19])


def test_source_without_labels():
    with pytest.raises(DataError, match="no labels"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SMALL).fit_source(open_source(classes(50)[0]))


def test_text_targets_for_a_regressor():
    X, y = classes(50)
    with pytest.raises(ValueError, match=r"targets|could not convert"):
        HistogramRegressor(**{"kernel": "exp-chi2"} | SMALL).fit(X, np.array(["a", "b", "c"])[y])


def test_first_partial_fit_needs_the_classes():
    X, y = classes(50)
    with pytest.raises(ValueError, match="classes must be given"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SMALL).partial_fit(X, y)


def test_unknown_label_adds_nothing():
    X, y = classes(100)
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | SMALL).partial_fit(X, y, classes=[0, 1, 2])
    before = model.decision_function(X)
    with pytest.raises(DataError, match="unknown label 7"):
        model.partial_fit(X, np.full(100, 7))
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_smallest_budget_that_is_named_would_do():
    X, y = classes(2000)
    with pytest.raises(MemoryBudgetError, match="too small") as error:
        HistogramClassifier("exp-chi2", n_components=512, random_state=0, memory="2MiB").fit(X, y)
    smallest = re.search(r"memory='(\d+MiB)'", str(error.value))[1]
    HistogramClassifier("exp-chi2", n_components=512, random_state=0, memory=smallest).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "gauss"}, "kernel must be one of chi2"),
        ({"kernel": 3}, "kernel must be one of"),
        ({"gamma": -1}, "gamma"),
        ({"gamma": "median"}, "gamma"),
        ({"n_components": 0}, "n_components must be a positive whole number"),
        ({"n_components": 2.5}, "n_components must be a positive whole number"),
        ({"features": AutomaticFeatures(n_terms=0)}, "n_terms must be a positive whole number"),
        (
            {"features": AutomaticFeatures(sampling="quasi")},
            "sampling must be one of 'orthogonal', 'structured', 'iid', 'qmc'",
        ),
        ({"features": AutomaticFeatures(form="sine")}, "form must be one of 'pair', 'offset'"),
        ({"normalize": "l2"}, "normalize must be one of 'l1', 'log1p', 'sqrt', 'log-cpm', .*None"),
        ({"precision": "float16"}, "precision must be one of"),
        ({"alpha": -1.0}, "alpha must be a positive number"),
        ({"alpha": "best"}, "alpha must be one of 'auto'"),
        ({"alpha": [1.0, -1.0]}, "alpha"),
        ({"selection": 1}, "selection must be at least 2 folds"),
        ({"selection": "most"}, "selection must be one of 'auto'"),
        ({"features": "waves"}, "features must be one of 'auto'"),
        ({"kernel": "chi2", "features": "fourier"}, "features='fourier' does not serve the kernel 'chi2'"),
        ({"features": "additive"}, "features='additive' does not serve the kernel 'exp-chi2'"),
        ({"memory": "lots"}, "memory must be"),
        ({"memory": -1}, "memory must be"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"features": AutomaticFeatures(map="optimal")}, "map must be"),
    ],
)
def test_bad_settings(settings, message):
    X, y = classes(60)
    with pytest.raises(ValueError, match=message):
        HistogramClassifier(**{"kernel": "exp-chi2", **SMALL, **settings}).fit(X, y)


def test_equal_rows_have_no_mean_distance():
    with pytest.raises(DataError, match="mean distance is 0"):
        Exponential(chi2).fitted(np.ones((5, 3)))


@pytest.mark.parametrize("weight", [1e-300, 1e-40, 1e40, 1e300])
def test_weights_whose_products_vanish_or_overflow_are_refused(weight):
    X, y = classes(60)
    with pytest.raises(DataError, match=r"sample_weight: the largest weight is 1e.\d+, .*Divide all weights by it"):
        HistogramClassifier("chi2").fit(X, y, sample_weight=np.full(60, weight))
    with pytest.raises(ValueError, match=r"class_weight: .* from 1e-12 to 1e12"):
        HistogramClassifier("chi2", class_weight={y[0]: weight}).fit(X, y)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_rows_that_are_no_source_are_refused_where_one_is_asked_for(kind):
    model = HistogramClassifier("chi2")
    X, y = classes(60)
    fitted = clone(model).fit(X, y)
    calls = model.fit_source, fitted.predict_source, lambda rows: list(fitted.predict_chunks(rows))
    for call in calls:
        with pytest.raises(ValueError, match=r"expected a source of rows, such as .*; got (ndarray|csr_matrix)\. Pass"):
            call(kind(X))
