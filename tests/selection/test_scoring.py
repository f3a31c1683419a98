"""Scores of held-out outputs, and areas under ROC curves against scikit-learn's, column by column."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import accuracy_score, log_loss, make_scorer, mean_absolute_error, r2_score, roc_auc_score

from chimap.selection.jackknife import scores_without
from chimap.selection.scoring import (
    HeldOutScore,
    MeanScore,
    SortedOutputs,
    best_temperature,
    labels_of,
    probabilities,
    r_squared,
)

LABELS = np.array(["a", "b", "c"])


def outputs(n: int = 200, t: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """(outputs, places of the classes) that go together, more or less."""
    rng = np.random.default_rng(0)
    place = rng.integers(max(t, 2), size=n)
    F = rng.standard_normal((n, t))
    F[np.arange(n), place if t > 1 else 0] += 1.5 if t > 1 else 3 * place - 1.5
    return F, place


def test_default_scores():
    F, place = outputs()
    score = HeldOutScore(LABELS[place], LABELS)
    assert score(F) == accuracy_score(place, F.argmax(axis=1))
    assert score(F[20:50], np.arange(20, 50)) == accuracy_score(place[20:50], F[20:50].argmax(axis=1))
    y = F[:, 0] + 1
    assert HeldOutScore(y, None)(F[:, :1]) == pytest.approx(r2_score(y, F[:, 0]), abs=1e-14)
    assert (score.name, HeldOutScore(y, None).name) == ("accuracy", "r2")


@pytest.mark.parametrize("is_weighted", [False, True])
def test_r_squared_is_that_of_scikit_learn(is_weighted):
    F, _ = outputs()
    rng = np.random.default_rng(3)
    Y = F + rng.standard_normal(F.shape) + 5
    weights = rng.uniform(0.1, 3, len(F)) if is_weighted else None
    constant = np.column_stack([Y[:, 0], np.full(len(F), 2.0)])
    met = np.column_stack([F[:, 0], np.full(len(F), 2.0)])
    for targets, found in ((Y, F), (Y[:, :1], F[:, :1]), (constant, F[:, :2]), (constant, met)):
        expected = r2_score(targets, found, sample_weight=weights)
        assert r_squared(targets, found, weights) == pytest.approx(expected, abs=1e-13)
        assert HeldOutScore(targets, None, None, weights)(found) == pytest.approx(expected, abs=1e-13)
    assert np.isnan(r_squared(Y[:1], F[:1]))


def test_scorers_of_scikit_learn():
    F, place = outputs(t=1)
    two, labels = LABELS[:2], LABELS[place]
    assert HeldOutScore(labels, two, "roc_auc")(F) == roc_auc_score(place, F[:, 0])
    assert HeldOutScore(labels, two, "balanced_accuracy")(F) > 0.8
    y = F[:, 0] + 1
    assert HeldOutScore(y, None, "neg_mean_absolute_error")(F) == -mean_absolute_error(y, F[:, 0])
    weights = np.arange(y.size)
    weighted = HeldOutScore(y, None, make_scorer(mean_absolute_error), weights)(F)
    np.testing.assert_allclose(weighted, mean_absolute_error(y, F[:, 0], sample_weight=weights))
    with pytest.raises(ValueError, match="nothing"):
        HeldOutScore(y, None, "nothing")(F)


@pytest.mark.parametrize("t", [1, 3])
def test_log_loss_is_at_the_best_temperature(t):
    F, place = outputs(t=t)
    classes = LABELS[: max(t, 2)]
    found = HeldOutScore(classes[place], classes, "neg_log_loss")(F)
    losses = [log_loss(place, probabilities(F, T)) for T in np.logspace(-1.5, 1.5, 301)]
    np.testing.assert_allclose(-found, min(losses), rtol=1e-4)
    np.testing.assert_allclose(HeldOutScore(classes[place], classes, "neg_log_loss")(7 * F), found, rtol=1e-4)
    np.testing.assert_allclose(best_temperature(7 * F, place), 7 * best_temperature(F, place), rtol=1e-3)


def test_probabilities_and_labels():
    F, _ = outputs()
    np.testing.assert_allclose(probabilities(F, 2.0), softmax(F / 2, axis=1))
    two = probabilities(F[:, :1])
    np.testing.assert_allclose(two.sum(axis=1), 1)
    assert (labels_of(F[:, :1], LABELS[:2]) == np.where(two[:, 1] > 0.5, "b", "a")).all()
    assert (labels_of(F, LABELS) == LABELS[F.argmax(axis=1)]).all()


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
