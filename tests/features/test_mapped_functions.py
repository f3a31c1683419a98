"""Scores as functions of mapped rows: gradients against differences, contributions that add up."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.features.mapped_functions import GaussianExpansion, LinearFunction, Waves

P, M, T = 6, 9, 3


def functions():
    rng = np.random.default_rng(0)
    coef, intercept = rng.normal(size=(M, T)), rng.normal(size=T)
    return {
        "linear": LinearFunction(rng.normal(size=(P, T)), intercept),
        "expansion": GaussianExpansion(rng.normal(size=(M, P)), coef, intercept),
        "waves": Waves(rng.normal(size=(P, M)), rng.uniform(0, 6, M), coef, intercept),
    }


CASES = pytest.mark.parametrize("function", functions().values(), ids=functions().keys())


@CASES
def test_contributions_add_up_to_the_change_of_the_score(function):
    start, stop = np.random.default_rng(1).normal(size=(2, P))
    change = function(stop[None]) - function(start[None])
    np.testing.assert_allclose(function.along(start, stop).sum(axis=0), change[0], rtol=0, atol=1e-9)


@CASES
def test_a_short_path_gives_the_gradient(function):
    start = np.random.default_rng(2).normal(size=P)
    for q in range(P):
        step = np.zeros(P)
        step[q] = 1e-5
        slope = (function((start + step)[None]) - function((start - step)[None]))[0] / 2
        np.testing.assert_allclose(function.along(start, start + step)[q], slope, rtol=1e-3, atol=1e-12)


@CASES
def test_squared_gradients_are_those_of_differences(function):
    u = np.random.default_rng(3).normal(size=(7, P))
    expected = np.zeros(P)
    for q in range(P):
        step = np.zeros(P)
        step[q] = 1e-5
        slopes = (function(u + step) - function(u - step)) / 2e-5
        expected[q] = np.square(slopes).sum(axis=1).mean()
    np.testing.assert_allclose(function.mean_squared_gradient(u), expected, rtol=1e-6)


@CASES
def test_no_contribution_where_nothing_changes(function):
    start = np.random.default_rng(4).normal(size=P)
    assert np.abs(function.along(start, start)).max() == 0


def test_an_expansion_far_from_its_centres_stays_finite():
    far = GaussianExpansion(np.zeros((1, 2)), np.ones((1, 1)), np.zeros(1))
    assert np.isfinite(far.along(np.zeros(2), np.full(2, 1e10))).all()
