"""Contributions add up to the score, are exact for additive models, and single out the bins that matter."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, NystroemFeatures, OptimalMap, _arrays
from chimap._validation import DataError
from chimap.explain.contributions import Explanation, contributions_of
from chimap.explain.importance import gradient_importance, permutation_importance
from chimap.explain.neighbours import expansion_of, strongest
from chimap.explain.removal import removal_importance
from chimap.features.landmarks import LandmarkFeatures
from chimap.models import explain

from ..features.test_mapped import BINS, FAMILIES, data, model_of
from ..histograms import classes


def explained(features, X, seed=1):
    model, coef, intercept = model_of(features, X, seed)

    def outputs(rows):
        Z = features.transform(rows)
        return (Z.toarray() if sp.issparse(Z) else Z) @ coef + intercept

    contributions, base = contributions_of(model, outputs, X, np.asarray(X.mean(axis=0)).ravel())
    return contributions, base, outputs(X)


@pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
def test_they_add_up_to_the_score(make):
    X = data()
    contributions, base, scores = explained(make().fit(X), X)
    np.testing.assert_allclose(base + contributions.sum(axis=1), scores, rtol=0, atol=1e-6)


def test_sparse_rows_have_the_contributions_of_dense_ones():
    X = data()
    X[X < 0.1] = 0
    features = LandmarkFeatures("exp-chi2", 12, random_state=0).fit(X)
    np.testing.assert_allclose(explained(features, sp.csr_matrix(X))[0], explained(features, X)[0], atol=1e-8)


def test_without_a_gradient_they_add_up_too():
    X = data()
    features = NystroemFeatures("pq", 8, random_state=0).fit(X)
    contributions, base, scores = explained(features, X)
    np.testing.assert_allclose(base + contributions.sum(axis=1), scores, atol=1e-9)


def test_of_an_additive_model_a_bin_adds_its_own_function():
    X = data()
    features = OptimalMap("chi2", 2).fit(X)
    contributions, _, _ = explained(features, X)
    _, coef, _ = model_of(features, X)
    Z, Zr = features.transform(X), features.transform(X.mean(axis=0)[None])
    expected = sum((Z - Zr)[:, q * BINS : (q + 1) * BINS, None] * coef[q * BINS : (q + 1) * BINS] for q in range(2))
    np.testing.assert_allclose(contributions, expected, atol=1e-12)


def test_a_bin_that_the_score_does_not_use_adds_nothing():
    X = data()
    features = OptimalMap("chi2", 2).fit(X)
    coef = np.ones((2 * BINS, 1))
    coef[[3, 3 + BINS]] = 0
    model = features.mapped_model(coef, np.zeros(1))
    contributions, _ = contributions_of(model, lambda X: X, X, X.mean(axis=0))
    assert np.abs(contributions[:, 3]).max() == 0
    importance = gradient_importance(model, X, BINS)
    assert importance[3] == 0
    assert (np.delete(importance, 3) > 0).all()


def test_another_width_of_the_reference_is_refused():
    with pytest.raises(DataError, match="reference row has shape"):
        contributions_of(None, lambda X: X, data(), np.zeros(BINS + 1))


def test_of_a_kernel_without_slopes_fewer_rows_are_compared(monkeypatch):
    seen = []

    def counted(model, rows, reference):
        seen.append(rows.shape[0])
        return np.zeros((rows.shape[0], rows.shape[1], 1)), np.zeros(1)

    X, y = classes(120, 6)
    models = [HistogramClassifier(kernel, alpha=1.0).fit(X, y) for kernel in ("chi2", "minmax")]
    monkeypatch.setattr(explain, "contributions_to", counted)
    for model in models:
        model.importance(X, kind="variance")
    monkeypatch.setattr(explain, "_ENTRIES_COMPARED", 20 * 120 * 6)
    models[1].importance(X, kind="variance")
    assert seen == [120, 40, 20]


def test_the_largest_come_first():
    values = np.zeros((1, 3, 1))
    values[0, :, 0] = [0.1, -2.0, 1.0]
    explanation = Explanation(values, np.zeros(1), np.array(["a", "b", "c"]), np.array(["y"]))
    assert explanation.top(0, 0, 2) == [("b", -2.0), ("c", 1.0)]
    assert explanation.scores.tolist() == [[pytest.approx(-0.9)]]


def test_shuffling_the_bin_that_decides_costs_the_most():
    X = data(100)
    y = X[:, 2] > np.median(X[:, 2])
    losses = permutation_importance(lambda rows: float(((rows[:, 2] > np.median(X[:, 2])) == y).mean()), X)
    assert losses.argmax() == 2
    assert np.delete(losses, 2).max() == 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_bins_that_stand_in_for_each_other_are_both_found(kind):
    rng = np.random.default_rng(0)
    X = rng.random((700, 60)) * (rng.random((700, 60)) < 0.4)
    X[:, 7] = X[:, 31]

    def scores(rows):
        rows = _arrays.to_dense(rows)
        return np.stack([9 * np.maximum(rows[:, 7], rows[:, 31]), rows @ np.linspace(1, 0, 60)], axis=1)

    order, values = removal_importance(scores, kind(X))
    assert sorted(order) == list(range(60))
    assert order[0] not in (7, 31)  # alone neither moves the first score
    assert {7, 31} <= set(order[:20])
    assert values[list(order).index(7)] + values[list(order).index(31)] > 1
    assert (np.diff(values[20:]) <= 0).all()
    more, _ = removal_importance(scores, kind(X), random_state=1)  # other rows
    assert {7, 31} <= set(more[:20])


def test_the_nearest_landmark_of_a_landmark_is_itself():
    X = data(12)
    features = LandmarkFeatures("exp-chi2", 12, landmarks=X, random_state=0).fit(X)
    model = features.mapped_model(np.linalg.solve(features.projection_, np.eye(12)), np.zeros(12))
    neighbours = strongest(model.function.values(model.rows(X[3:4]))[0], model.function.coef[:, 3], k=2)
    assert neighbours.similarities[0] == pytest.approx(1, abs=1e-6)


def test_a_model_without_landmarks_has_no_neighbours():
    model, _, _ = model_of(OptimalMap("chi2", 2).fit(data()), data())
    with pytest.raises(DataError, match="not a sum over landmarks"):
        expansion_of(model)
