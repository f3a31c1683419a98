"""L-BFGS over chunks against ridge, scikit-learn and the optimality condition."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from chimap._validation import DataError
from chimap.losses import CATALOGUE, EpsilonInsensitive, Logistic, Square, SquaredHinge
from chimap.moments import Moments
from chimap.penalties import L2
from chimap.solvers.lbfgs import _WhitenedObjective, lbfgs, over, zero_solution
from chimap.solvers.ridge import Factor, LinearSolution, ridge

N, D, T = 500, 12, 3
STRENGTH = 3.0


def data(dtype=np.float64, seed=0, loss=None):
    """Features of unequal scale about zero, and targets of +-1, or 0 and 1 as counts, that they half explain."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((N, D)) * np.geomspace(1, 0.03, D)
    Z -= Z.mean(axis=0)
    Y = np.sign(Z @ rng.standard_normal((D, T)) * 3 + rng.standard_normal((N, T)) + 0.4)
    return Z.astype(dtype), np.maximum(Y, 0) if loss is not None and loss.domain == "count" else Y


def in_chunks(Z, Y, rows=128):
    """The rows in chunks, counting the passes in the list that comes with them."""
    passes = []

    def chunks():
        passes.append(len(Z))
        for start in range(0, len(Z), rows):
            yield Z[start : start + rows], Y[start : start + rows]

    return over(chunks), passes


def factor_for(Z, Y, loss, alpha=STRENGTH):
    factor = Factor(Z.shape[1])
    factor.of(Moments(Z.shape[1], Y.shape[1]).update(Z, Y), alpha / loss.usual_curvature)
    return factor


every_loss = pytest.mark.parametrize("loss", [cls() for cls in CATALOGUE.values()], ids=CATALOGUE)


@pytest.mark.parametrize("whitened", [False, True])
def test_square_loss_is_ridge_at_the_same_alpha(whitened):
    Z, Y = data()
    expected = ridge(Moments(D, T).update(Z, Y), STRENGTH)
    whitening = factor_for(Z, Y, Square()) if whitened else None
    found = lbfgs(Square(), in_chunks(Z, Y)[0], STRENGTH, zero_solution(D, T), whitening=whitening, tolerance=1e-7)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-5, atol=1e-6)
    if whitened:  # one Newton step, one evaluation that confirms it
        assert found.passes <= 4


@every_loss
@pytest.mark.parametrize("whitened", [False, True])
def test_gradient_vanishes_at_the_solution(loss, whitened):
    Z, Y = data(loss=loss)
    whitening = factor_for(Z, Y, loss) if whitened else None
    chunks, passes = in_chunks(Z, Y)
    found = lbfgs(loss, chunks, STRENGTH, zero_solution(D, T), whitening=whitening, tolerance=1e-8)
    slopes = loss.gradient(Y, Z @ found.coef + found.intercept)
    scale = np.abs(Z.T @ loss.gradient(Y, np.zeros_like(Y))).max()
    assert np.abs(Z.T @ slopes + STRENGTH * found.coef).max() < 1e-7 * scale
    assert np.abs(slopes.sum(axis=0)).max() < 1e-6 * N
    assert found.converged
    assert found.gradient_norm <= 1e-8
    assert found.passes == len(passes)
    value = loss.value(Y, Z @ found.coef + found.intercept).sum() + STRENGTH / 2 * np.square(found.coef).sum()
    assert found.objective == pytest.approx(value, rel=1e-12)


@every_loss
def test_whitening_and_chunks_change_nothing_but_the_passes(loss):
    Z, Y = data(loss=loss)
    plain = lbfgs(loss, in_chunks(Z, Y)[0], STRENGTH, zero_solution(D, T), tolerance=2e-8)
    whitened = lbfgs(
        loss, in_chunks(Z, Y, 77)[0], STRENGTH, zero_solution(D, T), whitening=factor_for(Z, Y, loss), tolerance=2e-8
    )
    np.testing.assert_allclose(whitened.coef, plain.coef, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(whitened.intercept, plain.intercept, rtol=1e-4, atol=1e-6)


def test_logistic_is_that_of_scikit_learn():
    Z, Y = data()
    found = lbfgs(Logistic(), in_chunks(Z, Y)[0], STRENGTH, zero_solution(D, T), tolerance=2e-8)
    for t in range(T):
        peer = LogisticRegression(C=1 / STRENGTH, tol=1e-10, max_iter=1000).fit(Z, Y[:, t])
        np.testing.assert_allclose(found.coef[:, t], peer.coef_[0], rtol=1e-4, atol=1e-6)
        assert found.intercept[t] == pytest.approx(peer.intercept_[0], rel=1e-4)


def test_warm_start_at_the_solution_takes_one_pass():
    Z, Y = data()
    chunks, _ = in_chunks(Z, Y)
    first = lbfgs(SquaredHinge(), chunks, STRENGTH, zero_solution(D, T), tolerance=1e-7)
    again = lbfgs(SquaredHinge(), chunks, STRENGTH, first, tolerance=1e-6)
    assert again.passes == 1
    np.testing.assert_array_equal(again.coef, first.coef)


@every_loss
def test_float32_features_do_as_well(loss):
    Z, Y = data(loss=loss)
    exact = lbfgs(loss, in_chunks(Z, Y)[0], STRENGTH, zero_solution(D, T), tolerance=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = lbfgs(loss, in_chunks(*data(np.float32, loss=loss))[0], STRENGTH, zero_solution(D, T), tolerance=1e-4)
    assert single.coef.dtype == np.float64
    np.testing.assert_allclose(single.coef, exact.coef, atol=1e-2 * np.abs(exact.coef).max())


def test_separable_rows_stay_finite():
    Z = np.vstack([np.full((50, 2), 300.0), np.full((50, 2), -300.0)])
    Y = np.repeat([[1.0], [-1.0]], 50, axis=0)
    with np.errstate(over="raise", invalid="raise"):
        found = lbfgs(Logistic(), in_chunks(Z, Y)[0], 1e-6, zero_solution(2, 1))
    assert np.all(np.isfinite(found.coef))
    assert np.all(np.sign(Z @ found.coef + found.intercept) == Y)


def test_too_few_passes_warn():
    Z, Y = data()
    with pytest.warns(ConvergenceWarning, match=r"L-BFGS stopped after \d+ passes .* Allow more passes") as told:
        found = lbfgs(Logistic(), in_chunks(Z, Y)[0], 1e-3, zero_solution(D, T), tolerance=1e-9, max_passes=3)
    assert told[0].filename == __file__  # the line that called it is named
    assert not found.converged
    assert found.passes <= 3 + 20  # a line search under way is finished


def test_constant_targets_at_zero_weights_are_a_solution():
    Z, _ = data()
    found = lbfgs(EpsilonInsensitive(), in_chunks(Z, np.zeros((N, 1)))[0], 1.0, zero_solution(D, 1))
    assert found.passes == 1
    np.testing.assert_array_equal(found.coef, 0)


def test_bad_input_is_named():
    Z, Y = data()
    with pytest.raises(DataError, match=r"target 0 is .* the logistic loss takes -1 or 1"):
        lbfgs(Logistic(), in_chunks(Z, Y * 0.5)[0], 1.0, zero_solution(D, T))
    with pytest.raises(DataError, match="no rows"):
        lbfgs(Logistic(), in_chunks(Z[:0], Y[:0])[0], 1.0, zero_solution(D, T))
    for name, value in (("alpha", 0.0), ("tolerance", -1.0), ("max_passes", 1.5)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            lbfgs(
                **{
                    "loss": Logistic(),
                    "rows": in_chunks(Z, Y)[0],
                    "alpha": 1.0,
                    "start": zero_solution(D, T),
                    name: value,
                }
            )


def test_zero_solution_has_no_strength():
    assert zero_solution(3, 2).alpha == 0


@every_loss
@pytest.mark.parametrize("whitened", [False, True])
def test_the_gradient_of_the_search_is_that_of_its_objective(loss, whitened):
    """By differences, in the coordinates of the search: at the start, which is remembered, and beside it."""
    Z, Y = data(loss=loss)
    rng = np.random.default_rng(0)
    start = LinearSolution(0.1 * rng.standard_normal((D, T)), 0.1 * rng.standard_normal(T), 0.0)
    factor = factor_for(Z, Y, loss) if whitened else None
    objective = _WhitenedObjective(loss, in_chunks(Z, Y)[0], L2(STRENGTH), factor)
    x = objective.begin(start)
    for point in (x, x + 1e-3 * rng.standard_normal(x.size) * np.linalg.norm(x)):
        direction = rng.standard_normal(x.size)
        step = 1e-5 * np.linalg.norm(x) / np.linalg.norm(direction) * direction
        gradient = objective(point)[1].copy()
        up, down = objective(point + step)[0], objective(point - step)[0]
        assert gradient @ step == pytest.approx((up - down) / 2, rel=2e-3)


def test_a_class_of_few_rows_is_learned():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(20_000, 4)), np.full((20_000, 1), -1.0)
    y[np.argsort(Z[:, 1] - Z[:, 0])[:5]] = 1
    Z -= Z.mean(axis=0)
    usual, exact = (
        lbfgs(SquaredHinge(), over(lambda: [(Z, y)]), 1.0, zero_solution(4, 1), tolerance=t) for t in (1e-4, 1e-8)
    )
    assert np.abs(usual.coef - exact.coef).max() < 0.01 * np.abs(exact.coef).max()
