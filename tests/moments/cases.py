"""Features and targets that moments are made of, and what moments must say of them."""

from __future__ import annotations

import math

import numpy as np

from chimap import Moments


def rows(n_rows=200, n_features=7, n_targets=2, seed=0, mean=3.0):
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((n_features, n_features))
    Z = rng.standard_normal((n_rows, n_features)) @ mixing + mean * rng.standard_normal(n_features)
    Y = Z[:, :1] * rng.standard_normal(n_targets) + rng.standard_normal((n_rows, n_targets)) - mean
    return Z, Y


def moments_of(Z, Y, **shifts) -> Moments:
    return Moments(Z.shape[1], Y.shape[1], **shifts).update(Z, Y)


def assert_says(moments, Z, Y, rtol=1e-10):
    """The moments of rows Z, Y, about whatever point."""
    n = Z.shape[0]
    Z, Y = Z.astype(np.float64), Y.astype(np.float64)
    # exact means, so that the reference does not lose what is to be tested
    z, y = (np.array([math.fsum(c) / n for c in A.T]) for A in (Z, Y))
    Zc, Yc = Z - z, Y - y
    B = np.random.default_rng(0).standard_normal((Z.shape[1], 3))
    assert moments.count == n
    np.testing.assert_allclose(moments.mean, z, rtol)
    np.testing.assert_allclose(moments.target_mean, y, rtol)
    for found, expected in (
        (moments.covariance(), Zc.T @ Zc / n),
        (moments.cross_scatter(), Zc.T @ Yc),
        (moments.target_scatter(), (Yc * Yc).sum(axis=0)),
        (moments.scatter_diagonal(), (Zc * Zc).sum(axis=0)),
        (moments.scatter_product(B), Zc.T @ (Zc @ B)),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


def assert_same(a, b, rtol=1e-12):
    """Equal moments, up to rounding and the point that they are about."""
    assert a.count == b.count
    pairs = ("mean", "target_mean"), ("covariance", "cross_scatter", "target_scatter")
    for name in pairs[0]:
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol)
    for name in pairs[1]:
        expected = getattr(b, name)()
        np.testing.assert_allclose(getattr(a, name)(), expected, rtol=0, atol=rtol * np.abs(expected).max())
