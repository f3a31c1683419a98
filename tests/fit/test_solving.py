"""From moments to weights: the coordinates of few rows give what all features give."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap.engines import Progress, Stopwatch
from chimap.fit import solving
from chimap.moments import FoldMoments, fold_of_rows


def moments_of(n_rows, n_features, n_folds):
    rng = np.random.default_rng(0)
    Z, Y = rng.standard_normal((n_rows, n_features)) + 3, rng.standard_normal((n_rows, 2))
    shift = Z[:5].mean(axis=0)
    made = FoldMoments(n_folds, n_features, 2, shift, np.zeros(2), np.dtype(float))
    folds = fold_of_rows(0, n_rows, n_folds, 0)
    for k in range(n_folds):
        made.add_shifted(k, np.ascontiguousarray(Z[folds == k] - shift), Y[folds == k])
    return made


@pytest.mark.parametrize("alpha", ["auto", 2.0, (0.1, 1.0, 10.0)])
@pytest.mark.parametrize("n_folds", [1, 4])
def test_few_rows_are_solved_in_their_span(alpha, n_folds, monkeypatch):
    if n_folds == 1 and alpha != 2.0:
        return
    found = solving.by_moments(moments_of(24, 200, n_folds), alpha, "cpu", Stopwatch(), Progress())
    monkeypatch.setattr(solving, "_FEW", 1000)  # features a row: none are few then
    factors = []
    plain = solving.Factor
    monkeypatch.setattr(solving, "Factor", lambda n: factors.append(n) or plain(n))
    solving.by_moments(moments_of(24, 200, n_folds), alpha, "cpu", Stopwatch(), Progress())
    assert factors == [200]
    direct = solving.by_moments(moments_of(24, 200, n_folds), alpha, "cpu", Stopwatch(), Progress())
    assert direct.solution.alpha == pytest.approx(found.solution.alpha)
    np.testing.assert_allclose(found.solution.coef, direct.solution.coef, atol=1e-8)
    np.testing.assert_allclose(found.solution.intercept, direct.solution.intercept, atol=1e-8)
    if n_folds > 1:
        np.testing.assert_allclose(found.selection.scores, direct.selection.scores, rtol=1e-6)


def test_many_features_of_few_rows_make_no_large_matrix(monkeypatch):
    sizes = []
    plain = solving.Factor
    monkeypatch.setattr(solving, "Factor", lambda n: sizes.append(n) or plain(n))
    rng = np.random.default_rng(0)
    X, y = rng.dirichlet(np.ones(3), 30), rng.integers(0, 2, 30)
    HistogramClassifier(n_components=1024, random_state=0).fit(X, y)
    assert max(sizes) < 50
