"""Every penalty: convexity, gradient where smooth, and a proximal operator that is the minimiser it claims to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from chimap import penalties
from chimap.penalties import L1, L2, L21, Penalty, PenaltySum

D = 6
GROUPS = [[0, 3], slice(1, 3), [5, 4]]
GROUP_NORM = L21(0.7, GROUPS, D)
KINDS = {
    kind
    for kind in vars(penalties).values()
    if isinstance(kind, type) and issubclass(kind, Penalty) and kind is not Penalty
}
OF_A_STRENGTH = {kind.__name__: kind(0.7) for kind in sorted(KINDS - {L21, PenaltySum}, key=str)}
PENALTIES = OF_A_STRENGTH | {
    "l21": GROUP_NORM,
    "l21, weighted": L21(0.5, GROUPS, D, group_weights=[0.5, 1.0, 2.0]),
    "elastic net": PenaltySum(L2(0.5), L1(0.4)),
    "sparse group": PenaltySum(GROUP_NORM, L1(0.3)),
    "all": PenaltySum(L2(0.4), GROUP_NORM, L1(0.2)),
}
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


@every_penalty
@given(seed=SEEDS)
def test_gradient_is_the_derivative_where_smooth(penalty, seed):
    W, direction, h = weights(seed), weights(seed + 1), 1e-5
    if not penalty.is_smooth:
        with pytest.raises(TypeError, match="has no gradient"):
            penalty.gradient(W)
        return
    difference = (penalty.value(W + h * direction) - penalty.value(W - h * direction)) / (2 * h)
    assert penalty.gradient(W) @ direction == pytest.approx(difference, rel=1e-6, abs=1e-8)


def numerical_minimum(penalty, W, step):
    """The least proximal objective that Powell's method finds over p - n with p, n >= 0, which has fewer kinks."""

    def objective(x):
        return proximal_objective(penalty, W, x[:D] - x[D:], step)

    starts = [np.concatenate([np.maximum(V, 0), np.maximum(-V, 0)]) for V in (W, 0.5 * W, np.zeros(D))]
    found = [
        minimize(objective, s, method="Powell", bounds=[(0, 9)] * (2 * D), options={"ftol": 1e-13}) for s in starts
    ]
    return min(result.fun for result in found)


@every_penalty
@pytest.mark.parametrize("step", STEPS)
def test_prox_is_the_minimum(penalty, step):
    W = weights(3)
    found = proximal_objective(penalty, W, penalty.prox(W, step), step)
    least = numerical_minimum(penalty, W, step)
    assert found == pytest.approx(least, rel=1e-4)
    assert found <= least + 1e-9


@every_penalty
@given(seed=SEEDS, step=st.sampled_from(STEPS))
def test_prox_beats_every_neighbour(penalty, seed, step):
    """A convex function that rises in every direction from a point has its minimum there."""
    W = weights(seed)
    V = penalty.prox(W, step)
    least = proximal_objective(penalty, W, V, step)
    rng = np.random.default_rng(seed)
    directions = [*np.eye(D), *-np.eye(D), *rng.standard_normal((20, D)), W - V, V]
    for direction in directions:
        for length in (1e-4, 1e-2, 1.0):
            assert proximal_objective(penalty, W, V + length * direction, step) >= least - 1e-12


def parts_of(penalty):
    return penalty.parts if isinstance(penalty, PenaltySum) else (penalty,)


@every_penalty
@given(seed=SEEDS, step=st.sampled_from(STEPS))
def test_prox_satisfies_the_subgradient_condition(penalty, seed, step):
    """(W - V) / step is a subgradient of the penalty at V, group by group."""
    W = weights(seed)
    V = penalty.prox(W, step)
    pull = (W - V) / step
    alphas = {type(part): part for part in parts_of(penalty)}
    if L2 in alphas:
        pull = pull - alphas[L2].gradient(V)
    bound = alphas[L1].alpha if L1 in alphas else 0.0
    norm = alphas.get(L21)
    groups = (
        [[i] for i in range(D)]
        if norm is None
        else [np.arange(D)[np.r_[g] if isinstance(g, slice) else g] for g in norm.groups]
    )
    group_weights = [1.0] * len(groups) if norm is None or norm.group_weights is None else norm.group_weights
    for group, weight in zip(groups, group_weights, strict=True):
        v, g = V[group], pull[group]
        level = 0.0 if norm is None else norm.alpha * weight
        if np.any(v):
            g = g - level * v / np.linalg.norm(v)
            used = v != 0
            np.testing.assert_allclose(g[used], bound * np.sign(v[used]), atol=1e-12)
            assert np.all(np.abs(g[~used]) <= bound + 1e-12)
        else:  # what is left after the best subgradient of the l1 norm is in the ball of the group norm
            assert np.linalg.norm(np.maximum(np.abs(g) - bound, 0)) <= level + 1e-12


@every_penalty
def test_prox_is_firmly_nonexpansive(penalty):
    for seed in range(20):
        a, b = weights(seed), weights(seed + 100)
        moved = penalty.prox(a, 1.0) - penalty.prox(b, 1.0)
        assert moved @ moved <= moved @ (a - b) + 1e-12


@every_penalty
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_targets_and_dtype_is_kept(penalty, dtype):
    W = weights(0, (D, 3)).astype(dtype)
    V = penalty.prox(W, 0.7)
    assert V.dtype == dtype
    assert isinstance(penalty.value(W), float)
    assert penalty.value(W) == pytest.approx(sum(penalty.value(W[:, t]) for t in range(3)))
    for t in range(3):
        np.testing.assert_allclose(V[:, t], penalty.prox(W[:, t], 0.7), rtol=1e-6)
    if penalty.is_smooth:
        assert penalty.gradient(W).dtype == dtype


@every_penalty
def test_zero_weights_stay(penalty):
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(penalty.prox(np.zeros(D), 1.0), 0)


def test_enough_alpha_empties_a_group_whole():
    V = GROUP_NORM.prox(np.array([0.1, 5.0, 5.0, 0.1, 0.0, 0.0]), 1.0)
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
    for make in (L1, L2):
        with pytest.raises(ValueError, match="alpha must be a positive number"):
            make(0.0)
    with pytest.raises(ValueError, match="group_weights must be 1 positive numbers"):
        L21(1.0, [[0, 1]], 2, group_weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="W holds weights of 3 features; the groups cover 6"):
        GROUP_NORM.value(np.ones(3))
    for parts in ((), (L1(1.0), L1(2.0)), (L2(1.0), PenaltySum(L1(1.0)))):
        with pytest.raises(ValueError, match="each at most once"):
            PenaltySum(*parts)


def test_every_kind_is_tested():
    assert {type(p) for p in PENALTIES.values()} == KINDS


SHARED = L21(0.7, GROUPS, D, shared=True)


def test_shared_groups_are_groups_of_all_targets():
    """W as one long vector whose groups hold a group's columns of every target."""
    W = weights(5, (D, 3))
    flat_groups = [[3 * i + t for i in columns for t in range(3)] for columns in SHARED.members]
    flat = L21(0.7, flat_groups, 3 * D)
    assert SHARED.value(W) == pytest.approx(flat.value(W.ravel()))
    np.testing.assert_allclose(SHARED.prox(W, 1.3).ravel(), flat.prox(W.ravel(), 1.3))
    np.testing.assert_allclose(SHARED.residuals(W, W[::-1])[:, 0], flat.residuals(W.ravel(), W[::-1].ravel()))


@pytest.mark.parametrize("penalty", [GROUP_NORM, PENALTIES["l21, weighted"], SHARED], ids=["1", "w", "shared"])
@given(seed=SEEDS, step=st.sampled_from(STEPS))
def test_residuals_vanish_at_the_proximal_point_and_nowhere_else(penalty, seed, step):
    W = weights(seed, (D, 2))
    V = penalty.prox(W, step)
    np.testing.assert_allclose(penalty.residuals(V, (V - W) / step), 0, atol=1e-10)
    other = V + 0.1 * weights(seed + 1, (D, 2))
    assert penalty.residuals(other, (other - W) / step).max() > 1e-4


def test_largest_alpha_is_where_zero_is_the_minimum():
    gradient = weights(2, (D, 2))
    for penalty in (GROUP_NORM, SHARED):
        largest = penalty.largest(gradient)
        for factor, is_zero in ((1.001, True), (0.999, False)):
            moved = L21(factor * largest, GROUPS, D, shared=penalty.shared).prox(-gradient, 1.0)
            assert np.any(moved) != is_zero
