"""Sums over thinned copies of rows in closed form."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, HistogramRegressor
from chimap.data import ArraySource
from chimap.data.depth import WithThinnedCopies
from chimap.engines import Stopwatch
from chimap.estimators.thinned_sums import ThinnedCopies, has_closed_form
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows
from chimap.moments import FoldMoments, GivenFolds

RNG = np.random.default_rng(0)
Y = np.arange(40) % 2
SHARES = RNG.dirichlet(np.full(6, 0.7), size=2)[Y] * 0.75 + 0.25 * RNG.dirichlet(np.ones(6), size=40)
X = np.array([RNG.multinomial(400, shares) for shares in SHARES]).astype(float)
FEW, FOLDS = 4, np.array([0, 1, 1, 0])
WEIGHTS = np.array([1.0, 2.0, 0.5, 3.0])
N_COPIES, N_DRAWN = 3, 2000


def machine(**settings):
    return HistogramClassifier("chi2", normalize="l1", alpha=0.1, random_state=0, **settings).fit(X, Y)


def copies_of(rows, n_copies):
    source = ArraySource(rows, Y[:FEW])
    source.weights = WEIGHTS
    return WithThinnedCopies(source, n_copies, seed=5)


def closed_sums(model, rows):
    """Sums by fold over a few rows and their copies."""
    source = copies_of(rows, N_COPIES)
    method = Method.of(replace(model.recipe, learner=ThinnedCopies(N_COPIES))).resumed(0, model.normalization)
    folds = GivenFolds(np.repeat(FOLDS, N_COPIES + 1), 2)
    prepared = method.summed(PreparedRows(source, method.preparation(source), model.task.codec, folds, 0))
    n = model.features._n_features_out
    moments = FoldMoments(2, n, 1, np.zeros(n), np.zeros(1), np.dtype(np.float64))
    work = method.learning_pass(prepared, model.features, moments, Stopwatch())
    for chunk in prepared.source.chunks(4):
        work.add(chunk.X, chunk.y, chunk.start, "X")
    work.finish()
    return moments.folds


@cache
def fitted_and_drawn(is_weighted):
    """A machine, and features (rows, 1 + copies, D) of rows and copies that are drawn."""
    bin_weights = np.linspace(0.5, 2, 6) if is_weighted else None
    model = machine(bin_weights=bin_weights, precision="float64").fitted
    drawn = copies_of(X[:FEW], N_DRAWN).take(np.arange(FEW * (N_DRAWN + 1)))
    return model, model.features.mapped(model.preparation(drawn, 0, "X")).reshape(FEW, N_DRAWN + 1, -1)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("is_weighted", [False, True], ids=["equal", "weighted"])
def test_they_are_those_of_thousands_of_copies_within_their_error(kind, is_weighted):
    model, Z = fitted_and_drawn(is_weighted)
    targets = np.where(Y[:FEW] == 1, 1.0, -1.0)
    bins = np.tile(np.arange(6), 2)
    same = bins == bins[:, None]
    for fold, found in enumerate(closed_sums(model, kind(X[:FEW]))):
        rows = np.flatnonzero(fold == FOLDS)
        w = WEIGHTS[rows]
        assert found.n_rows == (1 + N_COPIES) * rows.size
        assert found.count == pytest.approx((1 + N_COPIES) * w.sum())
        for values, total in (
            (Z[rows], found.feature_sum),
            (Z[rows] * targets[rows, None, None], found.cross[:, 0]),
            (Z[rows, :, :, None] * Z[rows, :, None, :] * same, found.features.to_square() * same),
        ):
            w_of = w.reshape(-1, *[1] * (values.ndim - 2))
            expected = (w_of * (values[:, 0] + N_COPIES * values[:, 1:].mean(axis=1))).sum(axis=0)
            error = N_COPIES * np.sqrt(np.square(w_of * values[:, 1:].std(axis=1)).sum(axis=0) / N_DRAWN)
            assert (np.abs(total - expected) < 4.5 * error + 1e-3 * np.abs(expected).max()).all()
        among = (w[:, None, None] * np.einsum("rni,rnj->rij", Z[rows, 1:], Z[rows, 1:])).sum(axis=0) / N_DRAWN
        among += (w[:, None, None] * Z[rows, 0, :, None] * Z[rows, 0, None]).sum(axis=0) / N_COPIES
        np.testing.assert_allclose(found.features.to_square() / N_COPIES, among, atol=0.02 * np.abs(among).max())


def test_machines_that_have_them_learn_from_them_and_gain():
    model = machine(depth_robust=True)
    plain = machine()
    assert has_closed_form(plain.fitted)
    assert model.n_rows_ == 120
    assert model.fitted.recipe.learner is None
    assert model.fitted.recipe.settings == plain.fitted.recipe.settings | {"depth_robust": True}
    shallow = np.array([RNG.multinomial(12, shares) for shares in np.repeat(SHARES, 20, axis=0)])
    y = np.repeat(np.where(Y == 1, 1.0, -1.0), 20)
    errors = [np.mean((each.decision_function(shallow) - y) ** 2) for each in (plain, model)]
    assert errors[1] < 0.97 * errors[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"features": "exact"},
        {"kernel": "exp-chi2", "features": "fourier"},
        {"loss": "logistic"},
        {"normalize": "tf-idf"},
        {"blocks": {"a": [0, 1, 2], "b": [3, 4, 5]}},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_others_learn_from_copies_that_are_drawn(settings):
    given = {"kernel": "chi2", "normalize": "l1", "alpha": 0.1, "random_state": 0, **settings}
    assert not has_closed_form(HistogramClassifier(**given).fit(X, Y).fitted)


def test_numbers_have_them_too_and_several_tasks_do_not():
    shares = X[:, 0] / X.sum(axis=1)
    numbers = HistogramRegressor("chi2", normalize="l1", alpha=0.01)
    assert has_closed_form(numbers.fit(X, shares).fitted)
    tasks = np.column_stack([Y, shares > np.median(shares)]).astype(int)
    assert not has_closed_form(machine().fit(X, tasks).fitted)
