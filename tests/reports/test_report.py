"""The report of a model from Python: what the command line writes, by the same function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import chimap
from chimap._errors import InputError
from chimap._validation import DataError
from chimap.readers import open_source


@pytest.fixture(scope="module")
def flowers():
    frame = load_iris(as_frame=True).frame.sample(frac=1, random_state=0)
    frame["species"] = load_iris().target_names[frame.pop("target")]
    return frame.iloc[:100], frame.iloc[100:]


@pytest.fixture(scope="module")
def model(flowers):
    return chimap.HistogramClassifier("chi2", alpha=0.01).fit(flowers[0], "species")


def test_values_are_attributes_and_text_shows_them(model, flowers):
    training, unseen = flowers
    found = chimap.report(model, unseen, "species", training=(training, "species"))
    assert found.metrics.n_rows == 50
    assert found.metrics.accuracy == model.score(unseen, "species")
    assert found.insight.linear.n_rows == 100
    assert found.insight.importance
    text = repr(found)
    assert "50 rows" in text
    assert f"{100 * found.metrics.accuracy:.1f} %" in text
    assert "balanced" in text
    assert "\u202f" not in text


def test_rows_of_any_kind_give_the_same_scores(model, flowers, tmp_path):
    unseen = flowers[1]
    unseen.to_csv(tmp_path / "unseen.csv", index=False)
    bins = unseen.drop(columns="species")
    reports = [
        chimap.report(model, unseen, "species", insight=False),
        chimap.report(model, bins, unseen["species"].to_numpy(), insight=False),
        chimap.report(model, bins[bins.columns[::-1]], unseen["species"].to_numpy(), insight=False),
        chimap.report(model, tmp_path / "unseen.csv", "species", insight=False),
        chimap.report(model, open_source(tmp_path / "unseen.csv", "species", like=model), insight=False),
    ]
    dictionaries = [r.metrics.as_dict() for r in reports]
    assert all(d == dictionaries[0] for d in dictionaries)


def test_the_page_is_that_of_the_values(model, flowers, tmp_path):
    found = chimap.report(model, flowers[1], "species", which="the last 50 flowers")
    page = found.save(tmp_path / "flowers.html").read_text(encoding="utf-8")
    assert page == replace(found).to_html()
    assert "the last 50 flowers" in page
    assert "Learning curve" not in page  # the training rows are not at hand


def test_regressions():
    X, y = load_diabetes(return_X_y=True)
    X = X - X.min(axis=0)
    model = chimap.HistogramRegressor("chi2", alpha=0.01).fit(X[:300], y[:300])
    found = chimap.report(model, X[300:], y[300:], training=(X[:300], y[:300]))
    assert found.metrics.r2 == pytest.approx(model.score(X[300:], y[300:]))
    assert found.insight.linear.measure == "r2"
    assert f"R²           {found.metrics.r2:.3f}" in repr(found)


def test_what_cannot_be_reported_is_refused(model, flowers):
    unseen = flowers[1]
    with pytest.raises(DataError, match="has no labels"):
        chimap.report(model, unseen.drop(columns="species"))
    with pytest.raises(DataError, match="rose"):
        chimap.report(model, unseen.assign(species="rose"), "species")
    with pytest.raises(DataError, match="petal"):
        chimap.report(model, unseen.drop(columns="petal width (cm)"), "species")
    machine = chimap.LookupClassifier().fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(InputError, match="a LookupClassifier predicts no source"):
        chimap.report(machine, np.eye(4), [0, 1, 0, 1])
