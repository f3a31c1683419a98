"""Metrics of regressions against scikit-learn, and values worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics as sk

from chimap.report import (
    regression_metrics,
)


def test_regression_agrees_with_scikit_learn():
    rng = np.random.default_rng(1)
    y_true = rng.standard_normal(300)
    y_pred = y_true + rng.standard_normal(300) / 2
    found = regression_metrics(y_true, y_pred)
    assert found.r2 == pytest.approx(sk.r2_score(y_true, y_pred))
    assert found.rmse == pytest.approx(sk.root_mean_squared_error(y_true, y_pred))
    assert found.mae == pytest.approx(sk.mean_absolute_error(y_true, y_pred))
    for name in ("r2", "rmse", "mae"):
        lower, upper = getattr(found, f"{name}_interval")
        assert lower < getattr(found, name) < upper
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["r2"] == found.r2


def test_regression_intervals_by_hand():
    found = regression_metrics([0.0, 0.0, 4.0, 4.0], [1.0, -1.0, 4.0, 4.0])
    half = 1.959963984540054 * np.sqrt(1 / 3) / 2
    np.testing.assert_allclose(found.mae_interval, (0, 0.5 + half))
    np.testing.assert_allclose(found.rmse_interval, (0, np.sqrt(0.5 + half)))
    # Every target is 2 from the mean, so R2 = 1 - mean(e^2) / 4 and its deviation is that of e^2 over 4.
    np.testing.assert_allclose(found.r2_interval, (0.875 - half / 4, 1))


def test_regression_intervals_hold_their_confidence():
    rng = np.random.default_rng(2)
    # e = 0.4 noise - 0.2 y, so that E[e^2] = 0.16 + 0.04.
    truth = {"r2": 0.8, "rmse": np.sqrt(0.2), "mae": np.sqrt(0.2 * 2 / np.pi)}
    held = dict.fromkeys(truth, 0)
    for _ in range(400):
        y_true = rng.standard_normal(400)
        found = regression_metrics(y_true, 0.8 * y_true + 0.4 * rng.standard_normal(400))
        for name, value in truth.items():
            lower, upper = getattr(found, f"{name}_interval")
            held[name] += lower <= value <= upper
    assert min(held.values()) >= 0.92 * 400


@pytest.mark.filterwarnings("error")
def test_constant_target_and_single_row_have_no_r2():
    constant = regression_metrics([2.0, 2.0, 2.0], [2.0, 2.5, 1.0])
    assert np.isnan(constant.r2)
    assert np.isfinite(constant.rmse_interval).all()
    single = regression_metrics([2.0], [3.0])
    assert single.rmse == 1.0
    assert single.as_dict()["rmse_interval"] == [None, None]
