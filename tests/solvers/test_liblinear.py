"""Machines of the hinge one target after the other, and their trials on rows held out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from chimap.moments.folds import GivenFolds
from chimap.moments.kept import KeptFeatures
from chimap.moments.targets import weighted
from chimap.solvers.base import Evidence
from chimap.solvers.liblinear import HingeProblem, margins, usual_alpha

N, D, ALPHA = 80, 5, 0.5


def rows():
    """Features, signs of three targets, 0 where one is missing, and weights."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((N, D))
    Y = np.where(Z[:, :3] + 0.5 * rng.standard_normal((N, 3)) > 0, 1.0, -1.0)
    Y[::7, 1] = 0
    return Z, Y, rng.uniform(0.5, 2, N)


def by_hand(Z, y, weights):
    seen = y != 0
    peer = LinearSVC(loss="hinge", C=1 / ALPHA, tol=1e-7, max_iter=1_000_000, random_state=0)
    return peer.fit(Z[seen], y[seen], sample_weight=weights[seen])


def test_each_target_is_scikit_learns_on_the_rows_that_it_is_seen_in():
    Z, Y, weights = rows()
    told = []
    found = margins(Z, Y, weights, ALPHA, 1e-7, 0, told.append)
    for t in range(3):
        peer = by_hand(Z, Y[:, t], weights)
        np.testing.assert_allclose(found.coef[:, t], peer.coef_[0], rtol=1e-3, atol=1e-4)
        assert found.intercept[t] == pytest.approx(peer.intercept_[0], rel=1e-2, abs=1e-3)
    assert len(told) == 3
    assert found.alpha == ALPHA


def test_targets_of_one_side_and_of_none():
    Z, _, weights = rows()
    Y = np.column_stack([np.ones(N), -np.ones(N), np.zeros(N), np.where(np.arange(N) < 9, -1.0, 0.0)])
    found = margins(Z, Y, weights, ALPHA, 1e-4, 0, lambda passes: None)
    assert found.intercept.tolist() == [1, -1, 0, -1]
    assert not found.coef.any()


def test_the_usual_strength_is_a_tenth_of_the_mean_square_times_the_mean_weight():
    Z, _, weights = rows()
    expected = np.square(Z).sum() / N * weights.mean() / 10
    assert usual_alpha(Z, weights) == pytest.approx(expected, rel=1e-12)
    assert usual_alpha(np.zeros((4, 2)), np.ones(4)) == 0.1


def test_trials_are_scored_on_the_rows_held_out():
    Z, Y, weights = rows()
    folds = np.arange(N) % 4
    kept = KeptFeatures(GivenFolds(folds, 4))
    kept.put(Z, weighted(np.where(Y == 0, np.nan, Y), weights), 0)
    problem = HingeProblem(Evidence(kept=kept))
    held, rest = folds == 0, folds != 0
    outputs = np.column_stack(
        [by_hand(Z[rest], Y[rest, t], weights[rest]).decision_function(Z[held]) for t in range(3)]
    )
    losses = np.where(Y[held] != 0, np.maximum(1 - Y[held] * outputs, 0), 0).sum(axis=1)
    expected = np.average(losses, weights=weights[held])
    assert problem.trial(ALPHA) == pytest.approx(expected, rel=0.02)
    said = problem.held_out(problem.solve(ALPHA), None)
    np.testing.assert_array_equal(said.rows, np.flatnonzero(held))
    np.testing.assert_allclose(said.outputs, outputs, atol=0.05)
