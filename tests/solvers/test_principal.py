"""Ridge on principal components, and its cross-validation, against scikit-learn on the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from chimap._validation import DataError
from chimap.moments import fold_of_rows
from chimap.selection.components import score_principal
from chimap.solvers.principal import PrincipalRidge, _filtered, leading
from chimap.solvers.ridge import ridge

from ..moments.cases import moments_of, rows
from ..selection.test_folds import fold_moments

STRENGTHS = (1e-3, 1.0, 100.0, 1e6)


def by_hand(Z, Y, n_components, alpha):
    return make_pipeline(PCA(n_components, svd_solver="full"), Ridge(alpha, solver="cholesky")).fit(Z, Y)


@pytest.mark.parametrize("alpha", STRENGTHS)
@pytest.mark.parametrize("n_components", [1, 5, 40])
def test_means_far_beyond_the_spread(alpha, n_components):
    """Means 10^4 times the spread: the moments lose no digits."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, 40)) * np.geomspace(1, 1e-2, 40) + 1e4 * rng.standard_normal(40)
    Y = Z[:, :3] + 0.1 * rng.standard_normal((500, 3))
    found = PrincipalRidge.of(moments_of(Z, Y), 40).solution(n_components, alpha)
    expected = by_hand(Z, Y, n_components, alpha).predict(Z)
    spread = np.abs(expected - expected.mean(axis=0)).max()
    # the prediction itself is a difference of numbers 10^4 times larger
    outputs = (Z - Z.mean(axis=0)) @ found.coef + (found.intercept + Z.mean(axis=0) @ found.coef)
    np.testing.assert_allclose(outputs, expected, rtol=1e-9, atol=1e-9 * spread)
    ridge_weights = by_hand(Z, Y, n_components, alpha)
    coef = ridge_weights[0].components_.T @ ridge_weights[1].coef_.T
    np.testing.assert_allclose(found.coef, coef, rtol=1e-9, atol=1e-9 * np.abs(coef).max())


def test_all_components_are_plain_ridge():
    Z, Y = rows(300, 270, 2)
    moments = moments_of(Z, Y)
    model = PrincipalRidge.of(moments)
    for alpha in STRENGTHS:
        expected, found = ridge(moments, alpha), model.solution(270, alpha)
        assert found.alpha == alpha
        np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-6, atol=1e-9)


def test_least_norm_where_features_are_more_than_rows():
    Z, Y = rows(20, 60, 1)
    found = PrincipalRidge.of(moments_of(Z, Y)).solution(60, 0.0)
    centred, targets = Z - Z.mean(axis=0), Y - Y.mean(axis=0)
    np.testing.assert_allclose(found.coef, np.linalg.pinv(centred, rcond=1e-10) @ targets, atol=1e-8)


@pytest.mark.parametrize("shape", [(150, 12, 3), (60, 90, 1), (700, 300, 2)])
@pytest.mark.parametrize("mean", [1.0, 1e4])
def test_scores_are_those_of_refits(shape, mean):
    Z, Y = rows(*shape, mean=mean)
    Z = Z * np.geomspace(1, 1e-2, shape[1])
    folds = fold_of_rows(0, shape[0], 4, seed=0)
    moments = fold_moments(Z, Y, folds, 4)
    components, alphas = [1, 5, 12], [1e-2, 1.0, 1e3]
    seen = []
    scores = score_principal(moments, moments.whole(), components, alphas, seen.append)
    expected = np.empty((3, 3, 4))
    for k in range(4):
        held = folds == k
        for i, p in enumerate(components):
            for j, alpha in enumerate(alphas):
                predicted = by_hand(Z[~held], Y[~held], p, alpha).predict(Z[held]).reshape(-1, shape[2])
                expected[i, j, k] = np.mean(np.sum((predicted - Y[held]) ** 2, axis=1))
    np.testing.assert_allclose(scores.scores, expected.reshape(9, 4), rtol=1e-7)
    assert seen == [0, 1, 2, 3]
    means = np.average(expected, axis=2, weights=np.bincount(folds))
    i, j = np.unravel_index(means.argmin(), means.shape)
    assert scores.best == {"n_components": components[i], "alpha": alphas[j]}
    np.testing.assert_allclose(scores.r2.reshape(3, 3), 1 - means / np.mean(np.sum((Y - Y.mean(0)) ** 2, 1)), atol=1e-7)


def test_bad_requests():
    Z, Y = rows(40, 6, 1)
    moments = fold_moments(Z, Y, fold_of_rows(0, 40, 4, seed=0), 4)
    whole = moments.whole()
    for wrong in ([0, 3], [7], []):
        with pytest.raises(ValueError, match=r"n_components must be within 1 \.\. 6"):
            score_principal(moments, whole, wrong, [1.0])
    with pytest.raises(ValueError, match="each of alpha must be a positive number"):
        score_principal(moments, whole, [2], [1.0, -1.0])
    empty = fold_moments(Z, Y, np.zeros(40, dtype=int), 2)
    with pytest.raises(DataError, match="fold 0 of 2 holds 40 of 40 rows"):
        score_principal(empty, empty.whole(), [2], [1.0])


def test_the_first_coordinates_of_blocks():
    assert leading(np.array([0, 5, 7, 20]), 3).tolist() == [0, 1, 2, 5, 6, 7, 8, 9]


def test_components_that_are_rounding_have_no_weight():
    scatters = np.array([2.0, 1e-17, 0.0])
    np.testing.assert_array_equal(_filtered(scatters, 0.0), [0.5, 0, 0])
    np.testing.assert_allclose(_filtered(scatters, 0.5), [0.4, 2, 2])
