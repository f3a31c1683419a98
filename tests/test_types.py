"""What a type checker sees of the package in strict code of a user: mypy checks this file beside the package."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import chimap


def test_strict_code_sees_types() -> None:
    """As the file runs, it only shows that the names are there."""
    X: np.ndarray = np.random.default_rng(0).random((40, 3))
    y = np.arange(40) % 2
    assert_type(chimap.OptimalMap("chi2").fit_transform(X), np.ndarray | Any)
    assert_type(chimap.LandmarkFeatures(n_components=2).fit_transform(X, y), np.ndarray | Any)
    assert_type(chimap.FourierFeatures("gaussian").fit(X), chimap.FourierFeatures)
    model = chimap.HistogramClassifier("chi2").fit(X, y)
    assert_type(model, chimap.HistogramClassifier)
    assert_type(model.predict(X), np.ndarray)
    assert_type(model.predict_proba(X), np.ndarray)
    assert_type(model.predict_set(X, alpha=0.1), np.ndarray)
    assert_type(model.classes_, np.ndarray)
