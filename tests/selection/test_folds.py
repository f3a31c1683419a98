"""Errors of folds from moments against fitting again on the other folds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from chimap._validation import DataError
from chimap.moments import FoldMoments, fold_of_rows
from chimap.selection import folds
from chimap.selection.folds import _Scorer, choose_alpha, rough_alpha
from chimap.solvers.ridge import Factor

from ..moments.cases import rows

ALPHAS = (1e-2, 1.0, 30.0, 1e4)


def fold_moments(Z, Y, folds, n_folds):
    shift, target_shift = Z[:10].mean(axis=0), Y[:10].mean(axis=0)
    moments = FoldMoments(n_folds, Z.shape[1], Y.shape[1], shift, target_shift, np.dtype(np.float64))
    for k in range(n_folds):
        chosen = folds == k
        moments.add_shifted(k, np.ascontiguousarray(Z[chosen] - shift), Y[chosen] - target_shift)
    return moments


def by_hand(Z, Y, folds, alphas):
    """Errors (alphas, folds) of ridge fitted on the rows of the other folds: one decomposition a fold serves all."""
    errors = np.empty((len(alphas), folds.max() + 1))
    for k in range(errors.shape[1]):
        held = folds == k
        mean, target_mean = Z[~held].mean(axis=0), Y[~held].mean(axis=0)
        U, s, Vt = np.linalg.svd(Z[~held] - mean, full_matrices=False)
        turned, inner = (Z[held] - mean) @ Vt.T, U.T @ (Y[~held] - target_mean)
        for i, alpha in enumerate(alphas):
            predicted = turned @ ((s / (s**2 + alpha))[:, None] * inner) + target_mean
            errors[i, k] = np.mean(np.sum((predicted - Y[held]) ** 2, axis=1))
    return errors


def test_the_reference_is_scikit_learns():
    Z, Y = rows(60, 90, 2)
    folds = fold_of_rows(0, 60, 3, seed=0)
    errors = by_hand(Z, Y, folds, ALPHAS)
    for (i, alpha), k in itertools.product(enumerate(ALPHAS), range(3)):
        model = Ridge(alpha, solver="svd").fit(Z[folds != k], Y[folds != k])
        misses = model.predict(Z[folds == k]) - Y[folds == k]
        assert errors[i, k] == pytest.approx(np.mean(np.sum(misses**2, axis=1)), rel=1e-6)


# few targets of many features go by iterations if the rows are more, all others by a factorisation per fold
@pytest.mark.parametrize(
    "shape", [(150, 12, 3), (150, 260, 1), (2500, 300, 3), (700, 300, 3), (400, 300, 1), (60, 300, 5)]
)
@pytest.mark.parametrize("n_folds", [2, 5])
def test_errors_are_those_of_refits(shape, n_folds):
    Z, Y = rows(*shape)
    folds = fold_of_rows(0, shape[0], n_folds, seed=0)
    moments = fold_moments(Z, Y, folds, n_folds)
    seen = []
    scores = choose_alpha(moments, moments.whole(), ALPHAS, lambda *score: seen.append(score))
    np.testing.assert_array_equal(scores.alphas, ALPHAS)
    expected = by_hand(Z, Y, folds, ALPHAS)
    np.testing.assert_allclose(scores.scores, expected, rtol=1e-4)
    counts = np.bincount(folds)
    means = np.average(expected, axis=1, weights=counts)
    assert scores.best["alpha"] == ALPHAS[np.argmin(means)] == scores.alphas[scores.chosen]
    np.testing.assert_allclose(scores.baseline, np.mean(np.sum((Y - Y.mean(axis=0)) ** 2, axis=1)), rtol=1e-10)
    np.testing.assert_allclose(sorted(seen), np.c_[ALPHAS, means], rtol=1e-4)


class CountedFactor(Factor):
    def __init__(self, n_features):
        super().__init__(n_features)
        self.made = []

    def of(self, moments, alpha, less=None):
        self.made.append(alpha)
        super().of(moments, alpha, less)


def test_one_factor_serves_alphas_about_it():
    Z, Y = rows(2500, 300, 3)
    folds = fold_of_rows(0, 2500, 5, seed=0)
    moments, factor = fold_moments(Z, Y, folds, 5), CountedFactor(300)
    alphas = [0.02, 0.2, 10.0, 10**1.5, 100.0]
    scores = choose_alpha(moments, moments.whole(), alphas, factor=factor)
    assert factor.made == [100.0, 0.2]
    expected = by_hand(Z, Y, folds, alphas)
    np.testing.assert_allclose(scores.scores, expected, rtol=1e-4)
    assert scores.iterations.max() < 15


def linear(noise, n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_rows, 10))
    return Z, Z @ rng.standard_normal((10, 1)) + noise * rng.standard_normal((n_rows, 1))


@pytest.mark.parametrize("noise", [1e-4, 1.0, 30.0, 1e4])
def test_search_ends_inside_what_it_tried(noise):
    """From no noise to nothing but noise: the ends are gone past, and the decades beside the best are halved."""
    Z, Y = linear(noise)
    moments = fold_moments(Z, Y, fold_of_rows(0, 400, 5, seed=0), 5)
    whole = moments.whole()
    scores = choose_alpha(moments, whole)
    scale = whole.scatter_diagonal().mean()
    assert np.all(np.diff(scores.alphas) > 0)
    ends = scores.alphas[[0, -1]]
    best_alpha = scores.best["alpha"]
    assert best_alpha not in ends or not 1e-8 * scale < best_alpha < 1e4 * scale
    # whatever decade is best, the search has been there, and beside it
    decades = choose_alpha(moments, whole, scale * 10.0 ** np.arange(-9, 5))
    mean = np.average(scores.scores, axis=1, weights=[f.count for f in moments.folds]).min()
    best = np.average(decades.scores, axis=1, weights=[f.count for f in moments.folds]).min()
    assert mean <= best * (1 + 1e-3)
    gaps = np.diff(np.log10(scores.alphas))
    assert gaps.min() == pytest.approx(0.5)
    if noise == 1e4:
        assert best_alpha > scale


# of few rows the error depends on the strength most: half a decade on the wrong side of a decade shows
@pytest.mark.parametrize("noise", [1e-4, 1.0, 10.0, 30.0, 1e4])
@pytest.mark.parametrize("seed", range(4))
def test_a_rough_search_ends_near_the_best(noise, seed):
    Z, Y = linear(noise, 40, seed)
    moments = fold_moments(Z, Y, fold_of_rows(0, 40, 5, seed=0), 5)
    whole = moments.whole()
    rough = rough_alpha(moments, whole, range(5))
    halves = whole.scatter_diagonal().mean() * 10.0 ** (np.arange(-20, 21) / 2)
    assert np.abs(halves / rough - 1).min() < 1e-9
    errors = choose_alpha(moments, whole, halves)
    assert errors.means[np.argmin(np.abs(errors.alphas - rough))] <= errors.means.min() * 1.06


def test_a_rough_search_factors_a_few_times(monkeypatch):
    Z, Y = linear(30.0)
    moments = fold_moments(Z, Y, fold_of_rows(0, 400, 5, seed=0), 5)
    scorers = []
    monkeypatch.setattr(folds, "_Scorer", lambda *given: scorers.append(_Scorer(*given)) or scorers[-1])
    rough_alpha(moments, moments.whole(), [0])
    assert len(scorers[0].scores) <= 4


def test_folds_that_cannot_be():
    Z, Y = rows(40)
    folds = np.arange(40) % 2
    for n_folds, assigned in ((3, folds), (1, np.zeros(40, int))):
        moments = fold_moments(Z, Y, assigned, n_folds)
        with pytest.raises(DataError, match=f"of {n_folds} holds .* of 40 rows: too few"):
            choose_alpha(moments, moments.whole())


def test_alphas_that_are_all_too_small():
    Z, Y = rows(20, 40)
    moments = fold_moments(Z, Y, np.arange(20) % 2, 2)
    with pytest.raises(DataError, match="none of alpha="):
        choose_alpha(moments, moments.whole(), [0.0])
    scores = choose_alpha(moments, moments.whole(), [0.0, 1.0])
    assert scores.best == {"alpha": 1}
    assert np.isinf(scores.scores[0]).all()
