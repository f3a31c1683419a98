"""Covariates that name columns of a data frame, or come as values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import chimap
from chimap import HistogramClassifier, with_covariates
from chimap._validation import DataError

from ..fit.test_covariates import AGE, SEX, TELLING, X, Y

FRAME = pd.DataFrame(X, columns=[f"otu{i}" for i in range(20)]).assign(age=AGE, sex=SEX)
SETTINGS = {"normalize": "l1", "random_state": 0, "covariates": ["age", "sex"]}


@pytest.fixture(scope="module")
def model():
    return HistogramClassifier("exp-chi2", **SETTINGS).fit(FRAME, Y)


def test_names_and_values_are_the_same(model):
    values = clone(model).set_params(covariates=TELLING).fit(X, Y)
    rows = chimap.with_covariates(X, TELLING)
    np.testing.assert_allclose(values.decision_function(rows), model.decision_function(FRAME), atol=1e-6)
    by_label = clone(model).fit(FRAME.assign(y=Y), "y")
    np.testing.assert_array_equal(by_label.decision_function(FRAME), model.decision_function(FRAME))
    assert model.feature_names_in_.tolist() == [f"otu{i}" for i in range(20)]


def test_columns_are_found_by_name_in_any_order(model):
    moved = FRAME[FRAME.columns[::-1]]
    np.testing.assert_array_equal(model.decision_function(moved), model.decision_function(FRAME))
    assert cross_val_score(model, FRAME, Y, cv=3).mean() > 0.7


def test_rows_without_covariates_are_refused(model):
    with pytest.raises(DataError, match="takes 'age', 'sex' besides the bins, and the rows have none"):
        model.predict(X)
    with pytest.raises(DataError, match="no column 'age' for covariates"):
        model.predict(FRAME.drop(columns="age"))
    with pytest.raises(DataError, match="names columns, and X is an array"):
        HistogramClassifier(**SETTINGS).fit(X, Y)
    with pytest.raises(DataError, match="names 'sex', the labels"):
        HistogramClassifier(**SETTINGS).fit(FRAME, "sex")


def test_frames_of_the_fit_are_predicted_where_covariates_add_nothing(tmp_path):
    noise = FRAME.drop(columns=["age", "sex"]).assign(age=np.arange(len(FRAME)) % 7)
    model = HistogramClassifier("linear", alpha=1.0, **{**SETTINGS, "covariates": ["age"]}).fit(noise, Y)
    assert model.covariates_.weight == 0
    expected = model.decision_function(noise.drop(columns="age"))
    model.save(tmp_path / "noise.model")
    for each in (model, chimap.load(tmp_path / "noise.model")):
        np.testing.assert_array_equal(each.decision_function(noise[noise.columns[::-1]]), expected)
    with pytest.raises(DataError, match="otu0"):
        model.predict(noise.drop(columns="otu0").drop(columns="age"))


def test_explanations_name_the_columns_of_covariates(model):
    names = model.importance(FRAME).names.tolist()
    assert {"otu0", "age, sex (1)"} <= set(names)
    explained = model.explain(FRAME[:5])
    total = explained.contributions.sum(axis=1) + explained.base
    np.testing.assert_allclose(total.ravel(), model.decision_function(FRAME[:5]), atol=1e-4)


def test_values_are_not_kept_in_files(tmp_path):
    model = HistogramClassifier("exp-chi2", **SETTINGS | {"covariates": TELLING}).fit(X, Y)
    model.save(tmp_path / "a.model")
    again, rows = chimap.load(tmp_path / "a.model"), chimap.with_covariates(X, TELLING)
    assert again.covariates == ["age", "sex"]
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))


def test_rows_with_covariates_are_fitted_as_they_are_predicted():
    rng = np.random.default_rng(0)
    X, age = rng.poisson(3.0, (60, 4)).astype(float), rng.normal(size=60)
    y = np.where(age > 0, "old", "young")
    rows = with_covariates(X, {"age": age})
    model = HistogramClassifier("linear", alpha=1.0).fit(rows, y)
    given = HistogramClassifier("linear", alpha=1.0, covariates={"age": age}).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(rows), given.decision_function(rows))
    with pytest.raises(ValueError, match="y: 59 labels for 60 rows"):
        HistogramClassifier("linear", alpha=1.0).fit(rows, y[:59])
