"""Machines of the hinge one target after the other, and their trials on rows held out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from chimap.moments.folds import GivenFolds
from chimap.moments.kept import KeptFeatures
from chimap.moments.targets import weighted
from chimap.solvers.base import Evidence
from chimap.solvers.liblinear import HingeProblem, SquaredHingeProblem, margins, usual_alpha

N, D, ALPHA = 80, 5, 0.5


def rows():
    """Features, signs of three targets, 0 where one is missing, and weights."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((N, D))
    Y = np.where(Z[:, :3] + 0.5 * rng.standard_normal((N, 3)) > 0, 1.0, -1.0)
    Y[::7, 1] = 0
    return Z, Y, rng.uniform(0.5, 2, N)


def by_hand(Z, y, weights, loss="hinge"):
    seen = y != 0
    peer = LinearSVC(loss=loss, C=1 / ALPHA, tol=1e-7, max_iter=1_000_000, random_state=0)
    return peer.fit(Z[seen], y[seen], sample_weight=weights[seen])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_each_target_is_scikit_learns_on_the_rows_that_it_is_seen_in(loss):
    Z, Y, weights = rows()
    told = []
    found = margins(Z, Y, weights, ALPHA, 1e-7, 0, told.append, loss)
    for t in range(3):
        peer = by_hand(Z, Y[:, t], weights, loss)
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


@pytest.mark.parametrize("made", [HingeProblem, SquaredHingeProblem])
def test_trials_are_scored_on_the_rows_held_out(made):
    Z, Y, weights = rows()
    folds = np.arange(N) % 4
    kept = KeptFeatures(GivenFolds(folds, 4))
    kept.put(Z, weighted(np.where(Y == 0, np.nan, Y), weights), 0)
    problem = made(Evidence(kept=kept))
    held, rest = folds == 0, folds != 0
    outputs = np.column_stack(
        [by_hand(Z[rest], Y[rest, t], weights[rest], made.name).decision_function(Z[held]) for t in range(3)]
    )
    power = 1 if made is HingeProblem else 2
    losses = np.where(Y[held] != 0, np.maximum(1 - Y[held] * outputs, 0) ** power, 0).sum(axis=1)
    expected = np.average(losses, weights=weights[held])
    assert problem.trial(ALPHA) == pytest.approx(expected, rel=0.02)
    said = problem.held_out(problem.solve(ALPHA), None)
    np.testing.assert_array_equal(said.rows, np.flatnonzero(held))
    np.testing.assert_allclose(said.outputs, outputs, atol=0.05)


def test_short_rows_converge_whatever_their_unit():
    """Beside a constant of 1, rows of length .01 look alike; scaling rows and strength together changes no output."""
    Z = (1 + 0.3 * np.random.default_rng(0).standard_normal((200, 30))) / 30
    y = np.where(Z[:, 0] + Z[:, 1] > 2 / 30, 1.0, -1.0)[:, None]
    outputs = []
    for factor in (0.05, 0.2, 1.0):
        rows = factor * Z
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solution = margins(rows, y, np.ones(200), 0.01 * factor**2, 1e-4, 0, lambda passes: None)
        outputs.append(rows @ solution.coef + solution.intercept)
    np.testing.assert_allclose(outputs[0], outputs[2], atol=1e-2)
    np.testing.assert_allclose(outputs[1], outputs[2], atol=1e-2)
    assert np.mean(np.sign(outputs[2]) == y) > 0.9


def test_what_does_not_converge_is_told_what_would():
    rng = np.random.default_rng(0)
    Z, y = rng.poisson(rng.gamma(0.5, 2000, (200, 20))).astype(float), rng.choice([-1.0, 1.0], (200, 1))
    with pytest.warns(ConvergenceWarning, match=r"alpha=1 is too small for rows of this length.*strength is") as said:
        margins(Z, y, np.ones(200), 1.0, 1e-4, 0, lambda passes: None)
    assert len(said) == 1  # and scikit-learn's advice, to increase max_iter, is not passed on
