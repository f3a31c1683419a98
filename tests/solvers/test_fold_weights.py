"""Weights of folds by iterations: errors of refits, and how many iterations they take."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.moments import fold_of_rows
from chimap.solvers.fold import Fold, FoldWeights
from chimap.solvers.ridge import Factor

from ..moments.cases import rows
from ..selection.test_folds import by_hand, fold_moments

ALPHAS = (30.0, 10.0, 3.0, 100.0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_errors_at_one_strength_after_the_other(scale):
    Z, Y = rows(90, 30, 2)
    Y = scale * Y
    folds = fold_of_rows(0, 90, 5, seed=0)
    moments = fold_moments(Z, Y, folds, 5)
    whole = moments.whole()
    weights = FoldWeights([Fold(fold, whole) for fold in moments.folds], whole, Factor(30))
    expected = by_hand(Z, Y, folds, ALPHAS)
    for alpha, errors in zip(ALPHAS, expected, strict=True):
        found, iterations = weights.errors(alpha)
        np.testing.assert_allclose(found, errors, rtol=1e-4)
        assert 0 < iterations < 25
    again, iterations = weights.errors(ALPHAS[-1])
    np.testing.assert_allclose(again, errors, rtol=1e-4)
    assert iterations == 0  # nothing is left to do
