"""scikit-learn's own checks of estimators, and its tools around ours."""

from __future__ import annotations

import pickle
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from chimap import (
    AdditiveKPCA,
    AnchorMap,
    ChebyshevMap,
    CompressedMap,
    DirectMap,
    DirichletMap,
    FourierFeatures,
    FourierKernelLearner,
    FourierKernelRegressor,
    HistogramClassifier,
    HistogramRegressor,
    HomogeneousMap,
    LookupClassifier,
    MultipleKernelLearner,
    MultipleKernelRegressor,
    NystroemFeatures,
    OnlineIntersectionClassifier,
    OptimalMap,
    SignStableProjection,
    SkewedFourierFeatures,
    StaircaseMap,
    chi2,
)
from chimap._validation import DataError

from ..histograms import classes
from .checks import every_check, meets


def fails_by_the_check(estimator):
    """Checks that pass over what the estimator says of its input, or take what depends on a sample for what does not.

    Features are learned from a sample, which rows of a weight are drawn for by chance, and strengths are chosen by rows
    held out, alone where they are repeated: ``laws/test_weights.py`` holds the equivalence of all that remains.
    """
    found = {}
    if "sample_weight" in signature(getattr(estimator, "fit", None)).parameters:
        for kind in ("dense", "sparse"):
            found[f"check_sample_weight_equivalence_on_{kind}_data"] = AssertionError
    if hasattr(estimator, "predict_proba") and estimator.__sklearn_tags__().input_tags.positive_only:
        negative = ("check_decision_proba_consistency", "check_class_weight_classifiers")
        found |= dict.fromkeys(negative, DataError)
    if getattr(estimator, "kernel", None) == "auto":
        # Products of float32 round with the rows that they are multiplied with, on some processors by more than 1e-7.
        found["check_methods_subset_invariance"] = "an exact machine wins, whose outputs round to 2e-6"
    return found


@every_check(
    [
        OptimalMap(),
        CompressedMap(),
        AnchorMap(),
        FourierFeatures(n_components=64),
        SkewedFourierFeatures(n_components=64),
        NystroemFeatures(n_components=8),
        FourierKernelLearner(n_components=64, n_tune_components=32, max_iter=2),
        HistogramClassifier("exp-chi2", n_components=64),
        HistogramRegressor("exp-chi2", n_components=64),
        MultipleKernelLearner(n_components=16, n_alphas=3, selection=2),
    ]
)
def test_checks(estimator, check):
    meets(estimator, check, fails_by_the_check(estimator))


# laws of all maps hold most of it for those that are one class with another formula; fits of the default are races
@pytest.mark.slow
@every_check(
    [
        HistogramClassifier(),
        DirichletMap(),
        SignStableProjection(n_components=64),
        LookupClassifier(AnchorMap(n_anchors=20)),
        OnlineIntersectionClassifier(),
        DirectMap(),
        AdditiveKPCA(),
        ChebyshevMap(),
        HomogeneousMap(),
        StaircaseMap(),
        FourierKernelRegressor("gaussian", n_components=64, n_tune_components=32, max_iter=2, widths="bin"),
        MultipleKernelRegressor(n_components=16, n_alphas=8, selection=2),
    ]
)
def test_checks_of_other_classes(estimator, check):
    meets(estimator, check, fails_by_the_check(estimator))


@pytest.mark.thorough
@every_check(
    [
        HistogramRegressor(),
        DirectMap(per_bin=True),
        CompressedMap(per_bin=True),
        AnchorMap(anchors="kmeans", n_neighbors=2),
        AnchorMap(output="codes"),
        SignStableProjection(n_components=64, output="bits"),
        FourierFeatures("gaussian", n_components=64, sampling="structured"),
        HistogramClassifier("exp-chi2", n_components=64, loss="logistic"),
        HistogramRegressor("exp-chi2", n_components=64, loss="epsilon_insensitive"),
        LookupClassifier(loss="logistic"),
    ]
)
def test_checks_of_other_settings(estimator, check):
    meets(estimator, check, fails_by_the_check(estimator))


def test_grid_search_over_a_pipeline():
    X, y = classes(200)
    pipeline = make_pipeline(Normalizer("l1"), HistogramClassifier("exp-chi2", n_components=32, random_state=0))
    search = GridSearchCV(pipeline, {"histogramclassifier__kernel": ["exp-chi2", "hellinger"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5


@pytest.mark.parametrize("kernel", ["exp-chi2", chi2.with_gamma(0.5), chi2.signed()])
def test_clone_and_pickle(kernel):
    X, y = classes(200)
    model = HistogramClassifier(kernel, n_components=32, random_state=0)
    assert clone(model).get_params()["kernel"] == kernel
    copy = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))


def test_the_signature_is_read_once():
    """Reading it takes a millisecond, and a fit asks for the parameters some twenty times."""
    assert HistogramRegressor._get_param_names() is HistogramRegressor._get_param_names()
    assert HistogramRegressor._get_param_names() != FourierKernelRegressor._get_param_names()
    assert set(HistogramRegressor().get_params()) == set(signature(HistogramRegressor).parameters)


@pytest.mark.parametrize(
    ("classifier", "regressor", "apart"),
    [
        (
            HistogramClassifier,
            HistogramRegressor,
            {"class_weight", "threshold", "positive", "ordered", "label_tree", "quantile"},
        ),
        (FourierKernelLearner, FourierKernelRegressor, {"class_weight", "threshold", "positive"}),
        (MultipleKernelLearner, MultipleKernelRegressor, {"class_weight", "threshold", "positive"}),
    ],
)
def test_classifier_and_regressor_differ_by_what_is_about_classes_and_quantiles(classifier, regressor, apart):
    of_classes, of_targets = signature(classifier).parameters, signature(regressor).parameters
    assert of_classes.keys() ^ of_targets.keys() == apart
    assert [str(p) for name, p in of_classes.items() if name not in apart] == [
        str(p) for name, p in of_targets.items() if name not in apart
    ]
    for cls in (classifier, regressor):
        assert (
            clone(cls(alpha=2.0, weights="frequency")).get_params() == cls(alpha=2.0, weights="frequency").get_params()
        )
