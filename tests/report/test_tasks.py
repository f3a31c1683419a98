"""Measures of several tasks against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from chimap.report import (
    task_metrics,
)


def test_measures_of_tasks_are_scikit_learns_on_the_rows_that_have_a_label():
    rng = np.random.default_rng(3)
    Y = np.where(rng.random((90, 3)) < 0.3, np.nan, (rng.random((90, 3)) < 0.4).astype(float))
    Y[:, 2] = np.where(np.isnan(Y[:, 2]), np.nan, 0)
    f = rng.normal(size=Y.shape) + np.nan_to_num(Y)
    found = task_metrics(Y, f, ["a", "b", "c"])
    for j in range(2):
        own = ~np.isnan(Y[:, j])
        expected = [m(Y[own, j], f[own, j]) for m in (sk.roc_auc_score, sk.average_precision_score)]
        expected.append(sk.balanced_accuracy_score(Y[own, j], f[own, j] > 0))
        assert [values[j] for values in found.measures.values()] == pytest.approx(expected)
    assert all(np.isnan(values[2]) for values in found.measures.values())
    assert found.mean("ROC AUC") == pytest.approx(found.measures["ROC AUC"][:2].mean())
    assert found.n_positive.tolist() == [int((Y[:, j] == 1).sum()) for j in range(3)]
    assert found.as_dict()["tasks"][2]["ROC AUC"] is None
    numbers = task_metrics(f, f + 1, ["a", "b", "c"], is_classification=False)
    assert numbers.n_positive is None
    assert list(numbers.measures) == ["R2", "RMSE", "MAE"]
    there = task_metrics(f, f + 2, ["a", "b", "c"], is_classification=False)
    assert there.measures["MAE"] == pytest.approx([2, 2, 2])
    assert there.measures["RMSE"] == pytest.approx([2, 2, 2])
