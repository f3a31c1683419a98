"""Compiled models: the scores of the model that was compiled, to within the bound, for every row."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import chimap
from chimap import (
    AnchorMap,
    CompiledClassifier,
    CompiledRegressor,
    HistogramClassifier,
    HistogramRegressor,
    HomogeneousMap,
    LookupClassifier,
    OptimalMap,
    PrincipalFeatures,
)
from chimap._validation import DataError
from chimap.data import ArraySource

from ..histograms import classes, signed_histograms

MODELS = {
    "chi2": HistogramClassifier("chi2", features=OptimalMap(n_terms=3), alpha=1.0),
    "float64": HistogramClassifier("jensen_shannon", precision="float64", alpha=1.0),
    "map": HistogramClassifier("intersection", features=HomogeneousMap(n_terms=5), alpha=1.0),
    "gamma": HistogramClassifier(chimap.chi2.with_gamma(2.0), alpha=1.0),
    "normalised": HistogramClassifier("chi2", normalize="l1", alpha=1.0),
    "blocks": HistogramClassifier(
        ["chi2", "hellinger"], blocks={"a": slice(0, 12), "b": slice(10, 20)}, normalize="l1", alpha=1.0
    ),
    "principal": HistogramClassifier("chi2", features=PrincipalFeatures(10), alpha=1.0),
    "logistic": HistogramClassifier("chi2", loss="logistic", alpha=1.0),
    "codes": HistogramClassifier("chi2", features=AnchorMap(n_anchors=20), alpha=1.0),
    "regression": HistogramRegressor("chi2", alpha=1.0),
}


@pytest.fixture(scope="module")
def fitted():
    X, y = classes(300)
    return {name: model.fit(X[:200], y[:200]) for name, model in MODELS.items()}, X, y


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, np.float32])
def test_scores_within_the_bound(fitted, name, kind):
    models, X, _ = fitted
    model, rows = models[name], kind(10 * X if name == "normalised" else X)
    compiled = model.compile()
    gap = np.abs(compiled._outputs(rows) - model._outputs(rows)).max(axis=1)
    bound = compiled.error_bound(rows)
    assert (gap <= bound + 1e-5).all()
    assert (bound <= compiled.tables_.worst_error * (1 + 1e-6)).all()
    assert gap.max() < 5e-3 * np.abs(model._outputs(rows)).max()


def test_predictions_and_their_shapes(fitted):
    models, X, y = fitted
    model, compiled = models["chi2"], models["chi2"].compile()
    assert isinstance(compiled, CompiledClassifier)
    assert compiled.decision_function(X).shape == (300, 3)
    assert (compiled.predict(X) == model.predict(X)).mean() > 0.99
    assert abs(compiled.score(X, y) - model.score(X, y)) < 0.01
    two = HistogramClassifier("chi2", alpha=1.0).fit(X[y < 2], np.array(["no", "yes"])[y[y < 2]]).compile()
    assert two.decision_function(X).shape == (300,)
    assert set(two.predict(X)) == {"no", "yes"}
    regressor = models["regression"].compile()
    assert isinstance(regressor, CompiledRegressor)
    assert regressor.predict(X).shape == (300,)
    np.testing.assert_array_equal(compiled.predict_source(ArraySource(X)), compiled.decision_function(X))


def test_rows_beyond_the_tables_are_scored_by_the_model(fitted):
    models, X, _ = fitted
    model, rows = models["chi2"], X.copy()
    rows[7] *= 1000
    rows[9, 3] = -0.0
    compiled = model.compile()
    for kind in (np.asarray, sp.csr_matrix):
        found = compiled.decision_function(kind(rows))
        np.testing.assert_allclose(found[7], model.decision_function(rows)[7], rtol=1e-6)
        assert np.abs(found - model.decision_function(rows)).max() < 0.01
    assert compiled.error_bound(rows)[7] == 0


def test_rows_are_normalised_as_the_race_chose(fitted):
    models, X, _ = fitted
    chosen = clone(models["normalised"]).fit(X[:200], fitted[2][:200])
    chosen.set_params(normalize=None)
    chosen.model_ = replace(chosen.fitted, recipe=chosen.fitted.recipe.with_raced(normalize="l1"))
    np.testing.assert_array_equal(chosen.compile()._outputs(X), models["normalised"].compile()._outputs(X))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
@pytest.mark.parametrize("name", ["chi2", "codes", "normalised"])
def test_bad_rows(fitted, name, bad):
    models, X, _ = fitted
    rows = X.copy()
    rows[5, 2] = bad
    compiled = models[name].compile()
    for kind in (np.asarray, sp.csr_matrix):
        with pytest.raises(DataError, match="row 5, column 2"):
            compiled.predict(kind(rows))
    with pytest.raises(DataError, match="row 5, column 2"):
        compiled.predict_source(ArraySource(rows))
    with pytest.raises(ValueError, match="X has 19 features"):
        compiled.predict(X[:, :19])


def test_blocks_of_which_one_is_signed():
    X = signed_histograms(200, 20)
    X[:, 10:] = np.abs(X[:, 10:])
    y = (X[:, 0] > 0).astype(int)
    model = HistogramClassifier([chimap.chi2.signed(), "chi2"], blocks=[slice(0, 10), slice(10, 20)], alpha=1.0).fit(
        X, y
    )
    compiled = model.compile()
    assert np.abs(compiled.decision_function(X) - model.decision_function(X)).max() < 0.01
    X[3, 12] = -0.1
    with pytest.raises(DataError, match="row 3, column 2"):
        compiled.predict(X)


@pytest.mark.parametrize("name", ["chi2", "codes", "normalised", "regression"])
def test_round_trip(fitted, name, tmp_path):
    models, X, _ = fitted
    compiled = models[name].compile()
    compiled.save(tmp_path / "a.model")
    loaded = chimap.load(tmp_path / "a.model")
    assert type(loaded) is type(compiled)
    np.testing.assert_array_equal(loaded.predict(X), compiled.predict(X))
    np.testing.assert_array_equal(loaded.error_bound(X), compiled.error_bound(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(compiled)).predict(X), compiled.predict(X))
    assert loaded.nbytes_ == compiled.nbytes_
    assert loaded.describe() == compiled.describe()
    with pytest.raises(FileExistsError):
        compiled.save(tmp_path / "a.model")
    with pytest.raises(DataError, match="not a HistogramClassifier"):
        HistogramClassifier.load(tmp_path / "a.model")


def test_lookup_classifier(tmp_path):
    X, y = classes(300)
    names = np.array(["a", "b", "c"])[y]
    model = LookupClassifier(AnchorMap("chi2", n_anchors=12)).fit(X, names)
    compiled = model.compile()
    np.testing.assert_array_equal(compiled.predict(X), model.predict(X))
    for rows in (X, sp.csr_matrix(X)):
        gap = np.abs(compiled.decision_function(rows) - model.decision_function(rows)).max()
        assert gap <= compiled.tables_.worst_error
    compiled.save(tmp_path / "a.model")
    np.testing.assert_array_equal(chimap.load(tmp_path / "a.model").predict(X), model.predict(X))
    assert "12 codes per bin" in compiled.describe()["features"]


def test_models_that_are_no_sum_over_bins():
    X, y = classes(100)
    model = HistogramClassifier("exp-chi2", n_components=32, alpha=1.0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"compares whole rows by LandmarkFeatures.*additive kernel"):
        model.compile()
    with pytest.raises(Exception, match="not fitted"):
        HistogramClassifier("chi2").compile()
    with pytest.raises(Exception, match="not fitted"):
        CompiledClassifier().predict(X)
    with pytest.raises(ValueError, match="memory"):
        HistogramClassifier("chi2", features=OptimalMap(), alpha=1.0).fit(X, y).compile(memory="1KiB")
