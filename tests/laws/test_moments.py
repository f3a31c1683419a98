"""Moments are a commutative monoid with subtraction."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chimap import Moments

from ..moments.cases import assert_same, assert_says, moments_of, rows

SIZES = st.integers(1, 40)
MEANS = st.sampled_from([0.0, 1.0, 1e4])


def part(size, mean, seed):
    return rows(size, 5, mean=mean, seed=seed)


@given(SIZES, SIZES, MEANS)
def test_merged_is_whole(n, m, mean):
    (Z, Y), (Z2, Y2) = part(n, mean, 0), part(m, mean, 1)
    merged = moments_of(Z, Y) + moments_of(Z2, Y2)
    assert_says(merged, np.vstack([Z, Z2]), np.vstack([Y, Y2]), rtol=1e-9)


@given(SIZES, SIZES, MEANS)
def test_subtracting_undoes_merging(n, m, mean):
    a, b = moments_of(*part(n, mean, 0)), moments_of(*part(m, mean, 1))
    back = (a + b) - b
    assert back.count == n
    np.testing.assert_allclose(back.mean, a.mean, rtol=1e-9)
    scale = np.abs((a + b).covariance()).max() * (n + m)
    np.testing.assert_allclose(n * back.covariance(), n * a.covariance(), rtol=0, atol=1e-11 * scale)
    scale = np.abs((a + b).cross_scatter()).max()
    np.testing.assert_allclose(back.cross_scatter(), a.cross_scatter(), rtol=0, atol=1e-11 * scale)
    assert (a - a).count == 0
    np.testing.assert_allclose((a - a).features.flat, 0, atol=1e-12 * np.abs(a.features.flat).max())


@given(SIZES, SIZES, SIZES, MEANS)
def test_commutative_and_associative(n, m, k, mean):
    a, b, c = (moments_of(*part(size, mean, seed)) for seed, size in enumerate((n, m, k)))
    assert_same(a + b, b + a, 1e-9)
    assert_same((a + b) + c, a + (b + c), 1e-9)


@given(SIZES, MEANS)
def test_empty_is_neutral(n, mean):
    a, empty = moments_of(*part(n, mean, 0)), Moments(5, 2)
    assert_same(a + empty, a, 0)
    assert_same(empty + a, a, 0)
    assert_same(a - empty, a, 0)
    assert (empty + empty).count == 0


def test_operators_leave_their_sides_alone():
    a, b = moments_of(*part(9, 1.0, 0)), moments_of(*part(8, 1.0, 1))
    before = a.copy(), b.copy()
    _ = a + b, (a + b) - b
    assert_same(a, before[0], 0)
    assert_same(b, before[1], 0)
    assert a.merge(b) is a
    assert a.count == 17
    doubled = b.copy()
    doubled.merge(doubled)
    assert_same(doubled, b + b, 1e-12)
