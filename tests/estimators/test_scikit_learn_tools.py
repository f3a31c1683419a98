"""scikit-learn's tools around fitted and compiled models, and labels of all types."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from chimap import AnchorMap, HistogramClassifier, HistogramRegressor, LookupClassifier, load

X, Y = (part[:240] for part in load_digits(n_class=3, return_X_y=True))
TARGETS = np.sqrt(X[:, 20]) + X[:, 30] / 9
WORDS = np.array(["cat", "dog", "emu"], dtype=object)[Y]


def classifier():
    return HistogramClassifier("chi2", features="additive", alpha=10.0)


def regressor():
    return HistogramRegressor("chi2", features="additive", alpha=1.0)


@pytest.fixture(scope="module", params=["fitted", "compiled"])
def models(request):
    made = classifier().fit(X, Y), regressor().fit(X, TARGETS)
    return made if request.param == "fitted" else tuple(model.compile() for model in made)


def test_importance_and_dependence(models):
    for model, y in zip(models, (Y, TARGETS), strict=True):
        found = permutation_importance(model, X[:, :], y, n_repeats=2, random_state=0).importances_mean
        assert found.shape == (64,)
        assert found.max() > 0
        assert np.all(found[X.std(axis=0) == 0] == 0)
    curve = partial_dependence(models[1], X, [20], kind="average")
    assert curve["average"].shape[1] == curve["grid_values"][0].size
    assert np.all(np.diff(curve["average"][0]) > -1e-3)  # the root of the bin, which grows


def test_wrapped_models(models):
    machine, machine_of_numbers = models
    frozen = FrozenEstimator(machine)
    assert CalibratedClassifierCV(frozen).fit(X, Y).predict_proba(X).shape == (240, 3)
    voters = [("a", frozen), ("b", LogisticRegression(max_iter=200))]
    assert VotingClassifier(voters, voting="soft").fit(X, Y).score(X, Y) > 0.97
    assert StackingClassifier([("a", machine)], cv="prefit").fit(X, Y).score(X, Y) > 0.97
    stacked = StackingRegressor([("a", machine_of_numbers)], cv="prefit").fit(X, TARGETS)
    assert stacked.score(X, TARGETS) > 0.9


def test_boosting_weighs_the_rows():
    assert AdaBoostClassifier(classifier(), n_estimators=3, random_state=0).fit(X, Y).score(X, Y) > 0.95
    assert AdaBoostRegressor(regressor(), n_estimators=3, random_state=0).fit(X, TARGETS).score(X, TARGETS) > 0.9
    assert StackingClassifier([("a", classifier())], cv=2).fit(X, Y).score(X, Y) > 0.95


def test_a_compiled_model_is_fitted_with_weights():
    weights = np.random.default_rng(0).integers(0, 3, Y.size)
    model = classifier().set_params(random_state=0)
    again = clone(model).fit(X[:100], Y[:100]).compile().fit(X, Y, weights)
    expected = clone(model).fit(X, Y, sample_weight=weights).compile()
    assert not np.allclose(again.decision_function(X), model.fit(X, Y).decision_function(X), atol=1e-2)
    np.testing.assert_allclose(again.decision_function(X), expected.decision_function(X))
    assert has_fit_parameter(again, "sample_weight")
    routed = classifier().fit(X, Y).compile()
    with config_context(enable_metadata_routing=True):
        assert routed.set_fit_request(sample_weight=True) is routed


def test_a_compiled_model_is_fitted_anew_as_it_was_made():
    compiled = classifier().fit(X[:100], Y[:100]).compile(tolerance=1e-2)
    again = compiled.fit(X, Y)
    assert again is compiled
    assert again.tolerance == 1e-2
    assert np.allclose(again.decision_function(X), classifier().fit(X, Y).compile(1e-2).decision_function(X))
    codes = LookupClassifier(AnchorMap("chi2", n_anchors=5)).fit(X, Y).compile()
    with pytest.raises(NotFittedError, match="holds no model that could be fitted"):
        codes.fit(X, Y)
    with pytest.raises(NotFittedError, match="holds no model that could be fitted"):
        clone(codes).fit(X, Y)


def test_clones_of_a_compiled_model_are_fitted_as_it_was_made():
    compiled = classifier().fit(X[:100], Y[:100]).compile(tolerance=1e-2)
    unfitted = clone(clone(compiled))
    with pytest.raises(NotFittedError):
        check_is_fitted(unfitted)
    with pytest.raises(NotFittedError, match="is not fitted"):
        unfitted.predict(X)
    expected = classifier().fit(X, Y).compile(1e-2).decision_function(X)
    np.testing.assert_allclose(unfitted.fit(X, Y).decision_function(X), expected)
    assert AdaBoostClassifier(compiled, n_estimators=3, random_state=0).fit(X, Y).score(X, Y) > 0.95
    assert cross_val_score(compiled, X, Y, cv=2).mean() > 0.9
    numbers = regressor().fit(X, TARGETS).compile()
    assert AdaBoostRegressor(numbers, n_estimators=3, random_state=0).fit(X, TARGETS).score(X, TARGETS) > 0.9


def test_object_labels_stay_objects(tmp_path):
    model = classifier().fit(X, WORDS)
    assert model.classes_.dtype == model.predict(X).dtype == object
    assert isinstance(model.predict(X)[0], str)
    assert model.score(X, WORDS) > 0.95
    assert model.predict_proba(X).shape == (240, 3)
    assert model.predict_set(X).shape == (240, 3)
    assert model.compile().predict(X).dtype == object
    model.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.classes_.dtype == object
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert classifier().fit(X, WORDS.astype(str)).classes_.dtype.kind == "U"
    assert classifier().fit(X, list(WORDS)).classes_.dtype.kind == "U"


@pytest.mark.parametrize(
    ("kind", "labels", "expected"),
    [
        ("Int64", Y, "int64"),
        ("UInt8", Y, "uint8"),
        ("boolean", Y > 0, "bool"),
        ("string", WORDS, "object"),
        ("category", WORDS, "object"),
    ],
)
def test_labels_of_the_types_of_pandas(kind, labels, expected):
    pd = pytest.importorskip("pandas")
    series = pd.Series(labels).astype(kind)
    model = classifier().fit(X, series)
    assert model.classes_.tolist() == np.unique(labels).tolist()
    if expected == "uint8":
        expected = "int64"  # labels are whole numbers of 64 bits
    assert model.predict(X).dtype == expected
    frame = pd.DataFrame(X, columns=[f"bin {i}" for i in range(64)])
    assert classifier().fit(frame, series).score(frame, series.to_numpy()) > 0.95
    missing = series.mask(np.arange(240) == 7)
    with pytest.raises(ValueError, match="y, row 7: no label"):
        classifier().fit(X, missing)


def test_numbers_of_the_types_of_pandas():
    pd = pytest.importorskip("pandas")
    model = regressor().fit(X, pd.Series(TARGETS).astype("Float64"))
    assert np.array_equal(model.predict(X), regressor().fit(X, TARGETS).predict(X))


def test_columns_in_another_order_are_refused_with_a_remedy():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"bin {i}" for i in range(64)])
    for model in (classifier().fit(frame, Y), classifier().fit(frame, Y).compile()):
        for other in (frame[frame.columns[::-1]], frame.drop(columns="bin 3"), frame.assign(more=1.0)):
            with pytest.raises(ValueError, match=r"(?s)names should match.*X\[list\(model.feature_names_in_\)\]"):
                model.predict(other)
    shuffled = frame[frame.columns[::-1]]
    assert np.array_equal(model.predict(shuffled[list(model.feature_names_in_)]), model.predict(frame))
