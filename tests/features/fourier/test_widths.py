"""Features that are differentiable in their widths: gradients, widths folded in, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import Exponential, FourierFeatures, SkewedChi2, SkewedIntersection, chi2
from chimap._validation import DataError
from chimap.features.fourier.widths import WidthFeatures, initial_widths
from chimap.losses import CATALOGUE as LOSSES
from chimap.penalties import L2, L21

from ...histograms import histograms

KERNELS = [
    "exp-chi2",
    "exp-intersection",
    "exp-jensen_shannon",
    "exp-hellinger",
    "gaussian",
    "skewed-chi2",
    "skewed-intersection",
]
BLOCKS = {"left": [0, 3, 5], "right": [1, 2, 4, 6, 7]}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def fitted(kernel="exp-chi2", n_components=32, **settings):
    X = histograms(40, 8)
    return X, WidthFeatures(kernel, n_components, blocks=BLOCKS, random_state=0, **settings).fit(X)


def difference(value, x, h=1e-5):
    """Central differences, extrapolated (Richardson), of a function of x (r,)."""
    found = np.empty(x.size)
    for j, e in enumerate(np.eye(x.size)):
        wide = (value(x + 2 * h * e) - value(x - 2 * h * e)) / (4 * h)
        near = (value(x + h * e) - value(x - h * e)) / (2 * h)
        found[j] = (4 * near - wide) / 3
    return found


PENALTIES = {"l2": L2(0.3), "l21": L21(0.3, [slice(0, 10), slice(10, 32)], 32)}


@every_kernel
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
@pytest.mark.parametrize("loss", [cls() for cls in LOSSES.values()], ids=LOSSES)
def test_gradient_of_every_loss_and_penalty(kernel, loss, penalty):
    X, features = fitted(kernel)
    rng = np.random.default_rng(1)
    W, b = rng.standard_normal((32, 2)), rng.standard_normal(2)
    Y = np.sign(rng.standard_normal((40, 2)))
    Y = Y.clip(0) if loss.domain == "count" else Y
    at = features.start_ + np.array([0.3, -0.2])

    def objective(log_widths):
        scores = features.at(log_widths).transform(X) @ W + b
        return float(loss.value(Y, scores).sum()) + penalty.value(W) + 0.1 * np.exp(2 * log_widths).sum()

    def slopes(part, psi):
        return loss.gradient(Y[part], psi @ W + b) @ W.T

    gradient = features.pullback_at(features.at(at), X, slopes) + 0.2 * np.exp(2 * at)
    np.testing.assert_allclose(gradient, difference(objective, at), rtol=1e-6, atol=1e-6)


@every_kernel
@pytest.mark.parametrize("widths", ["one", "block", "bin", np.arange(8) % 3], ids=str)
@pytest.mark.parametrize(("form", "n_components"), [("pair", 32), ("pair", 33), ("offset", 32)])
def test_gradient_of_every_grouping_and_form(kernel, widths, form, n_components):
    X, features = fitted(kernel, n_components, widths=widths, form=form)
    G = np.random.default_rng(2).standard_normal((40, n_components))
    at = features.start_ + np.linspace(-0.3, 0.3, features.n_widths)
    exact = difference(lambda log_widths: float((features.at(log_widths).transform(X) * G).sum()), at)
    np.testing.assert_allclose(features.pullback_at(features.at(at), X, G), exact, rtol=1e-6, atol=1e-6)


@every_kernel
def test_folded_features_approximate_the_kernel_of_these_widths(kernel):
    slow = "intersection" in kernel  # the map of the intersection kernel converges slowly
    X, features = fitted(kernel, 16384, n_terms=24 if slow else 5)
    plain = features.at(features.start_ + np.array([0.7, -0.7]))
    Z = plain.transform(X)
    np.testing.assert_allclose(Z @ Z.T, plain.kernel_(X), atol=0.08 if slow else 0.05)


def test_one_width_is_the_plain_kernel():
    X = histograms(40, 8)
    features = WidthFeatures("exp-chi2", 64, random_state=0).fit(X)
    plain = FourierFeatures("exp-chi2", 64, random_state=0).fit(X)
    found = features.at(features.start_)
    assert isinstance(found.kernel_, Exponential)
    # the start is gamma = 1 / mean D^2, here from the mapped bins
    assert found.gamma_ == pytest.approx(plain.gamma_, rel=0.05)
    same = features.at(np.array([0.5 * np.log(2 * plain.gamma_)]))
    np.testing.assert_allclose(same.transform(X), plain.transform(X), atol=1e-12)


def test_start_gives_each_block_its_share_of_a_mean_exponent_of_one():
    X, features = fitted("exp-chi2")
    n = len(X)
    shares = [
        s**2 / 2 * chi2.distance(X[:, columns]).sum() / (n * (n - 1))
        for s, columns in zip(np.exp(features.start_), BLOCKS.values(), strict=True)
    ]
    np.testing.assert_allclose(shares, 0.5, rtol=0.05)


def test_slices_and_sparse_rows_change_nothing():
    X = histograms(1300, 8)
    features = WidthFeatures("exp-chi2", 32, widths="bin", random_state=0).fit(X)
    G = np.random.default_rng(2).standard_normal((1300, 32))
    whole = features.pullback_at(features.at(features.start_), X, G)
    parts = sum(
        features.pullback_at(features.at(features.start_), X[i : i + 100], G[i : i + 100]) for i in range(0, 1300, 100)
    )
    np.testing.assert_allclose(parts, whole, rtol=1e-10)
    np.testing.assert_allclose(
        features.pullback_at(features.at(features.start_), sp.csr_matrix(X), G), whole, rtol=1e-10
    )


def test_float32_rows_give_the_gradient_rounded():
    X = histograms(200, 8)
    features = WidthFeatures("exp-chi2", 32, blocks=BLOCKS, random_state=0).fit(X)
    G = np.random.default_rng(2).standard_normal((200, 32))
    double = features.pullback_at(features.at(features.start_), X, G)
    single = features.pullback_at(features.at(features.start_), X.astype(np.float32), G.astype(np.float32))
    np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": [slice(0, 5), slice(4, 8)]}, r"blocks overlap: column 4 is in 'block0' and in 'block1'"),
        ({"blocks": {"a": slice(0, 3), "b": slice(4, 8)}}, r"blocks miss 1 of the 8 columns, column 3 first"),
        ({"widths": "bins"}, r"widths must be one of 'block', 'bin', 'one'; got 'bins'"),
        ({"widths": np.zeros(5, int)}, r"widths as an array must be whole numbers, one for each of the 8 columns"),
        ({"widths": [0, 0, 2, 2, 2, 2, 2, 2]}, r"widths: group 1 has no column"),
        ({"kernel": "chi2"}, r"use its exponential form, such as 'exp-chi2'"),
        ({"kernel": "pq"}, r"widths are learned for exponential, Gaussian and skewed kernels; got 'pq'"),
        ({"sampling": "structured"}, r"sampling must be one of 'auto', 'orthogonal', 'iid', 'qmc'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        WidthFeatures(**settings).fit(histograms(20, 8))


def test_constant_block_is_named():
    X = histograms(20, 8)
    X[:, :3] = 0.25
    for kernel in ("exp-chi2", "gaussian", "skewed-chi2", "skewed-intersection"):
        with pytest.raises(DataError, match="block 'shape' is constant"):
            WidthFeatures(kernel, blocks={"shape": slice(0, 3), "colour": slice(3, 8)}).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_widths_that_leave_the_floating_range_are_named(dtype):
    X = histograms(20, 8).astype(dtype)
    features = WidthFeatures(SkewedChi2(), 16, blocks=BLOCKS, random_state=0).fit(X)
    for bad, what in ((-400.0, "underflows"), (400.0, "overflows"), (np.nan, "is not finite")):
        with pytest.raises(ValueError, match=rf"the width of 'right' {what} in {np.dtype(dtype)}"):
            features.at(np.array([0.0, bad]))


@pytest.mark.parametrize("n", [2, 3, 40])
def test_the_start_is_exact_for_gaussians_of_any_number_of_rows(n):
    X = np.random.default_rng(0).standard_normal((n, 8))
    features = WidthFeatures("gaussian", 16, blocks=BLOCKS, random_state=0).fit(X)
    for s, columns in zip(np.exp(features.start_), BLOCKS.values(), strict=True):
        squares = np.square(X[:, None, columns] - X[:, columns]).sum(axis=2)
        assert s**2 / 2 * squares.sum() / (n * (n - 1)) == pytest.approx(0.5, rel=1e-9)


def test_the_start_of_absolute_differences_is_that_of_normal_logarithms():
    logs = np.random.default_rng(0).standard_normal((2000, 8))
    kernel = SkewedIntersection(c=1e-9)
    features = WidthFeatures(kernel, 16, blocks=BLOCKS, random_state=0).fit(np.exp(logs))
    for s, columns in zip(np.exp(features.start_), BLOCKS.values(), strict=True):
        differences = np.abs(logs[:1000, columns] - logs[1000:, columns]).sum(axis=1)
        assert s * differences.mean() == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize("n", [40, 700])  # one block of rows, and several with a rest
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_start_does_not_cancel_where_means_dominate(n, make):
    rows = 1e7 + np.random.default_rng(0).standard_normal((n, 3))
    unit = FourierFeatures("gaussian", n_components=8, gamma=1.0, random_state=0).fit(rows)
    unit.centre_ = np.zeros(3)  # the means of all bins stay
    whole = ["all"], [np.arange(3)], np.zeros(3, int)
    width = np.exp(initial_widths(unit, make(rows), *whole)[0])
    assert width**2 * rows.var(axis=0, ddof=1).sum() == pytest.approx(1, rel=1e-12)
    with pytest.raises(DataError, match="block 'all' is constant"):
        initial_widths(unit, make(np.full((n, 3), 0.1)), *whole)
