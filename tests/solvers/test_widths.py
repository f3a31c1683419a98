"""Training and held-out error as functions of the features: values by definition, slopes by differences."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.moments import FoldMoments
from chimap.solvers.widths import held_out, training

from ..features.fourier.test_widths import difference

FOLDS = np.arange(30) % 3
LAM = 0.7


def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 6)) + 2, rng.standard_normal((30, 2)) - 1


def moments(Z, Y, folds):
    n_folds = int(folds.max()) + 1
    found = FoldMoments(n_folds, Z.shape[1], Y.shape[1], Z.mean(0) + 0.1, Y.mean(0) - 0.1, np.dtype(float))
    for k in range(n_folds):
        part = folds == k
        found.add_shifted(k, np.ascontiguousarray(Z[part] - found.shift), Y[part] - found.target_shift)
    return found, found.whole()


def ridge_weights(Z, Y, alpha):
    C = Z - Z.mean(0)
    W = np.linalg.solve(C.T @ C + alpha * np.eye(Z.shape[1]), C.T @ (Y - Y.mean(0)))
    return W, Y.mean(0) - Z.mean(0) @ W


def by_definition(Z, Y, alpha):
    error = 0.0
    for k in range(3):
        W, b = ridge_weights(Z[k != FOLDS], Y[k != FOLDS], alpha)
        error += np.square(Z[k == FOLDS] @ W + b - Y[k == FOLDS]).sum()
    return error / np.square(Y - Y.mean(0)).sum()


def training_by_definition(Z, Y, alpha):
    W, b = ridge_weights(Z, Y, alpha)
    return (np.square(Z @ W + b - Y).sum() + alpha * np.square(W).sum()) / np.square(Y - Y.mean(0)).sum()


@pytest.mark.parametrize("objective", ["held-out", "training"])
def test_values_and_slopes(objective):
    Z, Y = rows()
    definition = by_definition if objective == "held-out" else training_by_definition
    folds, whole = moments(Z, Y, FOLDS)
    found = held_out(folds, whole, LAM) if objective == "held-out" else training(whole, LAM)
    assert found.value == pytest.approx(definition(Z, Y, LAM), rel=1e-12)
    slope = difference(lambda log: definition(Z, Y, float(np.exp(log[0]))), np.array([np.log(LAM)]))
    assert found.alpha_slope == pytest.approx(slope[0], rel=1e-6)
    exact = difference(lambda z: definition(z.reshape(Z.shape), Y, LAM), Z.reshape(-1))
    np.testing.assert_allclose(found.slopes.of(Z, Y, FOLDS).reshape(-1), exact, rtol=1e-6, atol=1e-9)


def test_folds_without_rows_are_named():
    Z, Y = rows()
    folds, whole = moments(Z, Y, np.where(FOLDS == 1, 2, FOLDS))
    with pytest.raises(DataError, match=r"fold 1 of 3 holds 0 of 30 rows: too few to hold out. Use fewer folds"):
        held_out(folds, whole, LAM)
    folds, whole = moments(Z, Y, np.zeros(30, int))
    with pytest.raises(DataError, match=r"fold 0 of 1 holds 30 of 30 rows"):
        held_out(folds, whole, LAM)
