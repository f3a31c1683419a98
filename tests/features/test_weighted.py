"""Weights of bins are scaled columns, and gradients find the bins that matter."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._validation import DataError
from chimap.features.exact import ExactFeatures
from chimap.features.weighted import BinWeights, Half, Relevance, learn_weights, learned_weights, weights_of
from chimap.kernels import CATALOGUE, Exponential, Gaussian, Linear, SkewedChi2, chi2

WEIGHTS = np.array([0.2, 3.0, 0.0, 0.8])


def rows(n=12, bins=4, seed=0):
    return np.random.default_rng(seed).gamma(1.0, size=(n, bins))


@pytest.mark.parametrize("kernel", [*CATALOGUE.values(), Linear()], ids=lambda k: k.name)
@pytest.mark.parametrize("degree", [None, 0.5])
def test_a_weighted_additive_kernel_is_that_of_scaled_columns(kernel, degree):
    if degree is not None:
        if isinstance(kernel, Linear):
            pytest.skip("the linear kernel has degree 2 alone")
        kernel = kernel.with_gamma(degree)
    X = rows()
    expected = sum(w * kernel(X[:, i : i + 1]) for i, w in enumerate(WEIGHTS))
    np.testing.assert_allclose(kernel(BinWeights(WEIGHTS).rows(X, kernel)), expected, rtol=1e-10)


@pytest.mark.parametrize("kernel", [Exponential(chi2, 0.7), Gaussian(0.3)], ids=lambda k: k.name)
def test_an_exponential_kernel_is_of_the_weighted_distance(kernel):
    X = rows()
    exponent = sum(w * np.log(kernel(X[:, i : i + 1])) for i, w in enumerate(WEIGHTS))
    np.testing.assert_allclose(kernel(BinWeights(WEIGHTS).rows(X, kernel)), np.exp(exponent), rtol=1e-9)


def test_sparse_rows_stay_sparse_and_float32():
    X = sp.csr_matrix(rows().astype(np.float32))
    weighted = BinWeights(WEIGHTS).rows(X, chi2)
    assert sp.issparse(weighted)
    assert weighted.dtype == np.float32


def test_a_kernel_without_a_degree_has_no_weights():
    with pytest.raises(DataError, match="not homogeneous"):
        BinWeights(WEIGHTS).rows(rows(), SkewedChi2())


def fitted(X, y, weights):
    scaled = BinWeights(weights).rows(X, Exponential(chi2, 1.0))
    features = ExactFeatures("exp-chi2").fit(scaled)
    K = features.transform(scaled)
    coef = np.linalg.solve(K + 0.01 * np.eye(len(y)), y[:, None])
    return features.mapped_model(coef, np.zeros(1)), scaled


def test_bins_of_noise_lose_their_weight():
    X = rows(150, 8, seed=1)
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    model, scaled = fitted(X, y, np.ones(8))
    weights = learned_weights(model, scaled, np.ones(8))
    assert weights.mean() == pytest.approx(1, rel=1e-3)
    assert weights[:2].min() > 2 * weights[2:].max()


def test_weights_come_from_the_gradients_before_weighting():
    X, weights = rows(40, 3, seed=2), np.array([2.0, 0.5, 0.5])
    model, scaled = fitted(X, X[:, 0], weights)
    u = model.rows(scaled)
    squares = model.by_bin(model.function.mean_squared_gradient(u)[:, None], 3)[:, 0]
    expected = np.sqrt(weights * squares)
    np.testing.assert_allclose(learned_weights(model, scaled, weights), expected / expected.mean(), rtol=1e-12)


def test_bins_of_a_block_share_their_weight():
    X = rows(60, 4, seed=3)
    model, scaled = fitted(X, X[:, 0], np.ones(4))
    weights = learned_weights(model, scaled, np.ones(4), [np.array([0, 1]), np.array([2, 3])])
    assert weights[0] == weights[1] > weights[2] == weights[3]


def test_learning_stops_when_the_score_no_longer_rises_and_keeps_the_best():
    scores = iter([0.5, 0.7, 0.6, 0.9])
    tried = learn_weights(lambda w: (next(scores), lambda: w + 1), np.ones(2))
    assert [r.score for r in tried] == [0.5, 0.7, 0.6]
    assert [r.weights[0] for r in tried] == [1, 2, 3]


@pytest.mark.parametrize(("scores", "weights"), [([0.5, 0.6, 0.7, 0.6], [1, 8, 9, 10]), ([0.5, 0.4, 0.45], [1, 8, 2])])
def test_learning_goes_on_from_other_weights_where_these_are_better(scores, weights):
    told = iter(scores)
    tried = learn_weights(lambda w: (next(told), lambda: w + 1), np.ones(1), other=np.full(1, 8.0))
    assert [r.weights[0] for r in tried] == weights


def test_a_round_is_measured_against_the_one_that_it_came_from():
    told, asked = iter([0.5, 0.4, 0.6, 0.6]), []
    learn_weights(
        lambda w: (next(told), lambda: w + 1),
        np.ones(1),
        least_gain=lambda later, before: asked.append((later, before)) or 0.0,
        other=np.full(1, 8.0),
    )
    assert asked == [(1, 0), (2, 0), (3, 2)]


def halves(rows, y, gamma=0.5):
    """Gaussian machines on halves of the rows; y (n, t)."""
    made = []
    for part in (slice(0, None, 2), slice(1, None, 2)):
        values = Gaussian(gamma)(rows, rows[part])
        coef = np.linalg.solve(values[part] + 0.1 * np.eye(values.shape[1]), y[part])
        made.append(Half(rows[part] - rows.mean(axis=0), coef, values))
    return made


def test_chance_of_two_halves_is_none_on_average():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 12)) / 2
    found = Relevance.of(*halves(rows, 3 * rows[:, :1] + rng.normal(size=(300, 1))))
    assert found.products[0] > 10 * np.abs(found.products[1:]).max()
    shares = [values[1:].mean() / values[0] for values in (found.products, found.squares)]
    assert shares[0] < 0.5 * shares[1]


@pytest.mark.parametrize("block", [2**22, 9])
def test_relevance_is_of_mean_products_of_slopes_dense_or_sparse(monkeypatch, block):
    monkeypatch.setattr("chimap.features.weighted._NUMBERS", block)
    rows = np.random.default_rng(1).normal(size=(20, 3))
    one, other = halves(rows, rows[:, :2])
    g, h = (np.stack([(m.values * c) @ m.centres for c in m.coef.T]) for m in (one, other))
    sparse = [Half(sp.csr_matrix(m.centres), m.coef, m.values) for m in (one, other)]
    for found in (Relevance.of(one, other), Relevance.of(*sparse)):
        for values, expected in ((found.products, g * h), (found.squares, g * g), (found.other_squares, h * h)):
            np.testing.assert_allclose(values, expected.sum(axis=0).mean(axis=0))
        assert found.n_outputs == 2


def test_relevance_adds_up_over_halves_and_terms():
    values = np.arange(12.0).reshape(3, 4)
    one = Relevance(*values, n_outputs=2)
    total = (one + one).summed(np.array([0, 1, 0, 1]), 2)
    np.testing.assert_allclose(
        [total.products, total.squares, total.other_squares], 2 * (values[:, :2] + values[:, 2:])
    )
    assert total.n_outputs == 2


def test_what_the_halves_do_not_agree_on_is_left_out():
    lengths = np.full(5, 4.0)
    cosines = np.array([0.9, 0.3, 0.2, -0.2, -0.2])
    found = Relevance(cosines * lengths, lengths, lengths, 3).above_noise()
    np.testing.assert_allclose(found[:2], [3.6 * (1 - (0.2 / 0.9) ** 2) ** 2, 1.2 * (1 - (2 / 3) ** 2) ** 2])
    np.testing.assert_allclose(found[2:], 0, atol=1e-12)


def test_the_cosine_is_by_the_measure_of_each_coordinate():
    """A coordinate of large, uncertain gradients loses to one of small ones that agree."""
    lengths = np.array([100.0, 1.0, 100.0, 1.0, 0.0])
    products = np.array([30.0, 0.9, -25.0, -0.25, 0.0])
    found = Relevance(products, lengths, lengths, 2).above_noise()
    assert found[0] / products[0] < 0.2 * found[1] / products[1]
    assert found[4] == 0


def test_gradients_that_agree_everywhere_stay():
    ones = np.array([4.0, 1.0])
    np.testing.assert_allclose(Relevance(ones, ones, ones, 2).above_noise(), ones)
    np.testing.assert_allclose(Relevance(ones, ones, ones, 1).above_noise(), ones)


def test_of_one_output_products_are_met_with_their_noise():
    products = np.array([9.0, 4.0, 0.05, -0.1, -0.1])
    found = Relevance(products, np.abs(products), np.abs(products), 1).above_noise()
    np.testing.assert_allclose(found, [8.8, 3.8, 0, 0, 0])


def test_bins_of_no_relevance_have_next_to_no_weight():
    weights = weights_of(np.array([9.0, 4.0, 0.0]), np.ones(3))
    np.testing.assert_allclose(weights[:2], [1.8, 1.2])
    assert 0 < weights[2] < 1e-5
    np.testing.assert_array_equal(weights_of(np.zeros(2), WEIGHTS[:2]), WEIGHTS[:2])
