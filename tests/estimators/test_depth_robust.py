"""``depth_robust``: thinned copies of the rows of a fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap._validation import DataError


def counts(seed=0, n_rows=40, depth=200):
    rng = np.random.default_rng(seed)
    return rng.multinomial(depth, rng.dirichlet(np.ones(8), size=n_rows)).astype(float)


X = counts()
Y = np.where(X[:, 0] > X[:, 1], "a", "b")


def test_a_model_says_what_copies_gain_and_keeps_it(tmp_path):
    model = HistogramClassifier("chi2", normalize="l1", depth_robust=True, random_state=0).fit(X, Y)
    assert model.n_rows_ == 120
    gain = model.depth_gain_
    assert gain["n_rows"] == 40
    assert all(0.5 < score <= 1 for score in (*gain["thinned"], *gain["whole"]))
    model.save(tmp_path / "robust.model")
    again = chimap.load(tmp_path / "robust.model")
    assert again.depth_gain_ == gain
    assert again.depth_robust
    assert (again.predict(X) == model.predict(X)).all()
    with pytest.raises(AttributeError):
        _ = HistogramClassifier("chi2", normalize="l1").fit(X, Y).depth_gain_.keys()


def test_a_row_and_its_copies_are_left_out_together():
    labels = np.random.default_rng(5).integers(0, 2, 40)  # which nothing tells
    settings = {"normalize": "l1", "features": "exact", "depth_robust": True}
    model = HistogramClassifier("chi2", **settings, random_state=0).fit(X, labels)
    left_out = model.held_out_[:, 0] > 0
    assert left_out.size == 120
    assert np.mean(left_out == (labels[model.row_numbers_] == 1)) < 0.7


def test_groups_stay_whole():
    groups = np.arange(40) // 2
    twins = np.repeat(X[::2], 2, axis=0)
    labels = np.repeat(np.random.default_rng(6).integers(0, 2, 20), 2)
    model = HistogramClassifier("chi2", normalize="l1", features="exact", depth_robust=True, random_state=0)
    model.fit(twins, labels, groups=groups)
    assert np.mean((model.held_out_[:, 0] > 0) == (labels[model.row_numbers_] == 1)) < 0.75
    assert model.depth_gain_["whole"][0] < 0.75


def test_numbers_tasks_and_weights():
    shares = X[:, 0] / X.sum(axis=1)
    numbers = HistogramRegressor("chi2", normalize="l1", depth_robust=True, random_state=0).fit(X, shares)
    assert numbers.depth_gain_["measure"] == "r2"
    assert numbers.score(X, shares) > 0.8
    tasks = np.column_stack([Y == "a", shares > 0.1]).astype(float)
    tasks[3, 1] = np.nan
    several = HistogramClassifier("chi2", normalize="l1", depth_robust=True, random_state=0).fit(
        X, tasks, sample_weight=np.ones(40)
    )
    assert several.predict(X).shape == (40, 2)
    assert several.depth_gain_["whole"][0] > 0.6


def test_few_rows_have_no_gain_to_tell():
    model = HistogramClassifier("chi2", normalize="l1", depth_robust=True, random_state=0).fit(X[:9], Y[:9])
    assert model.fitted.learned.depth_gain is None


@pytest.mark.slow
def test_covariates_stay_beside_the_copies():
    frame = pd.DataFrame(X, columns=[f"taxon {i}" for i in range(8)]).assign(age=np.arange(40.0))
    model = HistogramClassifier("chi2", normalize="l1", covariates="age", depth_robust=True, random_state=0).fit(
        frame, Y
    )
    assert model.n_rows_ == 120


def test_what_has_no_counts_is_refused(tmp_path):
    model = HistogramClassifier("chi2", depth_robust=True, random_state=0)
    with pytest.raises(DataError, match=r"is no count.*give the counts"):
        model.fit(X / X.sum(axis=1, keepdims=True), Y)
    with pytest.raises(ValueError, match="depth_robust=True fits twice, and takes neither checkpoint nor unlabelled"):
        model.fit_source(chimap.open_source(X, labels=Y), checkpoint=tmp_path / "at")
    with pytest.raises(ValueError, match="partial_fit takes no depth_robust"):
        model.partial_fit(X, Y, classes=["a", "b"])
