"""Small models of every kind that has a model file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

import chimap

RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(8), size=60)
Y = (X[:, :3].argmax(axis=1) + 1) * 10
TARGETS = X[:, 0] + np.sqrt(X[:, 1])


def _compiled() -> Any:
    return chimap.HistogramClassifier("chi2", random_state=0).fit(X, Y).compile(tolerance=0.05)


MODELS: dict[str, Callable[[], Any]] = {
    "random-features": lambda: chimap.HistogramClassifier(
        "exp-chi2", features="fourier", n_components=16, random_state=0
    ).fit(X, Y),
    "additive": lambda: chimap.HistogramClassifier("intersection", random_state=0).fit(X, Y.astype(str)),
    "regression": lambda: chimap.HistogramRegressor("chi2", random_state=0).fit(X, TARGETS),
    "blocks": lambda: chimap.HistogramClassifier(
        "chi2", blocks={"a": slice(0, 3), "b": slice(3, 8)}, normalize="l1", random_state=0
    ).fit(X, Y),
    "landmarks": lambda: chimap.HistogramClassifier(
        "exp-chi2", features="landmarks", n_components=12, normalize="l1", random_state=0
    ).fit(X, Y),
    "exact-on-blocks": lambda: chimap.HistogramRegressor(
        "exp-chi2", blocks={"a": slice(0, 3), "b": slice(3, 8)}, precision="auto", random_state=0
    ).fit(X, np.column_stack([TARGETS, X[:, 2]])),
    "raced": lambda: chimap.HistogramClassifier(threshold="f1", random_state=0).fit(X[:40], Y[:40] > 10),
    "gaussian": lambda: chimap.HistogramRegressor("gaussian", n_components=16, random_state=0).fit(X, TARGETS),
    "compiled": _compiled,
    "lookup": lambda: chimap.LookupClassifier(chimap.AnchorMap("chi2", n_anchors=5)).fit(X, Y).compile(),
    "online": lambda: chimap.OnlineIntersectionClassifier(n_knots=5, random_state=0).fit(X, Y),
    "lookup-in-double": lambda: chimap.LookupClassifier(chimap.AnchorMap("chi2", n_anchors=5)).fit(X, Y),
    "kernels": lambda: chimap.MultipleKernelLearner(
        "chi2", blocks=[slice(0, 3), slice(3, 8)], n_components=8, random_state=0
    ).fit(X, Y),
}

ANSWERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "landmarks": lambda model: {
        "scores": model.decision_function(X),
        "probabilities": model.predict_proba(X),
        "sets": model.predict_set(X),
        "contributions": model.explain(X[:3]).contributions,
        "bins": model.importance().values,
        "weights": model.feature_coef_.sum(axis=1),
    },
    "exact-on-blocks": lambda model: {
        "deviations": model.predict(X[:, ::-1], return_std=True)[1],  # those of learned rows are lost in rounding
        "intervals": model.predict_set(X),
        "held out": model.held_out_,
        "rows": model.row_numbers_,
        "noise": model.noise_variance_,
        "contributions": model.explain(X[:2]).contributions,
    },
    "raced": lambda model: {
        "scores": model.decision_function(X),
        "probabilities": model.predict_proba(X),
        "threshold": model.threshold_,
        "alpha": [model.alpha_, model.chosen_["alpha"], model.kernel_.gamma, model.race_.trials[0].score],
        "nearest": [n.places for n in model.nearest(X[:3], k=2)],
    },
}
"""More that models of three kinds answer, by what it is: of rows, and of their fit."""

PIPELINES: dict[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(
        Normalizer("l1"), chimap.OptimalMap(n_terms=1), StandardScaler(with_mean=False), LogisticRegression()
    ).fit(X, Y),
    "ridge": lambda: make_pipeline(
        chimap.FourierFeatures("exp-chi2", n_components=8, random_state=0), MinMaxScaler(), RidgeClassifier()
    ).fit(X, Y),
}
