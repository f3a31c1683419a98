"""Areas under ROC curves of several tasks against scikit-learn's, column by column."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from chimap.selection.curves import SortedOutputs
from chimap.selection.jackknife import scores_without
from chimap.selection.scoring import MeanScore

RNG = np.random.default_rng(0)
N_ROWS, N_TASKS = 300, 7
WEIGHTS = {"none": None, "rows": RNG.random(N_ROWS), "entries": RNG.random((N_ROWS, N_TASKS))}


def _tasks():
    """(labels, NaN where missing, outputs): column 0 has ties, 1 is all equal, of 2 some outputs are missing, of 3 one
    class is."""
    Y = (RNG.random((N_ROWS, N_TASKS)) < 0.2).astype(float)
    Y[RNG.random(Y.shape) < 0.25] = np.nan
    Y[:, 3] = 0
    outputs = RNG.normal(size=Y.shape) + np.nan_to_num(Y)
    outputs[:, 0] = np.round(outputs[:, 0])
    outputs[:, 1] = 0.5
    outputs[:9, 2] = np.nan
    return Y, outputs


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_each_task_has_the_area_of_scikit_learn(weights):
    Y, outputs = _tasks()
    scores = MeanScore(Y, np.array([0, 1]), "roc_auc", weights).each(outputs)
    for task in set(range(N_TASKS)) - {3}:
        seen = ~np.isnan(Y[:, task]) & np.isfinite(outputs[:, task])
        own = None if weights is None else (weights if weights.ndim == 1 else weights[:, task])[seen]
        expected = roc_auc_score(Y[seen, task], outputs[seen, task], sample_weight=own)
        assert scores[task] == pytest.approx(expected, abs=1e-12)
    assert np.isnan(scores[3])


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("scoring", ["roc_auc", None])
def test_scores_without_each_part_are_those_of_the_other_rows(scoring, weights):
    Y, outputs = _tasks()
    score = MeanScore(Y, np.array([0, 1]), scoring, weights)
    rows, parts = np.arange(20, 220), RNG.integers(5, size=200)
    expected = scores_without(lambda some: score(outputs[rows][some], rows[some]), parts)
    assert score.without_each(outputs[rows], rows, parts) == pytest.approx(expected, abs=1e-12)
    assert np.unique(expected).size == 5


def test_no_rows_have_no_area():
    curves = SortedOutputs.of(np.zeros((0, 2), bool), np.zeros((0, 2)))
    assert np.isnan(curves.areas(np.zeros((0, 2)))).all()
