"""Weights of rows and classes, and thresholds, as users give them: rightly and wrongly."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.metrics import balanced_accuracy_score, f1_score, recall_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import compute_class_weight, compute_sample_weight
from sklearn.utils.estimator_checks import check_class_weight_classifiers

from chimap import (
    AnchorMap,
    FourierKernelLearner,
    HistogramClassifier,
    HistogramRegressor,
    LookupClassifier,
    MultipleKernelLearner,
    OnlineIntersectionClassifier,
    load,
    open_source,
)
from chimap._validation import DataError
from chimap.data import ArraySource

from ..histograms import classes

LINEAR = HistogramClassifier("linear", alpha=0.3, precision="float64", random_state=0)
SMALL = {"n_components": 16, "random_state": 0}
LEARNERS = {
    "ridge": LINEAR,
    "landmarks": HistogramClassifier("exp-chi2", features="landmarks", **SMALL),
    "exact": HistogramClassifier("exp-chi2", features="exact", alpha=1.0, random_state=0),
    "logistic": HistogramClassifier("chi2", loss="logistic", random_state=0),
    "hinge": HistogramClassifier("chi2", loss="hinge", random_state=0),
    "widths": FourierKernelLearner(**SMALL, n_tune_components=8, max_iter=2),
    "several kernels": MultipleKernelLearner(blocks=[slice(0, 10), slice(10, 20)], n_alphas=4, **SMALL),
    "codes": LookupClassifier(AnchorMap("chi2", n_anchors=9)),
    "online": OnlineIntersectionClassifier(max_iter=3, random_state=0),
}
every_learner = pytest.mark.parametrize("model", LEARNERS.values(), ids=LEARNERS)


def unequal(n_rows=400, share=0.12, seed=0):
    """Two classes of which the second, 1, is rare, and hard to tell."""
    X, y = classes(4 * n_rows, n_classes=2, seed=seed)
    rare = np.flatnonzero(y == 1)[: int(share * n_rows)]
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(np.concatenate([np.flatnonzero(y == 0)[: n_rows - rare.size], rare]))
    noise = rng.dirichlet(np.full(20, 0.5), chosen.size)
    return 0.4 * X[chosen] + 0.6 * noise, y[chosen]


@every_learner
def test_weights_of_classes_are_those_of_their_rows(model):
    X, y = unequal(150)
    weights = np.random.default_rng(0).random(150) + 0.5
    model = sklearn.base.clone(model)
    for given in ("balanced", {0: 0.5, 1: 4.0}, {1: 3.0}):
        found = model.set_params(class_weight=given).fit(X, y, sample_weight=weights).decision_function(X)
        each = compute_class_weight(given, classes=np.array([0, 1]), y=y, sample_weight=weights)[y]
        np.testing.assert_allclose(model.class_weight_[y], each)
        expected = model.set_params(class_weight=None).fit(X, y, sample_weight=weights * each)
        assert model.class_weight_ is None
        np.testing.assert_allclose(found, expected.decision_function(X), rtol=1e-6, atol=1e-9)


@every_learner
def test_a_rare_class_is_found(model):
    X, y = unequal(400)
    learn, other = slice(0, 200), slice(200, 400)
    model = sklearn.base.clone(model).set_params(class_weight=None)
    plain = model.fit(X[learn], y[learn]).predict(X[other])
    found = model.set_params(class_weight={0: 1.0, 1: 8.0}).fit(X[learn], y[learn]).predict(X[other])
    assert recall_score(y[other], found) >= recall_score(y[other], plain)
    assert found.sum() > plain.sum()


def test_scikit_learns_check_on_rows_of_any_sign():
    check_class_weight_classifiers("HistogramClassifier", HistogramClassifier("gaussian", n_components=64))


@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.5, 1: 8.0}])
@pytest.mark.parametrize("settings", [{"features": "additive"}, {"features": "fourier", "n_components": 64}])
def test_probabilities_are_calibrated_on_rows_of_all_classes(class_weight, settings):
    """Rows that the features were not fitted on are those of little weight: of one class, they calibrate nothing."""
    X, y = unequal(300, share=0.25)
    model = HistogramClassifier(
        "chi2" if settings["features"] == "additive" else "exp-chi2",
        alpha=0.1,
        class_weight=class_weight,
        random_state=0,
        **settings,
    ).fit(X, y)
    weights = model.class_weight_[y]
    P = model.predict_proba(X)[:, 1]
    assert np.average(P, weights=weights) == pytest.approx(np.average(y, weights=weights), abs=0.05)
    assert np.average(P[y == 1]) > 0.7
    assert np.average(P[y == 0]) < 0.3 + 0.2 * (class_weight != "balanced")


def test_a_gamma_is_chosen_with_weights_of_classes_once():
    X, y = unequal(300, share=0.25)
    settings = {"features": "landmarks", "n_components": 40, "gamma": "auto", "alpha": 0.01, "random_state": 0}
    by_class = HistogramClassifier("exp-chi2", class_weight={1: 30.0}, **settings).fit(X, y)
    by_row = HistogramClassifier("exp-chi2", **settings).fit(X, y, sample_weight=np.where(y == 1, 30.0, 1.0))
    assert by_class.kernel_.gamma == by_row.kernel_.gamma
    assert np.allclose(by_class.decision_function(X), by_row.decision_function(X))


def test_labels_of_text():
    X, y = unequal(150)
    words = np.array(["many", "rare"])[y]
    found = HistogramClassifier("linear", class_weight={"rare": 5.0}, random_state=0).fit(X, words)
    assert found.class_weight_.tolist() == [1.0, 5.0]
    with pytest.raises(ValueError, match="class_weight names 'Rare', which is none of the classes 'many', 'rare'"):
        HistogramClassifier("linear", class_weight={"Rare": 5.0}).fit(X, words)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("equal", "class_weight must be None, 'balanced', or a dictionary"),
        ([1.0, 2.0], "class_weight must be None, 'balanced', or a dictionary"),
        ({0: -1.0}, "0 has the weight -1.0; weights of classes are numbers from 1e-12 to 1e12"),
        ({0: 0}, "To leave a class out, give its rows sample_weight 0"),
        ({1: float("nan")}, "1 has the weight nan"),
        ({2: 1.0}, "class_weight names 2, which is none of the classes 0, 1"),
    ],
)
@pytest.mark.parametrize("name", ["ridge", "exact", "codes"])
def test_bad_weights_of_classes(name, class_weight, message):
    X, y = unequal(60)
    model = sklearn.base.clone(LEARNERS[name]).set_params(class_weight=class_weight)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 59, r"one weight for each of the 60 rows, shape \(60,\); got \(59,\)"),
        (np.ones((60, 2)), r"shape \(60,\); got \(60, 2\)"),
        (np.ones((60, 1)), "Pass it as ravel"),
        ([1.0] * 7 + [-0.5] + [1.0] * 52, "sample_weight, row 7: -0.5; weights are finite and at least 0"),
        ([np.nan] + [1.0] * 59, "sample_weight, row 0: nan"),
        ([1.0, np.inf] + [1.0] * 58, "sample_weight, row 1: inf"),
        (np.zeros(60), "sample_weight: all weights are zero"),
        (["a"] * 60, "sample_weight must be numbers"),
    ],
)
@every_learner
def test_bad_weights(model, weights, message):
    X, y = unequal(60)
    with pytest.raises(ValueError, match=message):
        sklearn.base.clone(model).fit(X, y, sample_weight=weights)


def test_weights_that_leave_one_class():
    X, y = unequal(60)
    with pytest.raises(DataError, match="one class only: all labels are 0"):
        LINEAR.fit(X, y, sample_weight=1 - y)


def test_regressions_have_no_classes():
    for name in ("class_weight", "threshold", "positive"):
        assert name in HistogramClassifier().get_params()
        with pytest.raises(TypeError, match=name):
            HistogramRegressor("linear", **{name: "balanced"})


def test_batches_know_weights_by_label_alone():
    X, y = unequal(100)
    with pytest.raises(ValueError, match="'balanced' needs the labels of all rows, and partial_fit sees only a batch"):
        sklearn.base.clone(LINEAR).set_params(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    weights = {0: 0.5, 1: 4.0}
    grown = sklearn.base.clone(LINEAR).set_params(class_weight=weights)
    for part in (slice(0, 50), slice(50, 100)):
        grown.partial_fit(X[part], y[part], classes=[0, 1])
    whole = sklearn.base.clone(LINEAR).set_params(class_weight=weights).fit(X, y)
    np.testing.assert_allclose(grown.decision_function(X), whole.decision_function(X), atol=1e-9)


def test_sources_and_checkpoints(tmp_path):
    X, y = unequal(200)
    weights = np.random.default_rng(0).integers(1, 3, 200)
    np.save(tmp_path / "rows.npy", X)
    source = open_source(tmp_path / "rows.npy", y)
    found = sklearn.base.clone(LINEAR).fit_source(source, sample_weight=weights)
    assert source.weights is None
    expected = sklearn.base.clone(LINEAR).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.feature_coef_, expected.feature_coef_, atol=1e-9)
    path = tmp_path / "fit.checkpoint"
    from chimap.fit.checkpoint import Checkpoint

    kept = Checkpoint(path, 1e-9)
    settings = {"n_components": 16, "features": "landmarks", "alpha": 1.0, "random_state": 0}
    HistogramClassifier("exp-chi2", **settings).fit_source(source, sample_weight=weights, checkpoint=kept)
    with pytest.raises(DataError, match=r"is the checkpoint of another fit: source rows.npy: weights was"):
        HistogramClassifier("exp-chi2", **settings).fit_source(source, sample_weight=weights + 1, checkpoint=kept)


def test_routing_of_metadata():
    """Weights reach fits and scores through pipelines, grids and folds."""
    X, y = unequal(120)
    weights = compute_sample_weight("balanced", y)
    with sklearn.config_context(enable_metadata_routing=True):
        model = HistogramClassifier("linear", alpha=1.0, random_state=0)
        model.set_fit_request(sample_weight=True, groups=False).set_score_request(sample_weight=True)
        pipeline = make_pipeline(Normalizer("l1"), model)
        search = GridSearchCV(pipeline, {"histogramclassifier__alpha": [1.0, 10.0]}, cv=2)
        search.fit(X, y, sample_weight=weights)
        alpha = search.best_params_["histogramclassifier__alpha"]
        rows = Normalizer("l1").transform(X)
        peer = HistogramClassifier("linear", alpha=alpha, random_state=0).fit(rows, y, sample_weight=weights)
        np.testing.assert_allclose(search.decision_function(X), peer.decision_function(rows))
        scores = cross_validate(model, X, y, cv=2, params={"sample_weight": weights})["test_score"]
    assert scores.shape == (2,)


THRESHOLDS = {
    name: LEARNERS[name] for name in ("ridge", "landmarks", "exact", "logistic", "hinge", "widths", "several kernels")
}


@pytest.mark.slow
@pytest.mark.parametrize("model", THRESHOLDS.values(), ids=THRESHOLDS)
def test_thresholds(model, tmp_path):
    """Each is better by its measure on other rows than no threshold, and stays with the model."""
    X, y = unequal(600)
    learn, other = slice(0, 300), slice(300, 600)
    model = sklearn.base.clone(model).set_params(class_weight=None)
    plain = model.set_params(threshold=None).fit(X[learn], y[learn])
    outputs, probabilities = plain.decision_function(X[other]), plain.predict_proba(X[other])
    assert not hasattr(plain, "threshold_")
    before = plain.predict(X[other])
    measures = {"f1": f1_score, "balanced": balanced_accuracy_score}
    for wanted, score in measures.items():
        found = model.set_params(threshold=wanted).fit(X[learn], y[learn])
        after = found.predict(X[other])
        np.testing.assert_array_equal(after, found.classes_[(outputs > found.threshold_).astype(int)])
        np.testing.assert_allclose(found.decision_function(X[other]), outputs)
        np.testing.assert_allclose(found.predict_proba(X[other]), probabilities)
        assert score(y[other], after) >= score(y[other], before) - 0.1  # of some forty rows
    cheap = model.set_params(threshold=0.05).fit(X[learn], y[learn]).threshold_
    dear = model.set_params(threshold=50.0).fit(X[learn], y[learn])
    assert dear.threshold_ < cheap
    if hasattr(dear, "save"):
        dear.save(tmp_path / "a.model")
        again = load(tmp_path / "a.model")
        assert again.threshold_ == dear.threshold_
        np.testing.assert_array_equal(again.predict(X[other]), dear.predict(X[other]))
    copy = pickle.loads(pickle.dumps(dear))
    np.testing.assert_array_equal(copy.predict(X[other]), dear.predict(X[other]))
    assert not hasattr(model.set_params(threshold=None).fit(X[learn], y[learn]), "threshold_")


def test_a_threshold_counts_rows_as_they_come():
    """Weights of classes say what is learned; the measure of a threshold is of rows by their own weights."""
    X, y = unequal(300)
    model = HistogramClassifier("linear", class_weight="balanced", threshold="f1", random_state=0).fit(X, y)
    weighed = HistogramClassifier("linear", threshold="f1", random_state=0)
    weighed.fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    assert model.threshold_ != pytest.approx(weighed.threshold_)
    assert f1_score(y, model.predict(X)) > f1_score(y, weighed.predict(X))


def test_sets_and_intervals_count_rows_as_they_come():
    X, y = unequal(300)
    model = HistogramClassifier("linear", class_weight={0: 1.0, 1: 30.0}, alpha=1.0, random_state=0).fit(X, y)
    assert np.unique(model._conformal.weights.round(9)).size == 1
    weights = np.random.default_rng(0).random(300) + 0.2
    ends = []
    for scale in (1.0 / weights.mean(), 1e-6):
        regressor = HistogramRegressor("linear", alpha=scale, precision="float64", random_state=0)
        ends.append(regressor.fit(X, X[:, 0] ** 0.5, sample_weight=scale * weights).predict_set(X, alpha=0.2))
    assert np.isfinite(ends[0]).all()
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)


def test_a_source_may_have_its_weights():
    X, y = unequal(80)
    source = ArraySource(X, y)
    source.weights = np.arange(80.0)
    found = sklearn.base.clone(LINEAR).fit_source(source).feature_coef_
    expected = sklearn.base.clone(LINEAR).fit(X, y, sample_weight=np.arange(80.0)).feature_coef_
    np.testing.assert_array_equal(found, expected)
    source.weights = -np.ones(80)
    with pytest.raises(DataError, match="row 0: -1; weights are finite and at least 0"):
        sklearn.base.clone(LINEAR).fit_source(source)


def test_compiled_models_keep_the_threshold():
    X, y = unequal(200)
    model = HistogramClassifier("chi2", threshold="balanced", random_state=0).fit(X, y)
    assert np.mean(model.compile().predict(X) == model.predict(X)) > 0.98
    assert model.compile().threshold_ == model.threshold_


def test_thresholds_that_will_not_do():
    X, y = classes(60)
    with pytest.raises(ValueError, match="threshold='f1' needs two classes, and y has 3"):
        HistogramClassifier("linear", threshold="f1").fit(X, y)
    with pytest.raises(ValueError, match="threshold must be None, 'f1', 'balanced', or a cost"):
        HistogramClassifier("linear", threshold="best").fit(X, y > 1)


def test_the_race_takes_weights_and_thresholds():
    X, y = unequal(160)
    model = HistogramClassifier(class_weight="balanced", threshold="f1", random_state=0)
    model.fit(X, y, sample_weight=np.random.default_rng(0).integers(0, 3, 160))
    assert model.race_.trials[0].error == ""
    assert f1_score(y, model.predict(X)) > 0.3
