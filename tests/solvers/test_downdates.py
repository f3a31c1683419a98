"""Rows that leave by downdates: the same as machines that are solved without them."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.solvers.downdates import Downdates, FeatureDowndates, MatrixDowndates, at_best_strength

RNG = np.random.default_rng(0)
N, D, ALPHA = 30, 6, 0.7
Z, Y, WEIGHTS = RNG.normal(size=(N, D)), RNG.normal(size=(N, 2)), RNG.uniform(0.5, 2, N)


def made(kind: str, weights: np.ndarray | None, rows: np.ndarray = np.arange(N)) -> Downdates:  # noqa: B008
    own = None if weights is None else weights[rows]
    if kind == "features":
        return FeatureDowndates.of(Z[rows], Y[rows], ALPHA, own)
    return MatrixDowndates.of(Z[rows] @ Z[rows].T, Y[rows], ALPHA, own)


def outputs(weights: np.ndarray | None, learned: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Solved by definition: weights of features with an intercept that bears no penalty."""
    w = (np.ones(N) if weights is None else weights)[learned]
    X = np.column_stack([Z[learned], np.ones(learned.size)])
    penalty = np.diag([ALPHA] * D + [0.0])
    coef = np.linalg.solve(X.T @ (w[:, None] * X) + penalty, X.T @ (w[:, None] * Y[learned]))
    return np.column_stack([Z[asked], np.ones(asked.size)]) @ coef


def but(*gone: np.ndarray) -> np.ndarray:
    return np.setdiff1d(np.arange(N), np.concatenate(gone))


CASES = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
KINDS = pytest.mark.parametrize("kind", ["matrix", "features"])
SETS = [np.arange(0, 4), np.array([7, 4, 29]), np.arange(10, 22)]


@KINDS
@CASES
def test_sets_of_rows_leave(kind, weights):
    machine = made(kind, weights)
    alone = machine.left_out()
    for row in (0, 13, 29):
        one = np.array([row])
        np.testing.assert_allclose(alone[one], outputs(weights, but(one), one), atol=1e-10)
    together = machine.left_out(SETS)
    for rows in SETS:
        np.testing.assert_allclose(together[rows], outputs(weights, but(rows), rows), atol=1e-10)
    assert np.isnan(together[but(*SETS)]).all()


@KINDS
@CASES
def test_a_set_leaves_after_another(kind, weights):
    gone, sets = SETS[2], SETS[:2]
    found = made(kind, weights).left_out_without(gone, sets)
    for rows in sets:
        np.testing.assert_allclose(found[rows], outputs(weights, but(rows, gone), rows), atol=1e-10)
    assert np.isnan(found[gone]).all()


@KINDS
@CASES
def test_weights_without_rows_are_those_of_the_others(kind, weights):
    machine, gone = made(kind, weights), SETS[1]
    duals, others = machine.without(gone), but(gone)
    alone = MatrixDowndates.of(
        (Z @ Z.T)[np.ix_(others, others)], Y[others], ALPHA, None if weights is None else weights[others]
    )
    np.testing.assert_allclose(duals[others], alone.duals, atol=1e-10)
    assert not duals[gone].any()


@KINDS
@CASES
def test_what_changes_when_a_row_goes(kind, weights):
    machine, held = made(kind, weights), SETS[1]
    changes, before = machine.changes(held), machine.left_out([held])[held]
    for row in (0, 12, 28):
        after = outputs(weights, but(held, np.array([row])), held)
        np.testing.assert_allclose(changes[:, row], after - before, atol=1e-10)
    assert not changes[:, held].any()


@KINDS
def test_variances_are_those_of_the_noise(kind):
    """A residual of a left-out row is its noise and that of its output: the trace of what the weights do to noise."""
    machine = made(kind, None)
    rows, others = SETS[0], but(SETS[0])
    X, X_others = (np.column_stack([Z[p], np.ones(p.size)]) for p in (rows, others))
    # ridge under its prior: the covariance of the weights is the inverse, in units of the noise
    inverse = np.linalg.inv(X_others.T @ X_others + np.diag([ALPHA] * D + [0.0]))
    expected = 1 + np.einsum("ij,jk,ik->i", X, inverse, X)
    np.testing.assert_allclose(machine.variances([rows])[rows], expected)
    one = machine.variances([np.array([3])])[3]
    np.testing.assert_allclose(machine.variances()[3], one)


def test_a_row_that_alone_determines_its_output_is_finite():
    alone = np.column_stack([Z, np.eye(N)[:, 0] * 1e9])
    assert np.isfinite(FeatureDowndates.of(alone, Y, 1e-9).left_out()).all()


def test_the_best_strength_is_that_of_the_least_left_out_error():
    truth = Z[:, :1] * 3 + 0.01 * RNG.normal(size=(N, 1))
    scale = float(np.square(Z).sum(axis=1).mean())
    strong = at_best_strength(lambda alpha: FeatureDowndates.of(Z, truth, alpha), scale)
    noise = at_best_strength(lambda alpha: FeatureDowndates.of(Z, RNG.normal(size=(N, 1)), alpha), scale)
    assert strong.alpha < 0.01 * scale < noise.alpha


def test_a_matrix_that_stays_singular_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        at_best_strength(lambda alpha: MatrixDowndates.of(-1e9 * np.eye(N), Y, alpha), 1.0)
