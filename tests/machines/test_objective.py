"""From moments to weights: the coordinates of few rows give what all features give."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap.engines import Progress, Stopwatch
from chimap.machines.objective import PenalisedLoss
from chimap.moments import FoldMoments, fold_of_rows
from chimap.selection.base import OpenSettings
from chimap.solvers import from_moments
from chimap.solvers.base import Evidence


def moments_of(n_rows, n_features, n_folds):
    rng = np.random.default_rng(0)
    Z, Y = rng.standard_normal((n_rows, n_features)) + 3, rng.standard_normal((n_rows, 2))
    shift = Z[:5].mean(axis=0)
    made = FoldMoments(n_folds, n_features, 2, shift, np.zeros(2), np.dtype(float))
    folds = fold_of_rows(0, n_rows, n_folds, 0)
    for k in range(n_folds):
        made.add_shifted(k, np.ascontiguousarray(Z[folds == k] - shift), Y[folds == k])
    return made


def learned_from(moments, alpha):
    return PenalisedLoss("square", OpenSettings(alpha)).learn(Evidence(moments), None, Stopwatch(), Progress())


@pytest.fixture
def sizes(monkeypatch):
    """The sizes of the matrices that are factorised."""
    found, factor = [], from_moments.Factor
    monkeypatch.setattr(from_moments, "Factor", lambda n, device: found.append(n) or factor(n, device))
    return found


@pytest.mark.parametrize("alpha", [None, 2.0, (0.1, 1.0, 10.0)], ids=["search", "given", "several"])
@pytest.mark.parametrize("n_folds", [1, 4])
def test_few_rows_are_solved_in_their_span(alpha, n_folds, monkeypatch, sizes):
    within = learned_from(moments_of(24, 200, n_folds), alpha)
    assert max(sizes) < 50
    monkeypatch.setattr(from_moments, "_FEATURES_PER_ROW", 1000)  # features per row: none are few then
    direct = learned_from(moments_of(24, 200, n_folds), alpha)
    assert sizes[-1] == 200
    assert direct.solution.alpha == pytest.approx(within.solution.alpha, rel=1e-3)
    if n_folds > 1 or alpha == 2.0:  # gcv draws probes, of other length here and there
        np.testing.assert_allclose(within.solution.coef, direct.solution.coef, atol=1e-8)
        np.testing.assert_allclose(within.solution.intercept, direct.solution.intercept, atol=1e-8)
    if n_folds > 1 and alpha != 2.0:
        np.testing.assert_allclose(within.selection.scores, direct.selection.scores, rtol=1e-6)


@pytest.mark.parametrize(("n_rows", "n_folds", "rule"), [(24, 4, "folds"), (24, 1, "gcv"), (3, 1, "gcv"), (2, 1, None)])
def test_the_rule_is_the_first_that_serves(n_rows, n_folds, rule):
    learned = learned_from(moments_of(n_rows, 6, n_folds), None)
    assert getattr(learned.selection, "rule", None) == rule
    assert np.isfinite(learned.solution.coef).all()


def test_many_features_of_few_rows_make_no_large_matrix(sizes):
    rng = np.random.default_rng(0)
    X, y = rng.dirichlet(np.ones(3), 30), rng.integers(0, 2, 30)
    HistogramClassifier("exp-chi2", features="fourier", n_components=1024, selection=5, random_state=0).fit(X, y)
    assert max(sizes) < 50
