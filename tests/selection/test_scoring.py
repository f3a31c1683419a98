from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)

from chimap.selection.scoring import HeldOutScore, best_temperature, labels_of, probabilities, r_squared

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
