"""Rows leave a model: it equals the fit without them at the same choices, and its file holds nothing of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import chimap
from chimap import HistogramClassifier, HistogramRegressor, forget
from chimap._errors import DataError, InputError
from tests.histograms import classes

X, LABELS = classes(90, 8)
TARGET = np.sqrt(X[:, 0]) + X[:, 3]
GONE = np.array([3, 17, 41, 42, 80])
KEPT = np.setdiff1d(np.arange(90), GONE)
SAME = {"precision": "float64", "random_state": 0, "alpha": 0.1}
EXACT = SAME | {"features": "exact", "gamma": 2.0}
CASES = {
    "matrix": (HistogramClassifier, "gaussian", EXACT),
    "weighted matrix": (HistogramClassifier, "gaussian", EXACT | {"class_weight": "balanced"}),
    "sums": (HistogramClassifier, "hellinger", SAME),
    "weighted sums": (HistogramClassifier, "hellinger", SAME | {"class_weight": "balanced"}),
    "matrix of numbers": (HistogramRegressor, "gaussian", EXACT),
    "sums of numbers": (HistogramRegressor, "hellinger", SAME),
    "landmarks": (HistogramClassifier, "exp-chi2", SAME | {"features": "landmarks", "n_components": 20, "gamma": 2.0}),
    "passes": (HistogramClassifier, "hellinger", SAME | {"loss": "logistic"}),
    "a normalisation that is learned": (HistogramClassifier, "gaussian", EXACT | {"normalize": "tf-idf"}),
}


def fits(case):
    kind, kernel, settings = CASES[case]
    y = LABELS if kind is HistogramClassifier else TARGET
    whole, without = (kind(kernel, **settings).fit(X[some], y[some]) for some in (np.arange(90), KEPT))
    return whole, without, y


def outputs(model):
    return model.decision_function(X) if isinstance(model, HistogramClassifier) else model.predict(X)


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_fit_without_the_rows(case, tmp_path):
    whole, without, y = fits(case)
    found = forget(whole, X, y, rows=GONE)
    assert np.abs(outputs(whole) - outputs(without)).max() > 1e-4
    np.testing.assert_allclose(outputs(found.model), outputs(without), atol=1e-8, rtol=0)
    assert (found.n_forgotten, found.n_left) == (5, 85)
    assert found.model.n_rows_ == 85
    found.model.save(tmp_path / "small.model")
    loaded = chimap.load(tmp_path / "small.model")
    np.testing.assert_allclose(outputs(loaded), outputs(found.model))
    if isinstance(whole, HistogramClassifier):
        np.testing.assert_allclose(loaded.predict_proba(X), without.predict_proba(X), atol=1e-6)
        np.testing.assert_array_equal(loaded.predict_set(X, alpha=0.2), without.predict_set(X, alpha=0.2))
    else:
        mine, theirs = (model.predict(X, return_std=True)[1] for model in (loaded, without))
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_rows_leave_the_file():
    whole, without, y = fits("matrix")
    left = forget(whole, X, y, rows=np.isin(np.arange(90), GONE)).model
    kernel = left.fitted.features.row_kernel
    assert kernel._n_features_out == 85
    assert not np.isin(left.fitted.learned.findings.row_numbers, GONE).any()
    np.testing.assert_array_equal(np.sort(left.fitted.learned.findings.row_numbers), KEPT)
    assert left.fitted.learned.findings.held_out.shape[0] == 85
    assert left.fitted.answers.conformal.scores.shape[0] == 85
    np.testing.assert_allclose(left.fitted.learned.rows.mean_row, without.fitted.learned.rows.mean_row)


@pytest.mark.parametrize("case", ["matrix of numbers", "sums of numbers", "landmarks"])
def test_the_file_holds_nothing_of_the_rows(case, tmp_path):
    kind, kernel, settings = CASES[case]
    lines = [f"the-id-{i}x,{TARGET[i] if kind is HistogramRegressor else LABELS[i]}," for i in range(90)]
    rows = [line + ",".join(map(repr, x.tolist())) for line, x in zip(lines, X, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join([f"id,y,{','.join('abcdefgh')}", *rows]))
    source = chimap.open_source(tmp_path / "rows.csv", labels="y", id="id")
    whole = kind(kernel, **settings).fit_source(source)
    last = int(np.argmax(TARGET))
    ends = {"target_mean": TARGET.mean(), "target_range": [TARGET.min(), TARGET[last]], "lines": {"rows": "90"}}
    whole.remember(training=ends if kind is HistogramRegressor else {"class_counts": [], "held_out": {"lines": "90"}})
    whole.save(tmp_path / "whole.model")
    forget(whole, source, rows=[last]).model.save(tmp_path / "left.model")
    before, after = ((tmp_path / f"{name}.model").read_bytes() for name in ("whole", "left"))
    values = [x.astype(dtype).tobytes() for x in (X[last], TARGET[last]) for dtype in ("f4", "f8")]
    traces = [f"the-id-{last}x".encode(), repr(float(TARGET[last])).encode(), b"lines", *values]
    assert any(trace in before for trace in traces)
    assert not [trace for trace in traces if trace in after]
    assert chimap.load(tmp_path / "left.model").training_["n_forgotten"] == 1


def test_groups_are_left_out_together():
    groups = np.arange(90) // 3
    kind, kernel, settings = CASES["sums"]
    whole, y = kind(kernel, **settings).fit(X, LABELS, groups=groups), LABELS
    by_group = forget(whole, X, y, rows=GONE, groups=groups).model
    alone = forget(whole, X, y, rows=GONE).model
    assert not np.allclose(by_group.predict_proba(X), alone.predict_proba(X))


def test_the_receipt_names_what_was_chosen_with_them():
    whole, _, y = fits("matrix")
    found = forget(whole, X, y, rows=GONE)
    assert set(found.chosen_with_them) == {"kernel", "features", "alpha"}
    assert found.chosen_with_them["alpha"] == "0.1"
    assert found.moved > 0
    again = forget(whole, X, y, rows=GONE, choose_again=True)
    assert "alpha" not in again.chosen_with_them
    assert again.alpha != again.alpha_before == 0.1
    assert "chosen again" in again.lines()
    assert again.as_dict()["forgotten"] == 5


def test_what_covariates_tell_is_learned_again():
    age = np.linspace(20, 60, 90)
    settings = EXACT | {"covariates": ["age"]}
    table = {f"bin {j}": X[:, j] for j in range(X.shape[1])} | {"age": age}
    frame, y = pd.DataFrame(table), np.where(age + 40 * LABELS > 70, "old", "young")
    whole, without = (HistogramClassifier("gaussian", **settings).fit(frame.iloc[k], y[k]) for k in (range(90), KEPT))
    found = forget(whole, frame, y, rows=GONE).model
    np.testing.assert_allclose(found.decision_function(frame), without.decision_function(frame), atol=1e-8)


def test_models_of_other_kinds_are_refused():
    with pytest.raises(InputError, match="got a LogisticRegression"):
        forget(LogisticRegression(), X, LABELS, rows=GONE)


@pytest.mark.parametrize("case", ["matrix", "sums"])
def test_other_rows_are_refused(case):
    whole, _, y = fits(case)
    with pytest.raises(DataError, match="not the rows that it was fitted on"):
        forget(whole, X[::-1], y, rows=GONE)
    with pytest.raises(DataError, match="no row to forget"):
        forget(whole, X, y, rows=np.zeros(90, dtype=bool))
    lost = np.flatnonzero(y == y[0])
    with pytest.raises(DataError, match=r"no rows of class .* would be left"):
        forget(whole, X, y, rows=lost)
