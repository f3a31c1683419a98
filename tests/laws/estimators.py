"""Every public estimator, and what the laws ask of them."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, clone

from chimap import (
    AnchorMap,
    AutomaticFeatures,
    DirectMap,
    Exponential,
    FourierFeatures,
    FourierKernelLearner,
    FourierKernelRegressor,
    HistogramClassifier,
    HistogramRegressor,
    HomogeneousMap,
    LookupClassifier,
    MultipleKernelLearner,
    MultipleKernelRegressor,
    OnlineIntersectionClassifier,
    chi2,
)

from ..histograms import classes

X, Y = classes(90, 8)
X = X.astype(np.float32).astype(np.float64)  # values that both types hold
TARGETS = X[:, 0] + np.sqrt(X[:, 1])
HALVES = {"a": slice(0, 4), "b": slice(4, 8)}
GIVEN = {"alpha": 0.1, "random_state": 0}
FEW = {"n_components": 16, **GIVEN}
LEARNER = {"n_components": 16, "max_iter": 2, "random_state": 0}

ESTIMATORS: dict[str, BaseEstimator] = {
    "classifier, exact": HistogramClassifier("exp-chi2", features="exact", **GIVEN),
    "classifier, landmarks": HistogramClassifier("exp-chi2", features="landmarks", **FEW),
    "classifier, fourier": HistogramClassifier("exp-chi2", features="fourier", **FEW),
    "classifier, additive": HistogramClassifier("chi2", features="additive", **GIVEN),
    "classifier, minmax": HistogramClassifier("minmax", **FEW),
    "classifier, gaussian": HistogramClassifier("gaussian", **FEW),
    "classifier, structured": HistogramClassifier("exp-chi2", features=FourierFeatures(sampling="structured"), **FEW),
    "classifier, float64": HistogramClassifier(
        Exponential(chi2.signed(), 2.0), features=AutomaticFeatures(form="offset"), precision="float64", **FEW
    ),
    "classifier, gamma variant": HistogramClassifier(chi2.with_gamma(0.5), **GIVEN),
    "classifier, given map": HistogramClassifier("intersection", features=HomogeneousMap(n_terms=5), **GIVEN),
    "classifier, direct map": HistogramClassifier(
        "exp-chi2", features=AutomaticFeatures(map=DirectMap(nodes="minimax")), **FEW
    ),
    "classifier, blocks": HistogramClassifier("chi2", blocks=HALVES, normalize="l1", **GIVEN),
    "classifier, logistic": HistogramClassifier("chi2", loss="logistic", **GIVEN),
    "classifier, weighed": HistogramClassifier("chi2", class_weight={0: 1.0, 1: 2.0, 2: 1.0}, **GIVEN),
    "classifier, strength by folds": HistogramClassifier("exp-chi2", n_components=16, random_state=0),
    "regressor, exact": HistogramRegressor("exp-chi2", features="exact", **GIVEN),
    "regressor, landmarks": HistogramRegressor("exp-chi2", features="landmarks", **FEW),
    "regressor, fourier": HistogramRegressor("exp-chi2", features="fourier", **FEW),
    "regressor, additive": HistogramRegressor("chi2", features="additive", **GIVEN),
    "fourier learner": FourierKernelLearner(blocks=HALVES, **LEARNER),
    "fourier learner, regression": FourierKernelRegressor(blocks=HALVES, **LEARNER),
    "multiple kernels": MultipleKernelLearner("exp-chi2", blocks=HALVES, **FEW),
    "multiple kernels, regression": MultipleKernelRegressor("exp-chi2", blocks=HALVES, **FEW),
    "lookup": LookupClassifier(AnchorMap("chi2", n_anchors=9)),
    "online": OnlineIntersectionClassifier(max_iter=2, random_state=0),
}
COMPILED = {
    "compiled": HistogramClassifier("chi2", **GIVEN),
    "compiled, regression": HistogramRegressor("chi2", **GIVEN),
    "compiled, codes": LookupClassifier(AnchorMap("chi2", n_anchors=9)),
}
EVERY = ESTIMATORS | COMPILED


def made(name):
    """An unfitted estimator of the catalogue."""
    return clone(EVERY[name])


def outputs(model, rows=X):
    return getattr(model, "decision_function", model.predict)(rows)


def answers(model, rows=X):
    """Everything that it says of rows."""
    asked = ["predict", "decision_function", "predict_proba"]
    if getattr(model, "_conformal", None) is not None:  # rows were held out
        asked.append("predict_set")
    return {way: getattr(model, way)(rows) for way in asked if hasattr(model, way)}


def assert_same_answers(model, other):
    for way, expected in answers(other).items():
        np.testing.assert_array_equal(answers(model)[way], expected, err_msg=way)


def tolerance_of(model):
    """Rounding of outputs: in single precision unless the machine computes in double."""
    precision = getattr(model, "precision_", getattr(model, "precision", "float64"))
    return 1e-10 if precision == "float64" else 2e-5
