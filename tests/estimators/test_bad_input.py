"""What the estimators refuse, and what they say."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import Exponential, HistogramClassifier, HistogramRegressor, chi2, open_source
from chimap._validation import DataError, MemoryBudgetError

from ..histograms import classes

SMALL = {"n_components": 32, "random_state": 0}


@pytest.mark.parametrize(
    ("value", "message"), [(-0.5, "Negative values"), (np.nan, "NaN"), (np.inf, "infinity")]
)
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
        ({"n_terms": 0}, "n_terms must be a positive whole number"),
        ({"sampling": "quasi"}, "sampling must be one of 'orthogonal', 'structured', 'iid', 'qmc'"),
        ({"form": "sine"}, "form must be one of 'pair', 'offset'"),
        ({"normalize": "l2"}, "normalize must be one of 'l1', 'log1p', 'sqrt', None"),
        ({"precision": "float16"}, "precision must be one of"),
        ({"alpha": -1.0}, "alpha must be a positive number"),
        ({"alpha": "best"}, "alpha must be one of 'auto'"),
        ({"alpha": [1.0, -1.0]}, "alpha"),
        ({"selection": 1}, "selection must be at least 2 folds"),
        ({"selection": "most"}, "selection must be one of 'auto'"),
        ({"features": "waves"}, "features must be one of 'auto'"),
        ({"kernel": "chi2", "features": "fourier"}, "features='fourier' are not features of 'chi2'"),
        ({"features": "additive"}, "features='additive' are not features of 'exp-chi2'"),
        ({"memory": "lots"}, "memory must be"),
        ({"memory": -1}, "memory must be"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"map": "optimal"}, "map must be"),
    ],
)
def test_bad_settings(settings, message):
    X, y = classes(60)
    with pytest.raises(ValueError, match=message):
        HistogramClassifier(**{"kernel": "exp-chi2", **SMALL, **settings}).fit(X, y)


def test_equal_rows_have_no_mean_distance():
    with pytest.raises(DataError, match="mean distance is 0"):
        Exponential(chi2).fitted(np.ones((5, 3)))
