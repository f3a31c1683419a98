"""Classes of a few rows among many: held-out outputs of all of them, and of enough others to find a threshold among."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from chimap import HistogramClassifier, LookupClassifier, OnlineIntersectionClassifier
from chimap.machines.base import Plan
from chimap.machines.rows import FEWEST_UNITS, PreparedRows, sufficient_folds
from chimap.recipe.codecs import ClassCodec, TaskCodec

from ..held_out import watched

N, N_RARE = 8000, 40
CASES = {
    "square": {"alpha": 1.0},
    "gcv": {},
    "folds": {"selection": 4},
    "logistic": {"loss": "logistic", "alpha": 1.0},
    "logistic, chosen": {"loss": "logistic"},
    "hinge": {"loss": "hinge", "alpha": 0.01},
    "balanced": {"class_weight": "balanced", "alpha": 1.0},
}


def counts(n, n_rare, seed):
    """Counts of words, of which those of the rare class have some more of a few."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, int)
    y[rng.choice(n, n_rare, replace=False)] = 1
    rates = np.where(y[:, None] == 1, np.repeat([3.0, 2.0], [8, 4]), 2.0)
    return rng.poisson(rates).astype(np.float32), y


@pytest.fixture
def seen(monkeypatch):
    """What models learn of rows that they have not seen."""
    return watched(monkeypatch)


@pytest.mark.parametrize("name", CASES)
def test_all_rows_of_a_rare_class_are_held_out(name, seen):
    X, y = counts(N, N_RARE, 0)
    model = HistogramClassifier("chi2", features="additive", threshold="f1", random_state=0, **CASES[name])
    model.fit(X, y)
    held_out = seen[-1]
    assert (held_out.y == 1).sum() == N_RARE
    weights = np.ones(held_out.y.size) if held_out.weights is None else held_out.weights
    if name != "balanced":  # each row stands for as many as were drawn from
        share = weights[held_out.y == 1].sum() / weights.sum()
        assert share == pytest.approx(N_RARE / N, rel=1e-6)
        told = model.fitted.answers.calibration(held_out.outputs)[:, 1]
        assert np.average(told, weights=weights) == pytest.approx(N_RARE / N, rel=0.05)
    if name not in ("balanced", "hinge"):  # LIBLINEAR leaves -1 give or take 1e-5 where rows of a class are so few
        assert abs(model.predict_proba(X)[:, 1].mean() - N_RARE / N) < 0.5 * N_RARE / N
    assert (held_out.y == 0).sum() > 1500


def test_thresholds_are_near_the_best_there_are():
    """Over seeds, since the best threshold of 40 rows varies; no seed fails for want of rows."""
    reached = []
    for seed in range(6):
        X, y = counts(N, N_RARE, seed)
        X_new, y_new = counts(N, N_RARE, seed + 100)
        model = HistogramClassifier("chi2", features="additive", threshold="f1", alpha=1.0, random_state=seed)
        f1 = f1_score(y_new, model.fit(X, y).predict(X_new))
        order = np.argsort(-model.decision_function(X_new))
        hits = np.cumsum(y_new[order])
        reached.append(f1 / (2 * hits / (np.arange(1, N + 1) + N_RARE)).max())
    assert np.mean(reached) > 0.65


def test_landmarks_are_made_of_other_rows(seen, monkeypatch):
    """Rows that landmarks are made of do not stand for rows to come, however rare their class is."""
    X, y = counts(N, N_RARE, 0)
    model = HistogramClassifier("exp-chi2", features="landmarks", n_components=50, alpha=1.0, random_state=0)
    sampled = []
    draw = PreparedRows.sampled
    monkeypatch.setattr(PreparedRows, "sampled", lambda self: (sampled.append(draw(self)), sampled[-1])[1])
    model.fit(X, y)
    outside = np.setdiff1d(np.flatnonzero(y), sampled[0])
    assert (seen[-1].y == 1).sum() == outside.size
    assert N_RARE / 5 < outside.size < N_RARE
    share = seen[-1].weights[seen[-1].y == 1].sum() / seen[-1].weights.sum()
    assert share == pytest.approx(N_RARE / N, rel=1e-6)


def test_exact_machines_leave_all_rows_out(seen, monkeypatch):
    """Also where a race has settled the strength, so that other fits leave out some rows only."""
    monkeypatch.setattr("chimap.selection.leave_one_out.FEW_ROWS", 500)
    monkeypatch.setattr(Plan, "numbers_of_race", ["alpha"])
    X, y = counts(1500, 12, 1)
    model = HistogramClassifier("exp-chi2", features="exact", alpha=0.1).fit(X, y)
    assert (seen[-1].y == 1).sum() == 12
    model.fit(X, (X[:, 0] > 2).astype(int))
    assert seen[-1].y.size == 500


@pytest.mark.parametrize("model", [LookupClassifier(), OnlineIntersectionClassifier()], ids=str)
def test_machines_in_memory_hold_out_as_many_folds_as_it_takes(model, seen):
    X, y = counts(1200, 30, 0)
    model.fit(X, y)
    assert (seen[-1].y == 1).sum() == 30
    model.fit(X, (X[:, 0] > 2).astype(int))
    assert seen[-1].y.size < 500


def test_what_is_rare():
    y = np.repeat([0, 1, 2], [5000, 4900, 100])
    assert np.array_equal(ClassCodec.of(y).rare(y, 2000, 100), y == 2)
    assert not ClassCodec.of(y).rare(y, 2000, 20).any()  # a draw has enough
    assert not ClassCodec.of(np.arange(900) % 90).rare(np.arange(900) % 90, 2000, 100).any()  # all are alike
    Y = np.column_stack([np.repeat([1.0, 0.0], [50, 9950]), np.arange(10_000) % 2])
    Y[20:30, 0] = np.nan
    expected = np.arange(10_000) < 50
    expected[20:30] = False
    assert np.array_equal(TaskCodec.of(Y).rare(Y, 2000, 100), expected)


def test_folds_that_suffice():
    folds, nobody = np.arange(1000) % 5, np.zeros(1000, bool)
    assert sufficient_folds(folds, 5, nobody, None) == (0,)
    assert sufficient_folds(folds[:400], 5, nobody[:400], None) == (0, 1)
    assert sufficient_folds(folds[:300], 5, nobody[:300], None) == (0, 1)
    assert sufficient_folds(folds[:60], 5, nobody[:60], None) == (0, 1, 2, 3, 4)
    assert sufficient_folds(folds, 5, nobody, np.arange(1000) // 5) == (0,)  # 200 groups in each
    assert sufficient_folds(folds, 5, nobody, folds + 5 * (np.arange(1000) // 20)) == (0, 1)  # 50 in each
    assert sufficient_folds(folds, 5, np.arange(1000) < 300, None) == (0, 1)
    assert sufficient_folds(folds, 5, np.arange(1000) < FEWEST_UNITS, None) == (0, 1, 2, 3, 4)
    assert sufficient_folds(np.zeros(50, int), 1, nobody[:50], None) == (0,)
