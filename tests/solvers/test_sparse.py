"""LASSO and elastic net from moments against scikit-learn on the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from chimap._validation import DataError
from chimap.moments import Moments, fold_of_rows
from chimap.penalties import check_groups
from chimap.selection.folds import score_path
from chimap.solvers.sparse import elastic_net, equivalent_rows, held_out_error, largest_alpha

from ..moments.cases import moments_of, rows
from ..selection.test_folds import fold_moments

SHAPES = [(300, 12, 2), (40, 60, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.0, 1e4])
def test_equivalent_rows_have_the_same_objective(shape, mean):
    Z, Y = rows(*shape, mean=mean)
    R, Q = equivalent_rows(moments_of(Z, Y))
    assert R.shape[0] <= shape[1]
    Zc, Yc = Z - Z.mean(axis=0), Y - Y.mean(axis=0)

    def gap(W):
        return ((Zc @ W - Yc) ** 2).sum(axis=0) / shape[0] - ((R @ W - Q) ** 2).sum(axis=0)

    W = np.random.default_rng(1).standard_normal((shape[1], shape[2]))
    scale = ((Zc @ W) ** 2).sum() / shape[0]
    np.testing.assert_allclose(gap(W), gap(0 * W), atol=1e-8 * scale)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_elastic_net_is_that_of_scikit_learn(shape, l1_ratio):
    Z, Y = rows(*shape, mean=10.0)
    moments = moments_of(Z, Y)
    largest = largest_alpha(moments, l1_ratio)
    path = elastic_net(moments, largest * np.array([1e-2, 1.001, 0.3]), l1_ratio)
    assert np.all(np.diff(path.alphas) < 0)
    assert path.n_used[0] == 0 < path.n_used[1] <= path.n_used[2]
    assert path.residuals.max() < 1e-3
    for alpha, found in zip(path.alphas, path.solutions, strict=True):
        expected = ElasticNet(alpha, l1_ratio=l1_ratio, tol=1e-12, max_iter=100_000).fit(Z, Y)
        coef = expected.coef_.reshape(shape[2], -1).T
        np.testing.assert_allclose(found.coef, coef, atol=2e-3 * max(np.abs(coef).max(), 1e-12))
        predicted = expected.predict(Z).reshape(Y.shape)
        np.testing.assert_allclose(Z @ found.coef + found.intercept, predicted, atol=1e-3 * Y.std())


def test_scores_are_those_of_refits():
    Z, Y = rows(120, 8, 2, mean=5.0)
    folds = fold_of_rows(0, 120, 3, seed=0)
    moments = fold_moments(Z, Y, folds, 3)
    whole = moments.whole()
    alphas = largest_alpha(whole) * np.array([0.5, 0.05])
    seen = []
    result = score_path(moments, whole, alphas, elastic_net, seen.append)
    for k in range(3):
        held = folds == k
        for s, alpha in enumerate(alphas):
            model = ElasticNet(alpha, l1_ratio=1.0, tol=1e-12, max_iter=100_000).fit(Z[~held], Y[~held])
            expected = np.mean(np.sum((model.predict(Z[held]) - Y[held]) ** 2, axis=1))
            np.testing.assert_allclose(result.scores[s, k], expected, rtol=1e-4)
    assert seen == [0, 1, 2]
    with pytest.raises(ValueError, match="alphas must descend"):
        score_path(moments, whole, alphas[::-1], elastic_net)


def test_held_out_error_is_that_of_the_rows():
    Z, Y = rows(50, 6, 2, mean=1e3)
    other, targets = rows(30, 6, 2, seed=1)
    found = elastic_net(moments_of(Z, Y), np.array([0.1])).solutions[0]
    expected = np.mean(np.sum((other @ found.coef + found.intercept - targets) ** 2, axis=1))
    np.testing.assert_allclose(held_out_error(moments_of(other, targets), found), expected, rtol=1e-9)


def test_groups():
    assert [g.tolist() for g in check_groups([slice(0, 2), [3, 2]], 4)] == [[0, 1], [3, 2]]
    for groups, message in (
        ([[0, 1], []], "group 1 is empty"),
        ([[0, 1], [1, 2]], "column 1 is in 2 groups"),
        ([[0, 2]], "column 1 is in no group"),
        ([[0, 1, 2, 7]], "groups name columns 0 to 7; there are 3"),
    ):
        with pytest.raises(ValueError, match=message):
            check_groups(groups, 3)


def test_no_rows():
    with pytest.raises(DataError, match="no rows"):
        equivalent_rows(Moments(3, 1))
