"""Weights of rows, for every estimator and loss: an integer weight equals repeated rows, and 0 an absent row; equal
weights change nothing; frequencies count as many rows as they say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import GroupKFold

from chimap import (
    AnchorMap,
    HistogramClassifier,
    HistogramRegressor,
    LandmarkFeatures,
    LookupClassifier,
    MultipleKernelLearner,
    OnlineIntersectionClassifier,
    PrincipalFeatures,
)
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.engines import Stopwatch
from chimap.features.fourier import FourierFeatures, WidthFeatures
from chimap.kernel_learning.tuning import TuningRows
from chimap.kernel_learning.widths import WidthObjective, WidthPenalty
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows
from chimap.moments import GivenFolds, Moments, unit_of
from chimap.recipe.codecs import ClassCodec
from chimap.recipe.parts import FeatureBlock
from chimap.recipe.preparation import Preparation
from chimap.selection.gcv import choose_by_gcv

from ..held_out import watched
from ..histograms import classes
from .estimators import ESTIMATORS, TARGETS, Y, answers, made
from .estimators import X as ROWS

LEFT = {"precision": "float64", "random_state": 0}
FIXED = {"precision": "float64", "random_state": 0, "features": "additive"}


def rows(n_classes=3, n=90):
    """Histograms, labels, weights 0 to 3, and the places of the rows that these stand for."""
    X, y = classes(n, 10, n_classes)
    weights = np.random.default_rng(1).integers(0, 4, n)
    return X, y, weights, np.repeat(np.arange(n), weights)


CLASSIFIERS = {
    loss: HistogramClassifier("linear", loss=loss, alpha=0.3, **FIXED)
    for loss in ("square", "logistic", "squared_hinge", "smooth_hinge")
} | {
    "two blocks": HistogramClassifier("linear", blocks=[slice(0, 5), slice(5, 10)], alpha=0.3, **FIXED),
    "components": HistogramClassifier("linear", alpha=0.3, **FIXED | {"features": PrincipalFeatures(4, "additive")}),
    "exact": HistogramClassifier("gaussian", gamma=2.0, alpha=0.3, **FIXED | {"features": "exact"}),
    "online": OnlineIntersectionClassifier(max_iter=2, random_state=0, weights="frequency"),
}
REGRESSORS = {
    "square": HistogramRegressor("linear", alpha=0.3, **FIXED),
    "epsilon_insensitive": HistogramRegressor("linear", loss="epsilon_insensitive", alpha=0.3, **FIXED),
    "exact": HistogramRegressor("gaussian", gamma=2.0, alpha=0.3, **FIXED | {"features": "exact"}),
}


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, n_classes, kind):
    X, y, weights, repeated = rows(n_classes)
    X, model = kind(X), CLASSIFIERS[name]
    found = model.fit(X, y, sample_weight=weights).decision_function(X)
    np.testing.assert_allclose(found, model.fit(X[repeated], y[repeated]).decision_function(X), atol=1e-9)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    X, _, weights, repeated = rows()
    y = np.sqrt(X[:, 0]) - X[:, 1]
    model = REGRESSORS[name]
    found = model.fit(X, y, sample_weight=weights).predict(X)
    np.testing.assert_allclose(found, model.fit(X[repeated], y[repeated]).predict(X), atol=1e-9)


def with_gaps(Y):
    """A matrix of targets some entries of which are missing."""
    return np.where(np.random.default_rng(5).random(Y.shape) < 0.2, np.nan, Y)


@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("features", ["additive", "exact"])
def test_several_targets(features, has_gaps):
    """Each row has one weight for all of its entries."""
    X, y, weights, repeated = rows()
    Y = np.column_stack([np.sqrt(X[:, 0]), X[:, 1] - X[:, 2], y])
    tasks = np.column_stack([X[:, 0] > 0.1, X[:, 1] > X[:, 2], y > 0]).astype(float)
    if has_gaps:
        Y, tasks = with_gaps(Y), with_gaps(tasks)
    kernel = "linear" if features == "additive" else "gaussian"
    settings = {"gamma": 2.0, "alpha": 0.3, **FIXED | {"features": features}}
    model = HistogramRegressor(kernel, **settings)
    found = model.fit(X, Y, sample_weight=weights).predict(X)
    np.testing.assert_allclose(found, model.fit(X[repeated], Y[repeated]).predict(X), atol=1e-8)
    of_labels = HistogramClassifier(kernel, **settings)
    found = of_labels.fit(X, tasks, sample_weight=weights).decision_function(X)
    expected = of_labels.fit(X[repeated], tasks[repeated]).decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_several_kernels(loss):
    X, y, weights, repeated = rows()
    found = []
    for places, own in ((np.arange(90), weights), (repeated, None)):
        model = MultipleKernelLearner("linear", features="additive", loss=loss, alpha=0.3, precision="float64")
        model.set_params(blocks=[slice(0, 5), slice(5, 10)], random_state=0)
        found.append(model.fit(X[places], y[places], sample_weight=own).decision_function(X))
    # each to its own tolerance
    np.testing.assert_allclose(found[0], found[1], atol=1e-7 if loss == "square" else 2e-3)


@pytest.mark.parametrize("kind", ["training", "held-out"])
def test_widths_of_random_features(kind):
    """The objective of the widths and its gradient, of folds that keep repeated rows together."""
    X, y, weights, repeated = rows()
    codec = ClassCodec.of(y)
    features = WidthFeatures("gaussian", 32, widths="bin", blocks=None, random_state=0).fit(X)
    folds = np.random.default_rng(0).integers(0, 3, 90)
    found = []
    there = np.flatnonzero(weights)
    for places, own in ((there, weights[there].astype(float)), (repeated, None)):
        source = ArraySource(X[places], y[places])
        source.weights = own
        part = FeatureBlock("all", np.arange(10), FourierFeatures("gaussian"))
        prepared = PreparedRows(
            source, Preparation([part], np.dtype(float), None), codec, GivenFolds(folds[places], 3), 0
        )
        tuned = TuningRows(prepared, 50, Stopwatch())
        objective = WidthObjective(features, tuned, kind, WidthPenalty("l2", 0.1))
        found.append(objective(np.append(features.start_ + 0.1, 0.3)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-7, atol=1e-10)


def test_boosting_of_machines():
    """Shares of a whole, as boosting gives them, that change from round to round."""
    X, y, _, _ = rows(2)
    machine = HistogramClassifier("linear", alpha=1e-3, random_state=0)
    boosted = AdaBoostClassifier(machine, n_estimators=4, random_state=0).fit(X, y)
    assert len(boosted.estimators_) > 1
    assert boosted.score(X, y) >= boosted.estimators_[0].score(X, y) - 0.05


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_hinge_to_its_tolerance(n_classes):
    X, y, weights, repeated = rows(n_classes)
    model = HistogramClassifier("linear", loss="hinge", alpha=0.05, **FIXED)
    model.set_params(normalize="sqrt")
    found, expected = (
        model.fit(X, y, sample_weight=weights).decision_function(X),
        model.fit(X[repeated], y[repeated]).decision_function(X),
    )
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())
    plain = model.fit(X, y).decision_function(X)
    assert np.abs(found - plain).max() > 0.1 * np.abs(expected).max()


def test_codes_that_are_looked_up():
    X, y, weights, repeated = rows()
    psi = AnchorMap("chi2", n_anchors=9).fit(X)
    codes = psi.encode(X)
    model = LookupClassifier(psi)
    found = model.fit_codes(codes, y, psi, weights).decision_function(X)
    expected = model.fit_codes(codes[repeated], y[repeated], psi).decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("features", ["landmarks", "fourier", "additive", "exact"])
def test_a_weight_of_0_is_an_absent_row(features, n_classes):
    """Whatever depends on a sample: landmarks, maps, the mean distance, the choice of alpha, probabilities."""
    X, y, weights, _ = rows(n_classes)
    kernel = "chi2" if features == "additive" else "exp-chi2"
    model = HistogramClassifier(kernel, features=features, n_components=16, random_state=0)
    found = model.fit(X, y, sample_weight=weights)
    probabilities, alpha = found.predict_proba(X), found.alpha_
    there = weights > 0
    expected = model.fit(X[there], y[there], sample_weight=weights[there])
    np.testing.assert_array_equal(probabilities, expected.predict_proba(X))
    assert alpha == expected.alpha_
    assert found.n_rows_ == there.sum()


@pytest.mark.parametrize("loss", ["square", "logistic", "hinge"])
def test_equal_weights_are_none(loss):
    X, y, _, _ = rows()
    model = HistogramClassifier("exp-chi2", features="landmarks", n_components=16, loss=loss, random_state=0)
    found = model.fit(X, y, sample_weight=np.ones(len(y))).predict_proba(X)
    np.testing.assert_allclose(found, model.fit(X, y).predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("selection", ["gcv", "folds"])
def test_the_choice_of_alpha(selection):
    """By folds of whole groups, and by generalised cross-validation: sums of weights are numbers of rows."""
    Z, Y = np.random.default_rng(0).standard_normal((2, 60, 5))
    y, weights = Z[:, 0] + Y[:, 0], np.random.default_rng(1).integers(1, 4, 60)
    repeated = np.repeat(np.arange(60), weights)
    groups = np.arange(60) % 5
    several = [0.1, 1.0, 10.0, 100.0]
    if selection == "gcv":
        model = HistogramRegressor("gaussian", features=LandmarkFeatures(landmarks=Z[:8]), gamma=0.1, **LEFT)
        model.set_params(selection="gcv", alpha=several, weights="frequency")
        found = model.fit(Z, y, sample_weight=weights).selection_.means
        np.testing.assert_allclose(found, model.fit(Z[repeated], y[repeated]).selection_.means, rtol=1e-9)
        return
    model = HistogramRegressor("linear", alpha=several, selection=GroupKFold(5), **FIXED)
    Z = np.abs(Z)
    found = model.fit(Z, y, sample_weight=weights, groups=groups).selection_
    expected = model.fit(Z[repeated], y[repeated], groups=groups[repeated]).selection_
    order = np.lexsort(found.scores)
    np.testing.assert_allclose(found.means, expected.means, rtol=1e-9)
    assert sorted(found.weights) == sorted(expected.weights)
    assert order.size == found.n_folds


@pytest.mark.covering(1)
@pytest.mark.parametrize("scale", [4.0, 2.0**-20])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_weights_change_nothing(name, scale):
    """Of any size: no choice, probability, set or deviation; a given strength beside a sum of losses grows with them.

    Powers of two, so that weighted sums round alike.
    """
    model, again = made(name), made(name)
    y = TARGETS if is_regressor(model) else Y
    alpha = model.get_params().get("alpha", "auto")
    if not isinstance(alpha, str) and name != "online":  # whose strength stands beside a mean loss
        again.set_params(alpha=scale * alpha if np.ndim(alpha) == 0 else [scale * one for one in alpha])
    model.fit(ROWS, y)
    again.fit(ROWS, y, sample_weight=np.full(len(y), scale))
    for way, expected in answers(model).items():
        found = answers(again)[way]
        np.testing.assert_allclose(found * 1.0, expected * 1.0, rtol=1e-4, atol=1e-4, err_msg=way)
    if getattr(model, "noise_variance_", None) is not None and getattr(model, "_posterior", None) is not None:
        found, expected = (one.predict(ROWS, return_std=True)[1] for one in (again, model))
        np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "chi2", "features": "additive"},
        {"kernel": "exp-chi2", "features": "landmarks", "n_components": 20},
        {"kernel": "exp-chi2", "features": "landmarks", "n_components": 20, "loss": "logistic"},
        {"kernel": "chi2", "features": "additive", "loss": "hinge"},
        {"kernel": "chi2", "features": "additive", "selection": "holdout"},
        {"kernel": "chi2", "features": PrincipalFeatures([4, 8], "additive")},
        {"kernel": "exp-chi2", "features": "exact"},
        {},
    ],
    ids=str,
)
def test_equal_weights_choose_the_same(settings):
    X, y, _, _ = rows(3, 200)
    model = HistogramClassifier(random_state=0, threshold=None, **settings).fit(X, y)
    alpha, probabilities = model.alpha_, model.predict_proba(X)
    model.fit(X, y, sample_weight=np.full(200, 16.0))
    assert model.alpha_ == pytest.approx(16 * alpha, rel=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), probabilities, atol=1e-3)


def test_few_heavy_rows_count_as_few():
    """A class of weight 20 leaves generalised cross-validation about 200 of 1000 rows to estimate an error from."""
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((1000, 300)), rng.integers(0, 10, 1000)
    weights = np.where(y == 0, 20.0, 1.0)
    moments = Moments(300, 1).update(Z, Z[:, 0] + 3 * rng.standard_normal(1000), weights)
    n_rows = moments.count / unit_of(weights)
    assert n_rows == pytest.approx(weights.sum() ** 2 / np.square(weights).sum())
    _, chosen, _ = choose_by_gcv(moments, n_rows=n_rows)
    assert chosen.settings["df"][chosen.chosen] < n_rows < 300


def test_frequencies_are_repeated_rows():
    """Where the copies of a row are left out together: answers, choice, probabilities, sets, deviations."""
    X, y, weights, repeated = rows(2, 80)
    target = np.sqrt(X[:, 0]) - X[:, 1] + 0.1 * np.random.default_rng(0).standard_normal(80)
    settings = {"features": "exact", "gamma": 2.0, "precision": "float64", "random_state": 0}
    for make, labels in ((HistogramClassifier, y), (HistogramRegressor, target)):
        one = make("gaussian", weights="frequency", alpha=[1e-3, 0.1, 10.0], **settings)
        many = make("gaussian", alpha=[1e-3, 0.1, 10.0], **settings)
        one.fit(X, labels, sample_weight=weights, groups=np.arange(80))
        many.fit(X[repeated], labels[repeated], groups=repeated)
        assert one.alpha_ == many.alpha_
        np.testing.assert_allclose(one.selection_.scores, many.selection_.scores, rtol=1e-8)
        np.testing.assert_allclose(one.predict_set(X, 0.2) * 1.0, many.predict_set(X, 0.2) * 1.0, atol=1e-9)
        if make is HistogramClassifier:
            np.testing.assert_allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-5)
        else:
            stds = (model.predict(X, return_std=True)[1] for model in (one, many))
            np.testing.assert_allclose(*stds, rtol=1e-6)


def test_frequencies_are_counted_with_the_weights_of_classes():
    """c rows of weight f count as (sum c f)^2 / sum c f^2 rows."""
    X, y, weights, repeated = rows(2, 80)
    seen = []
    for places, own in ((np.arange(80), weights), (repeated, None)):
        model = HistogramClassifier("linear", weights="frequency", class_weight={0: 5.0}, alpha=[0.1, 1.0], **FIXED)
        model.set_params(selection="gcv")
        seen.append(model.fit(X[places], y[places], sample_weight=own).selection_)
    np.testing.assert_allclose(seen[0].means, seen[1].means, rtol=1e-8)
    np.testing.assert_allclose(seen[0].settings["df"], seen[1].settings["df"], rtol=1e-8)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_frequencies_are_whole_numbers(name):
    model = made(name)
    if "weights" not in model.get_params():
        pytest.skip("its answers do not depend on a number of rows")
    y = TARGETS if is_regressor(model) else Y
    weights = np.full(len(y), 2.0)
    weights[7] = 1.5
    with pytest.raises(DataError, match=r"row 7: 1.5. With weights='frequency' a weight is a number of equal rows"):
        model.set_params(weights="frequency").fit(ROWS, y, sample_weight=weights)
    with pytest.raises(ValueError, match="weights must be one of 'importance', 'frequency'; got 'often'"):
        model.set_params(weights="often").fit(ROWS, y, sample_weight=np.full(len(y), 2.0))


def test_weights_of_any_size():
    """c times the weights at c times the strength is the same model; the search for a strength follows them."""
    X, y, weights, _ = rows()
    model = HistogramClassifier("linear", **FIXED)
    expected = model.set_params(alpha=0.3).fit(X, y, sample_weight=weights).decision_function(X)
    for scale in (1e-6, 1e6):
        found = model.set_params(alpha=0.3 * scale).fit(X, y, sample_weight=scale * weights)
        np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-9)
    auto = HistogramClassifier("linear", alpha="auto", **FIXED)
    share = weights / weights.sum()  # as boosting gives them
    mean = weights[weights > 0].mean()
    found = auto.fit(X, y, sample_weight=share)
    expected = HistogramClassifier("linear", alpha="auto", **FIXED).fit(X, y, sample_weight=weights / mean)
    assert found.alpha_ * weights.sum() / mean == pytest.approx(expected.alpha_, rel=1e-6)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-6)


def test_batches_add_up():
    X, y, weights, repeated = rows()
    model = HistogramClassifier("linear", alpha=0.3, **FIXED)
    expected = model.fit(X[repeated], y[repeated]).decision_function(X)
    grown = HistogramClassifier("linear", alpha=0.3, **FIXED)
    for part in (slice(0, 40), slice(40, 90)):
        grown.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=weights[part])
    np.testing.assert_allclose(grown.decision_function(X), expected, atol=1e-9)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_chunks_folds_and_kept_features(loss):
    """Whatever the chunks: features that are computed again, and those that are kept."""
    X, y, weights, _ = rows(3, 3000)
    X = X.astype(np.float32)
    settings = {"kernel": "chi2", "loss": loss, "alpha": [0.1, 1.0], "random_state": 0, "selection": 3}
    whole = HistogramClassifier(**settings).fit(X, y, sample_weight=weights)
    little = HistogramClassifier(**settings, memory="4MiB").fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(little.selection_.means, whole.selection_.means, rtol=1e-3)
    np.testing.assert_allclose(little.feature_coef_, whole.feature_coef_, atol=2e-2 * np.abs(whole.feature_coef_).max())


def test_components_of_rows_without_labels():
    """Rows that join the components alone count once each."""
    X, y, weights, repeated = rows()
    others = ArraySource(classes(60, 10, seed=4)[0])
    model = HistogramClassifier("linear", alpha=0.3, **FIXED | {"features": PrincipalFeatures(4, "additive")})
    found = model.fit_source(ArraySource(X, y), sample_weight=weights, unlabelled=others).decision_function(X)
    source = ArraySource(X[repeated], y[repeated])
    expected = model.fit_source(source, unlabelled=others).decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-9)


LEAVING_OUT = {
    "ridge": HistogramRegressor("linear", alpha=0.3, **FIXED),
    "components": HistogramRegressor("linear", alpha=0.3, **FIXED | {"features": PrincipalFeatures(10, "additive")}),
    "exact": HistogramRegressor("gaussian", gamma=2.0, alpha=0.3, **FIXED | {"features": "exact"}),
}


@pytest.mark.parametrize("name", LEAVING_OUT)
def test_a_row_is_left_out_with_all_its_weight(name, monkeypatch):
    """Outputs by closed forms are those of a machine that is fitted without the row."""
    X, _, weights, _ = rows(2, 40)
    y, weights = np.sqrt(X[:, 0]) - X[:, 1] + np.arange(40) / 100, weights + 0.5
    seen = watched(monkeypatch)
    model = LEAVING_OUT[name]
    if name == "components":  # which are those of all rows
        model = LEAVING_OUT["ridge"]
    model.fit(X, y, sample_weight=weights)
    found, places = seen[0], [int(np.flatnonzero(y == value)[0]) for value in seen[0].y]
    assert found.y.size == 40
    np.testing.assert_array_equal(found.weights, weights[places])
    for k in (0, 17, 39):
        rest = np.arange(40) != places[k]
        expected = model.fit(X[rest], y[rest], sample_weight=weights[rest]).predict(X[[places[k]]])
        np.testing.assert_allclose(found.outputs[k], expected, atol=1e-8)


def test_exact_machines_choose_by_weighted_scores():
    """Repeated rows that are left out together are the row of a weight."""
    X, _, weights, repeated = rows(2, 60)
    y = np.sqrt(X[:, 0]) - X[:, 1] + 0.1 * np.random.default_rng(0).standard_normal(60)
    model = HistogramRegressor("gaussian", gamma=2.0, alpha=[1e-3, 0.1, 10.0], **FIXED | {"features": "exact"})
    found = model.fit(X, y, sample_weight=weights, groups=np.arange(60)).selection_
    expected = model.fit(X[repeated], y[repeated], groups=repeated).selection_
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-8)
    plain = model.fit(X[weights > 0], y[weights > 0]).selection_
    assert np.abs(found.scores - plain.scores).min() > 1e-3


@pytest.mark.parametrize("features", ["landmarks", "fourier", "exact"])
def test_samples_have_the_weights_in_them(features):
    """The mean distance, and with it gamma, is that of the rows as often as they count."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.dirichlet(np.full(10, 0.3), 150), rng.dirichlet(np.full(10, 30.0), 150)])
    y, weights = np.arange(300) % 2, np.repeat([1, 9], 150)
    model = HistogramClassifier("exp-chi2", features=features, n_components=20, alpha=1.0, random_state=0)

    def gamma(*rows, **given):
        return float(model.fit(*rows, **given).kernel_.gamma)

    plain, weighted = gamma(X, y), gamma(X, y, sample_weight=weights)
    repeated = np.repeat(np.arange(300), weights)
    assert weighted == pytest.approx(gamma(X[repeated], y[repeated]), rel=0.15)
    assert weighted > 2 * plain


@pytest.mark.parametrize("features", ["landmarks", "fourier", "additive"])
def test_samples_are_drawn_in_proportion_to_weights(features, monkeypatch):
    """What maps, landmarks and nodes are learned from: rows of a class that has nine tenths of the weights."""
    X, y = classes(3000, 10, 2)
    fit, drawn = Method.features, []
    monkeypatch.setattr(Method, "features", lambda self, rows, *more: (drawn.append(rows), fit(self, rows, *more))[1])
    monkeypatch.setattr("chimap.machines.rows.sample_size", lambda source, parts: 2000)
    kernel = "chi2" if features == "additive" else "exp-chi2"
    model = HistogramClassifier(kernel, features=features, n_components=20, alpha=1.0, **LEFT)
    model.fit(X, y, sample_weight=np.where(y == 1, 9 * (y == 0).sum(), (y == 1).sum()))
    of_row = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
    share = np.mean([of_row[row.tobytes()] for row in drawn[0]])
    assert share == pytest.approx(0.9, abs=0.01)
