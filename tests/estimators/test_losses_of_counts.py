"""Poisson and quantile regression: against scikit-learn, by their definitions, and what they refuse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor, QuantileRegressor
from sklearn.metrics import d2_pinball_score, d2_tweedie_score

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap._validation import DataError
from chimap.losses import Observed, Poisson, Quantile
from chimap.solvers.lbfgs import lbfgs, over, zero_solution

RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(8), 400)
COUNTS = RNG.poisson(np.exp(1 + 2 * np.sqrt(X[:, 0]) - 3 * X[:, 1])).astype(float)
REAL = np.sqrt(X[:, 0]) + (0.05 + X[:, 2]) * RNG.normal(size=400)  # the spread grows with a bin
LEVELS = (0.1, 0.5, 0.9)


def regressor(loss, **settings):
    return HistogramRegressor("chi2", loss=loss, **({"random_state": 0} | settings))


# --- against others


@pytest.mark.parametrize("weighted", [False, True])
def test_poisson_regression_is_that_of_scikit_learn(weighted):
    weights = RNG.integers(1, 4, 400).astype(float) if weighted else None
    model = regressor("poisson", alpha=2.0, precision="float64").fit(X, COUNTS, sample_weight=weights)
    Z = model.features_.transform(X)
    total = 400 if weights is None else weights.sum()
    other = PoissonRegressor(alpha=2.0 / total, tol=1e-12, max_iter=1000, solver="newton-cholesky").fit(
        Z, COUNTS, sample_weight=weights
    )
    np.testing.assert_allclose(model.predict(X), other.predict(Z), rtol=1e-3)
    exact = lbfgs(
        Poisson(float(COUNTS.mean())),
        over(lambda: [(Z, COUNTS[:, None]) if weights is None else (Z, COUNTS[:, None], weights)]),
        2.0,
        zero_solution(Z.shape[1], 1),
        tolerance=1e-9,
        max_passes=2000,
    )
    np.testing.assert_allclose(exact.coef[:, 0], other.coef_, atol=1e-6 * np.abs(other.coef_).max())
    assert exact.intercept[0] == pytest.approx(other.intercept_, abs=1e-6)
    assert model.score(X, COUNTS, weights) == pytest.approx(other.score(Z, COUNTS, weights), abs=1e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_quantile_regression_is_that_of_scikit_learn(level):
    Z = np.sqrt(X[:, :3])
    other = QuantileRegressor(quantile=level, alpha=0.0).fit(Z, REAL)
    found = lbfgs(
        Quantile(level, width=2e-4),
        over(lambda: [(Z, REAL[:, None])]),
        1e-9,
        zero_solution(3, 1),
        tolerance=1e-5,
        max_passes=5000,
    )
    outputs = Z @ found.coef[:, 0] + found.intercept[0]
    np.testing.assert_allclose(outputs, other.predict(Z), atol=5e-3)
    mine, theirs = (Quantile(level).deviance(REAL[:, None], p[:, None]).mean() for p in (outputs, other.predict(Z)))
    assert mine == pytest.approx(theirs, rel=1e-4)


def test_scores_are_those_of_scikit_learn():
    model = regressor("poisson").fit(X, COUNTS)
    assert model.score(X, COUNTS) == pytest.approx(d2_tweedie_score(COUNTS, model.predict(X), power=1))
    for level in LEVELS:
        model = regressor("quantile", quantile=level).fit(X, REAL)
        assert model.score(X, REAL) == pytest.approx(d2_pinball_score(REAL, model.predict(X), alpha=level), abs=1e-9)


# --- by definition


def test_quantiles_have_their_share_of_the_rows_below_them():
    model = regressor("quantile", quantile=LEVELS, alpha=0.1).fit(X, REAL)
    predicted = model.predict(X)
    assert predicted.shape == (400, 3)
    np.testing.assert_allclose((REAL[:, None] <= predicted).mean(axis=0), LEVELS, atol=0.02)
    assert (np.diff(predicted, axis=1) >= 0).all()
    alone = [regressor("quantile", quantile=level, alpha=0.1).fit(X, REAL).predict(X) for level in LEVELS]
    np.testing.assert_allclose(predicted, np.column_stack(alone), atol=0.03)


@pytest.mark.parametrize("features", ["exact", "additive"])
def test_quantiles_are_moved_by_rows_that_were_held_out(features, monkeypatch):
    rng, levels = np.random.default_rng(0), np.array([0.05, 0.5, 0.95])
    rows = rng.dirichlet(np.ones(40), 600)
    y = 5 * rows[:, 0] + rng.normal(size=600)
    settings = {"quantile": levels, "features": features, "alpha": 0.1, "precision": "float64"}
    model = regressor("quantile", **settings).fit(rows[:300], y[:300])
    if features == "exact":
        np.testing.assert_allclose((y[:300, None] <= model.held_out_).mean(axis=0), levels, atol=1 / 300)
    monkeypatch.setattr(Quantile, "offsets", lambda *_: None)
    plain = regressor("quantile", **settings).fit(rows[:300], y[:300])
    off, off_plain = (
        np.abs((y[300:, None] <= one.predict(rows[300:])).mean(axis=0) - levels)[[0, 2]] for one in (model, plain)
    )
    assert (off < off_plain).all()
    assert model.score(rows[300:], y[300:]) > plain.score(rows[300:], y[300:])


def test_the_offset_of_a_quantile_is_that_quantile_of_the_residuals():
    y, scores = np.arange(9.0)[:, None], np.zeros((9, 2))
    loss = Quantile((0.1, 0.5))
    np.testing.assert_allclose(loss.offsets(y, scores, np.ones(9)), [0.0, 4.0])
    twice = np.array([1.0, 0.0] + [1.0] * 7)  # a row of weight 0 does not count
    np.testing.assert_allclose(loss.offsets(y, scores, twice)[1], np.median(np.delete(y, 1)))
    gap = np.where(y == 8, np.nan, y)
    np.testing.assert_array_equal(
        Observed(loss).offsets(gap, scores, np.ones(9)), loss.offsets(gap, scores, np.ones(9))
    )
    assert Poisson().offsets(y, scores[:, :1], np.ones(9)) is None


def test_quantiles_that_cross_are_sorted():
    loss = Quantile(LEVELS)
    np.testing.assert_array_equal(loss.predicted(np.array([[3.0, 1.0, 2.0]])), [[1.0, 2.0, 3.0]])


def test_intervals_of_quantiles_are_wide_where_the_spread_is():
    model = regressor("quantile", quantile=[0.05, 0.95]).fit(X[:300], REAL[:300])
    low, high = model.predict_set(X[300:], alpha=0.1).T
    assert 0.82 <= np.mean((low <= REAL[300:]) & (REAL[300:] <= high)) <= 0.98
    assert np.corrcoef(high - low, X[300:, 2])[0, 1] > 0.8


def test_intervals_of_quantiles_hold_where_the_model_meets_its_rows():
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.full(30, 0.3), 600)
    y = rows[:, 0] + 0.3 * rng.normal(size=600)
    settings = {"features": "landmarks", "n_components": 200, "alpha": (1e-8, 1e-7), "random_state": 0}
    model = HistogramRegressor("exp-chi2", loss="quantile", quantile=[0.05, 0.95], **settings).fit(rows[:200], y[:200])
    low, high = model.predict_set(rows[200:], alpha=0.1).T
    assert 0.84 <= np.mean((low <= y[200:]) & (y[200:] <= high)) <= 0.96


def test_intervals_of_counts_begin_at_zero_and_grow_with_the_mean():
    model = regressor("poisson").fit(X[:300], COUNTS[:300])
    low, high = model.predict_set(X[300:], alpha=0.1).T
    assert (low >= 0).all()
    assert 0.82 <= np.mean((low <= COUNTS[300:]) & (COUNTS[300:] <= high)) <= 0.98
    assert np.corrcoef(high - low, model.predict(X[300:]))[0, 1] > 0.9


def test_several_targets_of_counts_have_gaps_and_are_each_by_itself():
    Y = np.column_stack([COUNTS, RNG.permutation(COUNTS)])
    model = regressor("poisson", alpha=1.0).fit(X, Y)
    np.testing.assert_allclose(
        model.predict(X)[:, 0], regressor("poisson", alpha=1.0).fit(X, COUNTS).predict(X), rtol=0.01
    )
    Y[::3, 0] = np.nan
    with_gaps = regressor("poisson", alpha=1.0).fit(X, Y)
    seen = ~np.isnan(Y[:, 0])
    alone = regressor("poisson", alpha=1.0).fit(X[seen], COUNTS[seen])
    np.testing.assert_allclose(with_gaps.predict(X)[:, 0], alone.predict(X), rtol=0.02)
    assert 0.2 < with_gaps.score(X[:, :], Y) < 1


def test_rates_with_exposures_as_weights_are_counts():
    exposure = RNG.uniform(0.5, 3, 400)
    counts = RNG.poisson(exposure * np.exp(1 + X[:, 0])).astype(float)
    model = regressor("poisson", alpha=1.0).fit(X, counts / exposure, sample_weight=exposure)
    assert (exposure * model.predict(X)).sum() == pytest.approx(counts.sum(), rel=1e-3)  # not whole numbers


# --- what chooses


@pytest.mark.parametrize(("loss", "y"), [("poisson", COUNTS), ("quantile", REAL)])
def test_the_strength_of_least_deviance_is_chosen(loss, y):
    model = regressor(loss, alpha=[1e-4, 3.0, 1e6]).fit(X, y)
    assert model.alpha_ == 3.0
    assert model.selection_.measure == "loss"
    groups = np.arange(400) // 4
    assert regressor(loss).fit(X, y, groups=groups).score(X, y) > 0.1


@pytest.mark.parametrize(
    ("loss", "y", "measure"), [("poisson", COUNTS, "d2_poisson"), ("quantile", REAL, "d2_pinball")]
)
def test_a_race_compares_by_the_deviance(loss, y, measure):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HistogramRegressor(loss=loss, random_state=0).fit(X[:120], y[:120])
    assert model.race_.measure == measure
    assert model.loss_.name == loss
    of_rows = [trial for trial in model.race_.trials if not trial.error]
    assert {trial.candidate.settings["loss"] for trial in of_rows} == {loss}
    assert {trial.candidate.settings["features"] for trial in of_rows} == {"exact"}
    assert {trial.n_rows for trial in of_rows} == {120}  # all rows, each left out in turn
    assert of_rows[0].score > 0


EXACT = {"features": "exact", "gamma": 1.0}


def exact(loss, **settings):
    return HistogramRegressor("exp-chi2", loss=loss, **(EXACT | {"random_state": 0} | settings))


@pytest.mark.parametrize(
    ("settings", "y", "measure"),
    [
        ({"loss": "poisson"}, COUNTS, "d2_poisson"),
        ({"loss": "quantile", "quantile": 0.9}, REAL, "d2_pinball"),
        ({"loss": "quantile", "quantile": LEVELS}, REAL, "d2_pinball"),
    ],
    ids=["poisson", "quantile", "quantiles"],
)
@pytest.mark.parametrize("grouped", [False, True])
def test_exact_machines_choose_by_the_deviance_of_rows_left_out(settings, y, measure, grouped):
    groups = np.arange(150) // 3 if grouped else None
    model = exact(**settings).fit(X[:150], y[:150], groups=groups)
    found = model.selection_
    assert (found.rule, found.measure) == ("leave-group-out" if grouped else "leave-one-out", measure)
    assert found.scores[found.chosen, 0] == found.scores.max()
    refits = []
    out = np.arange(6) if grouped else np.array([0, 1])
    for group in (out[:3], out[3:]) if grouped else out[:, None]:
        rest = np.delete(np.arange(150), group)
        refit = exact(**settings, alpha=model.alpha_).fit(X[rest], y[rest])
        refits.append(refit._outputs(X[group]))
    np.testing.assert_allclose(model.held_out_[out], np.concatenate(refits), atol=0.15 * np.std(y))


def test_exact_machines_and_landmarks_predict_alike():
    one, other = (
        exact("poisson", alpha=1.0, **settings).fit(X[:150], COUNTS[:150]).predict(X[150:])
        for settings in ({}, {"features": "landmarks", "n_components": 120})
    )
    assert np.corrcoef(np.log(one), np.log(other))[0, 1] > 0.97
    assert exact("poisson").fit(X[:150], COUNTS[:150]).score(X[150:], COUNTS[150:]) > 0.2


# --- files


@pytest.mark.parametrize(
    ("settings", "y"),
    [
        ({"loss": "poisson"}, COUNTS),
        ({"loss": "quantile", "quantile": LEVELS}, REAL),
        ({"loss": Quantile(0.9, 0.01)}, REAL),
    ],
    ids=["poisson", "quantiles", "object"],
)
def test_a_saved_model_answers_the_same(settings, y, tmp_path):
    model = regressor(**settings).fit(X, y)
    model.save(tmp_path / "of.model")
    loaded = chimap.load(tmp_path / "of.model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_set(X), model.predict_set(X))
    assert loaded.score(X, y) == model.score(X, y)
    compiled = model.compile()
    np.testing.assert_allclose(compiled.predict(X[:20]), model.predict(X[:20]), rtol=1e-2, atol=1e-2)


# --- what is refused


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        (
            {"loss": "poisson"},
            np.where(np.arange(400) == 7, -2.0, COUNTS),
            "y, row 7: -2 is negative, and loss='poisson'",
        ),
        ({"loss": "poisson"}, np.zeros(400), "every target is 0"),
        ({"loss": "quantile", "quantile": 1.0}, REAL, "quantile must be a number between 0 and 1"),
        ({"loss": "quantile", "quantile": [0.9, 0.1]}, REAL, "several that ascend"),
        (
            {"loss": "quantile", "quantile": [0.1, 0.9]},
            np.column_stack([REAL, REAL]),
            "y has 2 targets, and several quant",
        ),
        ({"loss": "square", "quantile": 0.9}, REAL, "quantile=0.9 is for loss='quantile'; got loss='square'"),
        ({"loss": "poisson", "selection": "gcv"}, COUNTS, "selection='gcv' needs loss='square'; got loss='poisson'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_refused(settings, y, message):
    with pytest.raises(ValueError, match=message):
        regressor(**settings).fit(X, y)


def test_a_classifier_refuses_losses_of_counts():
    with pytest.raises(ValueError, match="loss must be one of 'square'"):
        HistogramClassifier("chi2", loss="poisson").fit(X, COUNTS > 3)
    with pytest.raises(ValueError, match="HistogramClassifier takes the losses"):
        HistogramClassifier("chi2", loss=Poisson()).fit(X, COUNTS > 3)
    with pytest.raises(DataError, match="a regression needs numbers as targets"):
        regressor("poisson").fit(X, np.where(COUNTS > 3, "many", "few"))
