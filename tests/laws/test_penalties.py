"""Every penalty: convexity, gradient where smooth, and residuals that vanish at a proximal point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimap.penalties import L2, L21

from ..references.proximal import prox

D = 6
GROUPS = [[0, 3], slice(1, 3), [5, 4]]
GROUP_NORM = L21(0.7, GROUPS, D)
PENALTIES = {"l2": L2(0.7), "l21": GROUP_NORM, "l21, weighted": L21(0.5, GROUPS, D, group_weights=[0.5, 1.0, 2.0])}
every_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
STEPS = (0.1, 1.0, 3.0)
SEEDS = st.integers(0, 2**31)


def weights(seed, shape=(D,)):
    return np.random.default_rng(seed).standard_normal(shape) * 2


def proximal_objective(penalty, W, V, step):
    return np.square(V - W).sum() / 2 + step * penalty.value(V)


@every_penalty
@given(seed=SEEDS, share=st.floats(0, 1))
def test_convex_even_and_zero_at_zero(penalty, seed, share):
    a, b = weights(seed), weights(seed + 1)
    chord = share * penalty.value(a) + (1 - share) * penalty.value(b)
    assert penalty.value(share * a + (1 - share) * b) <= chord * (1 + 1e-12)
    assert penalty.value(-a) == pytest.approx(penalty.value(a))
    assert penalty.value(np.zeros(D)) == 0


@given(seed=SEEDS)
def test_gradient_is_the_derivative(seed):
    penalty, W, direction, h = L2(0.7), weights(seed), weights(seed + 1), 1e-5
    difference = (penalty.value(W + h * direction) - penalty.value(W - h * direction)) / (2 * h)
    assert penalty.gradient(W) @ direction == pytest.approx(difference, rel=1e-6, abs=1e-8)


@every_penalty
@given(seed=SEEDS, step=st.sampled_from(STEPS))
def test_the_reference_prox_beats_every_neighbour(penalty, seed, step):
    """A convex function that rises in every direction from a point has its minimum there."""
    W = weights(seed)
    V = prox(penalty, W, step)
    least = proximal_objective(penalty, W, V, step)
    rng = np.random.default_rng(seed)
    directions = [*np.eye(D), *-np.eye(D), *rng.standard_normal((20, D)), W - V, V]
    for direction in directions:
        for length in (1e-4, 1e-2, 1.0):
            assert proximal_objective(penalty, W, V + length * direction, step) >= least - 1e-12


@every_penalty
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_targets(penalty, dtype):
    W = weights(0, (D, 3)).astype(dtype)
    assert isinstance(penalty.value(W), float)
    assert penalty.value(W) == pytest.approx(sum(penalty.value(W[:, t]) for t in range(3)))


def test_enough_alpha_empties_a_group_whole():
    V = prox(GROUP_NORM, np.array([0.1, 5.0, 5.0, 0.1, 0.0, 0.0]), 1.0)
    np.testing.assert_array_equal(V != 0, [False, True, True, False, False, False])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[0, 1], []], "group 1 is empty"),
        ([[0, 1], [1, 2]], "column 1 is in 2 groups"),
        ([[0], [2]], "column 1 is in no group"),
        ([[0, 1, 2], [3]], "name columns 0 to 3; there are 3"),
        ([slice(0, 2)], "column 2 is in no group"),
        ([], "column 0 is in no group"),
    ],
)
def test_bad_groups_are_named(groups, message):
    with pytest.raises(ValueError, match=message):
        L21(1.0, groups, 3)


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        L2(0.0)
    with pytest.raises(ValueError, match="group_weights must be 1 positive numbers"):
        L21(1.0, [[0, 1]], 2, group_weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="W holds weights of 3 features; the groups cover 6"):
        GROUP_NORM.value(np.ones(3))


SHARED = L21(0.7, GROUPS, D, shared=True)


def test_shared_groups_are_groups_of_all_targets():
    """W as one long vector whose groups hold a group's columns of every target."""
    W = weights(5, (D, 3))
    flat_groups = [[3 * i + t for i in columns for t in range(3)] for columns in SHARED.members]
    flat = L21(0.7, flat_groups, 3 * D)
    assert SHARED.value(W) == pytest.approx(flat.value(W.ravel()))
    np.testing.assert_allclose(prox(SHARED, W, 1.3).ravel(), prox(flat, W.ravel(), 1.3))
    np.testing.assert_allclose(SHARED.residuals(W, W[::-1])[:, 0], flat.residuals(W.ravel(), W[::-1].ravel()))


@pytest.mark.parametrize("penalty", [GROUP_NORM, PENALTIES["l21, weighted"], SHARED], ids=["1", "w", "shared"])
@given(seed=SEEDS, step=st.sampled_from(STEPS))
def test_residuals_vanish_at_the_proximal_point_and_nowhere_else(penalty, seed, step):
    W = weights(seed, (D, 2))
    V = prox(penalty, W, step)
    np.testing.assert_allclose(penalty.residuals(V, (V - W) / step), 0, atol=1e-10)
    other = V + 0.1 * weights(seed + 1, (D, 2))
    assert penalty.residuals(other, (other - W) / step).max() > 1e-4


def test_largest_alpha_is_where_zero_is_the_minimum():
    gradient = weights(2, (D, 2))
    for penalty in (GROUP_NORM, SHARED):
        largest = penalty.largest(gradient)
        for factor, is_zero in ((1.001, True), (0.999, False)):
            moved = prox(L21(factor * largest, GROUPS, D, shared=penalty.shared), -gradient, 1.0)
            assert np.any(moved) != is_zero
