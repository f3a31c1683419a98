from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from chimap._validation import DataError
from chimap.backends.host import HOST
from chimap.moments import FoldMoments
from chimap.solvers.fold import Fold
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.held_out import ValidationRows
from chimap.solvers.ridge import Factor, ridge

from ..moments.cases import moments_of, rows

STRENGTHS = (1e-3, 1.0, 100.0, 1e6)


@pytest.mark.parametrize("alpha", STRENGTHS)
@pytest.mark.parametrize("shape", [(200, 7, 2), (50, 300, 3), (400, 260, 1)])
@pytest.mark.parametrize("mean", [1.0, 1e3])
def test_is_that_of_scikit_learn(alpha, shape, mean):
    Z, Y = rows(*shape, mean=mean)
    expected = Ridge(alpha, solver="svd").fit(Z, Y)
    found = ridge(moments_of(Z, Y), alpha)
    assert found.coef.shape == shape[1:]
    scale = np.abs(expected.coef_).max()
    coef, predicted = expected.coef_.reshape(shape[2], -1).T, expected.predict(Z).reshape(Y.shape)
    np.testing.assert_allclose(found.coef, coef, rtol=1e-6, atol=1e-7 * scale)
    np.testing.assert_allclose(Z @ found.coef + found.intercept, predicted, atol=1e-6)
    assert found.alpha == alpha


def test_singular():
    Z, Y = rows(20, 40, 2)
    with pytest.raises(DataError, match="alpha=0 is too small: the features are linearly dependent"):
        ridge(moments_of(Z, Y), 0.0)
    Z = np.hstack([Z[:, :3], np.ones((20, 1))])
    with pytest.raises(DataError, match="alpha=0 is too small"):
        ridge(moments_of(Z, Y), 0.0)
    assert np.isfinite(ridge(moments_of(Z, Y), 1e-3).coef).all()


@pytest.mark.parametrize("n_rows", [1, 30])
def test_held_out_outputs_need_witnesses_and_two_rows(n_rows):
    Z, Y = rows(30, 4, 1)
    moments = moments_of(Z[:n_rows], Y[:n_rows], shift=Z[0], target_shift=Y[0])
    problem = RidgeProblem(FoldMoments.of([moments], np.dtype(float)))
    found = problem.solve(1.0)
    validation = ValidationRows(np.arange(n_rows), Z[:n_rows] - Z[0], Y[:n_rows] - Y[0], np.zeros(n_rows, int))
    assert problem.held_out(found, None) is None
    if n_rows == 1:
        assert problem.held_out(found, validation) is None
        return
    held = problem.held_out(found, validation)
    for i in (0, 7, 29):
        expected = Ridge(1.0, solver="svd").fit(np.delete(Z, i, 0), np.delete(Y, i, 0)).predict(Z[[i]])
        np.testing.assert_allclose(held.outputs[i], expected.reshape(-1), rtol=1e-7)


def test_a_factor_is_made_once_for_the_same_sums_and_strength(monkeypatch):
    Z, Y = rows(60, 5, 1)
    moments, factor, made = moments_of(Z[:50], Y[:50]), Factor(5), []
    inner = HOST.cholesky
    monkeypatch.setattr(type(HOST), "cholesky", lambda self, square: made.append(1) or inner(square))

    def ask(*asked, **left):
        factor.of(*asked, **left)
        return len(made), factor.solve(np.eye(5))

    assert [ask(moments, 1.0)[0], ask(moments, 1.0)[0], ask(moments, np.array(1.0))[0]] == [1, 1, 1]
    assert [ask(moments, 2.0)[0], ask(moments, np.full(5, 2.0))[0], ask(moments, 1.0)[0]] == [2, 3, 4]
    strengths = np.full(5, 1.0)
    assert ask(moments, strengths)[0] == 5
    strengths[0] = 9.0  # the same array, with other numbers
    assert ask(moments, strengths)[0] == 6
    fold = Fold(moments_of(Z[:10], Y[:10]), moments)
    assert [ask(moments, 1.0, less=fold.take_from)[0], ask(moments, 1.0)[0]] == [7, 8]
    moments.update(Z[50:], Y[50:])  # the same object, with more rows
    count, inverse = ask(moments, 1.0)
    assert count == 9
    np.testing.assert_allclose(inverse, np.linalg.inv(np.cov(Z.T, bias=True) * 60 + np.eye(5)), rtol=1e-8)
    assert ask(moments_of(Z, Y), 1.0)[0] == 10
    with pytest.raises(DataError):
        factor.of(moments, -1e9)
    assert ask(moments, 1.0)[0] == 12
