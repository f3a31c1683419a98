"""Weights of exact kernels: equal to those of groups of features, exactly and in the limit of many random features."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from chimap import Exponential, FourierFeatures, chi2
from chimap._validation import DataError
from chimap.features.blocks import BlockFeatures
from chimap.losses import EpsilonInsensitive, Logistic, SmoothHinge, Square
from chimap.penalties import L21
from chimap.solvers.groups import LossProblem, SquareProblem
from chimap.solvers.lbfgs import over
from tests.references.gmkl import gmkl

from ..histograms import histograms
from ..moments.cases import moments_of

N = 80
CHANNELS = [slice(0, 8), slice(8, 14), slice(14, 24)]
LOSSES = {
    "square": Square(),
    "epsilon_insensitive": EpsilonInsensitive(0.1, 5.0),
    "logistic": Logistic(),
    "smooth_hinge": SmoothHinge(),
}


def channels(n=N, seed=0):
    """Histograms of three channels, targets that two of them tell, and the exponential chi2 kernels."""
    rows = np.hstack([histograms(n, 8, seed), histograms(n, 6, seed + 1), histograms(n, 10, seed + 2)])
    f = 4 * np.sqrt(rows[:, 0]) - 3 * rows[:, 15] + 2 * rows[:, 1]
    y = (f - f.mean()) / f.std() + 0.2 * np.random.default_rng(seed).standard_normal(n)
    kernels = [Exponential(chi2).fitted(rows[:, c]) for c in CHANNELS]
    return rows, y[:, None], kernels


def factor(K):
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def by_groups(blocks, Y, loss, alpha):
    """The l21 problem at the strength sqrt(2) alpha (the paper's sqrt(2) / C) on these features of the channels."""
    Z = np.hstack(blocks)
    borders = np.cumsum([0, *(b.shape[1] for b in blocks)]).tolist()
    penalty = L21(1.0, [slice(a, b) for a, b in pairwise(borders)], Z.shape[1], shared=True)
    whole = moments_of(Z, Y)
    if loss == Square():
        problem = SquareProblem(whole, penalty)
    else:
        problem = LossProblem(loss, over(lambda: [(Z - whole.shifts[0], Y)]), whole, penalty)
    found = problem.solve(np.sqrt(2) * alpha, problem.zero())
    return found, penalty.norms(found.coef)[:, 0] / np.sqrt(2)


@pytest.mark.parametrize("alpha", [2.0, 0.2])
@pytest.mark.parametrize("name", LOSSES)
def test_equal_to_groups_of_exact_features(name, alpha):
    """With Z_j Z_j' = K_j the two problems are one: the same weights and the same objective."""
    loss = LOSSES[name]
    rows, Y, kernels = channels()
    Y = np.sign(Y) if loss.domain == "sign" else Y
    grams = [kernel(rows[:, c]) for kernel, c in zip(kernels, CHANNELS, strict=True)]
    exact = gmkl(grams, Y, loss, alpha)
    found, weights = by_groups([factor(K) for K in grams], Y, loss, alpha)
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
    np.testing.assert_allclose(weights, exact.weights, atol=2e-3 * weights.max())
    # the optimum of d given the channels' weights
    np.testing.assert_allclose(exact.norms / np.sqrt(2), exact.weights, atol=2e-3 * weights.max())


def test_targets_share_their_kernels():
    rows, Y, kernels = channels()
    Y = np.hstack([Y, rows[:, 8:9] * 5])
    grams = [kernel(rows[:, c]) for kernel, c in zip(kernels, CHANNELS, strict=True)]
    exact = gmkl(grams, Y, Square(), 0.5)
    _, weights = by_groups([factor(K) for K in grams], Y, Square(), 0.5)
    np.testing.assert_allclose(weights, exact.weights, atol=2e-3 * weights.max())


def test_random_features_find_the_weights_of_the_exact_kernels():
    rows, Y, kernels = channels()
    grams = [kernel(rows[:, c]) for kernel, c in zip(kernels, CHANNELS, strict=True)]
    exact = gmkl(grams, Y, Square(), 0.5).weights
    errors = []
    for D in (64, 4096):
        features = [FourierFeatures(kernel, D, n_terms=4, random_state=j) for j, kernel in enumerate(kernels)]
        fitted = BlockFeatures(features, CHANNELS).fit(rows)
        Z = fitted.transform(rows)
        # rows are fewer than features: Gram matrices of these features say as much, in less time
        blocks = [factor(z @ z.T) for z in np.split(Z, 3, axis=1)]
        errors.append(np.abs(by_groups(blocks, Y, Square(), 0.5)[1] - exact).max() / exact.max())
    assert errors[1] < 0.02
    assert errors[1] < errors[0]


def test_a_kernel_that_does_not_help_has_no_weight_and_a_positive_slope():
    rows, Y, kernels = channels()
    grams = [kernel(rows[:, c]) for kernel, c in zip(kernels, CHANNELS, strict=True)]
    found = gmkl(grams, Y, Square(), 1 / 0.12)
    assert found.weights[0] > 0
    assert found.weights[1] == 0
    assert found.gradient[1] > 0
    assert abs(found.gradient[0]) < 1e-4


def test_gradient_in_the_weights_is_the_derivative():
    from tests.references.gmkl import _GramObjective

    rows, Y, kernels = channels()
    grams = [kernel(rows[:, c]) for kernel, c in zip(kernels, CHANNELS, strict=True)]
    for loss in (Square(), EpsilonInsensitive(0.1, 5.0)):
        d, h = np.array([0.7, 0.2, 1.1]), 1e-4
        _, gradient = _GramObjective(grams, Y, loss, 0.5)(d)
        for j in range(3):
            step = h * (np.arange(3) == j)
            up, down = (_GramObjective(grams, Y, loss, 0.5)(d + sign * step)[0] for sign in (1, -1))
            assert gradient[j] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-5)


def test_bad_input_is_named():
    rows, Y, kernels = channels(20)
    K = kernels[0](rows[:, :8])
    with pytest.raises(DataError, match="Gram matrix 1 must be 20 x 20"):
        gmkl([K, K[:5]], Y, Square(), 1.0)
    with pytest.raises(DataError, match="Gram matrix 0 must be finite and symmetric"):
        gmkl([np.triu(K)], Y, Square(), 1.0)
    with pytest.raises(DataError, match="needs at least one Gram matrix"):
        gmkl([], Y, Square(), 1.0)
    with pytest.raises(DataError, match="the logistic loss takes -1 or 1"):
        gmkl([K], Y, Logistic(), 1.0)
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        gmkl([K], Y, Square(), 0.0)
