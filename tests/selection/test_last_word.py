"""The score of rows that are left out, in closed form, between gcv's strength and two decades below."""

import numpy as np
import pytest

from chimap.moments import FoldMoments
from chimap.selection.gcv import choose_by_gcv
from chimap.selection.gcv_score import GcvScorer
from chimap.selection.scoring import HeldOutScore
from chimap.selection.tried import TriedRows
from chimap.solvers.ridge import ridge


def moments_of(Z, Y, shift):
    made = FoldMoments(1, Z.shape[1], Y.shape[1], shift, np.zeros(Y.shape[1]), np.dtype(float))
    made.add_shifted(0, np.ascontiguousarray(Z - shift), Y)
    return made.whole()


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((60, 12)) @ rng.standard_normal((12, 12)) + 5
    value = Z @ rng.standard_normal(12) + 4 * rng.standard_normal(60)
    classes = (value > np.median(value)).astype(int)
    shift = Z[:7].mean(axis=0)
    Y = np.where(classes == 1, 1.0, -1.0)[:, None]
    tried = TriedRows(Z - shift, Y, np.zeros(1), HeldOutScore(classes, np.array([0, 1]), "neg_log_loss"))
    return Z, Y, shift, tried


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_a_row_left_out_is_predicted_as_by_a_fit_without_it(data, alpha):
    Z, Y, shift, tried = data
    outputs = GcvScorer(moments_of(Z, Y, shift), 0, None).left_out(tried, alpha)
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        fitted = ridge(moments_of(Z[rest], Y[rest], shift), alpha)
        np.testing.assert_allclose(outputs[i], Z[i] @ fitted.coef + fitted.intercept, rtol=1e-7)


def test_the_best_score_below_the_least_error_is_taken(data):
    Z, Y, shift, tried = data
    whole = moments_of(Z, Y, shift)
    plain, _ = choose_by_gcv(whole)
    found, result = choose_by_gcv(whole, tried=tried)
    scores = result.settings["neg_log_loss"]
    assert plain.alpha / 101 < found.alpha <= plain.alpha
    assert result.best["alpha"] == found.alpha
    assert scores[result.chosen] == np.nanmax(scores)
    assert np.isfinite(scores).sum() >= 3
    again = ridge(whole, found.alpha)
    np.testing.assert_allclose(found.coef, again.coef, rtol=1e-7)
