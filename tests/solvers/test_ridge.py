from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from chimap._validation import DataError
from chimap.solvers import ridge

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
