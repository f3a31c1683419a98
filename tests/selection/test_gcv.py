"""Generalised cross-validation by its definition, its search on half of the features, and its final choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV

from chimap._validation import DataError
from chimap.moments import FoldMoments, Moments
from chimap.selection import gcv
from chimap.selection.base import OpenSettings
from chimap.selection.folds import choose_alpha
from chimap.selection.gcv import (
    CoarseChoice,
    FinalChoice,
    GcvScore,
    GcvScorer,
    GeneralisedCrossValidation,
    alpha_ratio,
    choose_by_gcv,
    curvature_at,
    half_of,
)
from chimap.selection.scoring import HeldOutScore
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.held_out import ScoredRows, ValidationRows
from chimap.solvers.ridge import ridge

from ..moments.cases import moments_of


def rows(n: int, n_features: int, noise: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features whose scatters fall by e^6 from the first to the last, and targets that depend on all, with noise."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, n_features)) * np.exp(-np.arange(n_features) / n_features * 3) + 3
    Y = Z @ rng.standard_normal((n_features, 2)) / 5 + noise * rng.standard_normal((n, 2))
    return Z, Y


def directly(Z: np.ndarray, Y: np.ndarray, alpha: float) -> float:
    """GCV by its definition."""
    n, Zc, Yc = Z.shape[0], Z - Z.mean(axis=0), Y - Y.mean(axis=0)
    hat = Zc @ np.linalg.solve(Zc.T @ Zc + alpha * np.eye(Z.shape[1]), Zc.T) + 1 / n
    return float(np.square(Yc - (hat - 1 / n) @ Yc).sum() / n / (1 - np.trace(hat) / n) ** 2)


SHAPES = [(400, 30), (150, 300), (300, 280), (900, 530)]


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_are_those_of_the_definition(shape):
    Z, Y = rows(*shape)
    alphas = np.array([0.5, 20.0, 1000.0])
    found, result, _ = choose_by_gcv(moments_of(Z, Y), alphas)
    expected = [directly(Z, Y, alpha) for alpha in alphas]
    np.testing.assert_allclose(result.means, expected, rtol=0.05)  # what the noise of the probes allows
    assert result.best["alpha"] == alphas[np.argmin(expected)] == found.alpha
    reference = Ridge(found.alpha).fit(Z, Y)
    np.testing.assert_allclose(found.coef, reference.coef_.T, atol=1e-6 * np.abs(reference.coef_).max())
    np.testing.assert_allclose(found.intercept, reference.intercept_, rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("noise", [0.05, 1.0, 20.0])
def test_auto_comes_close_to_the_minimum(shape, noise):
    Z, Y = rows(*shape, noise=noise)
    _, result, _ = choose_by_gcv(moments_of(Z, Y))
    best = min(directly(Z, Y, alpha) for alpha in np.logspace(-3, 7, 31))
    assert directly(Z, Y, result.best["alpha"]) < 1.05 * best
    assert len(result.alphas) <= 7


def test_is_the_choice_of_scikit_learn():
    Z, Y = rows(200, 20)
    alphas = np.logspace(-2, 4, 13)
    expected = RidgeCV(alphas).fit(Z, Y[:, 0]).alpha_  # leave-one-out by each row's own leverage
    _, result, _ = choose_by_gcv(moments_of(Z, Y[:, :1]), alphas)
    assert abs(np.log10(result.best["alpha"] / expected)) <= 0.51


def test_is_the_choice_of_folds():
    Z, Y = rows(600, 40)
    folds = FoldMoments(5, 40, 2, Z.mean(axis=0), Y.mean(axis=0), np.dtype(np.float64))
    for k in range(5):
        folds.add_shifted(k, Z[k::5] - Z.mean(axis=0), Y[k::5] - Y.mean(axis=0))
    by_folds = choose_alpha(folds, folds.whole())
    _, result, _ = choose_by_gcv(folds.whole())
    assert abs(np.log10(result.best["alpha"] / by_folds.best["alpha"])) <= 0.75
    np.testing.assert_allclose(result.means[result.chosen], by_folds.means[by_folds.chosen], rtol=0.1)
    assert result.baseline == pytest.approx(by_folds.baseline)


def test_float32_and_float64_agree(monkeypatch):
    Z, Y = rows(900, 530)
    single = gcv.GcvScorer(moments_of(Z, Y), 0, None)
    monkeypatch.setattr(gcv, "_FEATURES_IN_SINGLE", 1000)
    double = gcv.GcvScorer(moments_of(Z, Y), 0, None)
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    for alpha in (0.1, 20.0, 3e4):
        one, other = single.at(alpha), double.at(alpha)
        np.testing.assert_allclose(
            [one.score, one.df, one.slope], [other.score, other.df, other.slope], rtol=2e-3, atol=1e-4
        )
        np.testing.assert_allclose(one.coef, other.coef, atol=1e-8 * np.abs(other.coef).max())


def test_slope_is_the_derivative():
    Z, Y = rows(300, 40)
    scorer = gcv.GcvScorer(moments_of(Z, Y), 0, None)
    for alpha in (0.3, 7.0, 400.0):
        step = 1e-4
        above, below = scorer.at(alpha * np.exp(step)), scorer.at(alpha * np.exp(-step))
        rise = np.log(above.score / below.score) / (2 * step)
        np.testing.assert_allclose(scorer.at(alpha).slope, rise, rtol=1e-3, atol=1e-6)


def test_dependent_and_constant_features():
    Z, Y = rows(300, 10)
    Z = np.hstack([Z, Z[:, :5], np.ones((300, 2))])
    found, result, _ = choose_by_gcv(moments_of(Z, Y))
    assert np.isfinite(found.coef).all()
    assert np.isfinite(result.means[result.chosen])
    np.testing.assert_allclose(found.coef[:5], found.coef[10:15], rtol=1e-6)
    np.testing.assert_allclose(found.coef[15:], 0, atol=1e-12)


def test_duplicate_rows_ask_for_folds_by_group():
    Z, Y = rows(120, 200)
    once = choose_by_gcv(moments_of(Z, Y))[1]
    twice = choose_by_gcv(moments_of(np.vstack([Z, Z]), np.vstack([Y, Y])))[1]
    assert twice.best["alpha"] < once.best["alpha"]  # as documented: every row is predicted from its twin


def test_a_strength_within_the_rounding_of_the_sums_cannot_win():
    """Rows fewer than features: residuals and n - df both go with the strength, until they are rounding."""
    Z, Y = rows(60, 100, noise=0.01)
    scale = float(np.square(Z - Z.mean(axis=0)).sum() / 100)
    small, usual = 1e-6 * scale, 0.1 * scale
    single, double = (
        choose_by_gcv(moments_of(Z.astype(dtype), Y), [small, usual], dtype=dtype)[1]
        for dtype in (np.float32, np.float64)
    )
    assert single.means[0] == np.inf
    assert single.best["alpha"] == usual
    np.testing.assert_allclose(double.means, [directly(Z, Y, alpha) for alpha in (small, usual)], rtol=0.05)


def test_constant_targets():
    Z, _ = rows(100, 10)
    found, result, _ = choose_by_gcv(moments_of(Z, np.full((100, 1), 4.0)))
    np.testing.assert_allclose(found.coef, 0, atol=1e-9)
    np.testing.assert_allclose(found.intercept, 4)
    assert np.isfinite(result.best["alpha"])


def test_a_strength_that_is_too_small_is_listed_and_cannot_win():
    Z, Y = rows(300, 10)
    moments = moments_of(np.hstack([Z, Z]), Y)
    _, result, _ = choose_by_gcv(moments, [1e-300, 1.0])
    assert result.best["alpha"] == 1.0
    with pytest.raises(DataError, match=r"none of the strengths .* is large enough"):
        choose_by_gcv(moments, [1e-300])


def test_too_few_rows():
    with pytest.raises(DataError, match="2 rows are too few"):
        choose_by_gcv(moments_of(np.eye(2), np.eye(2)))
    with pytest.raises(DataError, match="0 rows are too few"):
        choose_by_gcv(Moments(3, 1))


@pytest.fixture
def coarse(monkeypatch):
    """Searches with as few features as the tests have begin with half of them, too."""
    monkeypatch.setattr(gcv, "FEWEST_FEATURES_TO_HALVE", 2)


@pytest.fixture
def factors(monkeypatch):
    """The orders of the matrices that are factorised."""
    made = []
    factorise = gcv.factorise
    monkeypatch.setattr(gcv, "factorise", lambda square: made.append(len(square)) or factorise(square))
    return made


@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("noise", [0.05, 1.0, 20.0])
def test_comes_as_close_to_the_minimum_as_a_search_with_all_features(shape, noise, coarse):
    Z, Y = rows(*shape, noise=noise)
    _, result, _ = choose_by_gcv(moments_of(Z, Y))
    best = min(directly(Z, Y, alpha) for alpha in np.logspace(-3, 7, 31))
    assert directly(Z, Y, result.best["alpha"]) < 1.05 * best


def test_few_factors_are_of_all_features(coarse, factors):
    Z, Y = rows(900, 60)
    choose_by_gcv(moments_of(Z, Y))
    assert factors.count(30) >= 2
    assert 1 <= factors.count(60) <= 3


def test_given_strengths_and_few_features_are_searched_as_they_are(factors):
    Z, Y = rows(400, 30)
    choose_by_gcv(moments_of(Z, Y), [1.0, 10.0])
    choose_by_gcv(moments_of(Z, Y))
    assert set(factors) == {30}


def test_features_that_are_singular_by_half_are_searched_whole(coarse, monkeypatch):
    Z, Y = rows(300, 12)
    expected = choose_by_gcv(moments_of(Z, Y))[1]
    monkeypatch.setattr(gcv, "_of_half", lambda *_: None)
    _, result, _ = choose_by_gcv(moments_of(Z, Y))
    assert abs(np.log10(result.best["alpha"] / expected.best["alpha"])) < 0.5


def test_a_strength_that_all_features_do_not_allow_is_searched_again(coarse, monkeypatch):
    Z, Y = rows(300, 12)
    Z = np.hstack([Z, Z])  # singular at next to no strength
    monkeypatch.setattr(gcv, "_of_half", lambda *_: CoarseChoice(1e-300, 1.0))
    solution, result, _ = choose_by_gcv(moments_of(Z, Y))
    assert solution.alpha > 1e-3
    assert np.isinf(result.means[result.alphas == 1e-300]).all()


def test_the_step_is_that_of_newton_and_bounded():
    score = GcvScore(1.0, 1.0, slope=-0.6, df=1.0, coef=np.empty(0))
    assert CoarseChoice(1.0, 0.5).step(score) == pytest.approx(1.2)
    assert CoarseChoice(1.0, 0.1).step(score) == pytest.approx(np.log(10))  # 6 without the bound
    assert CoarseChoice(1.0, 2.0).step(score) == 0  # by .3, which is near enough


def test_curvature_is_the_second_derivative():
    Z, Y = rows(400, 30)
    scorer = GcvScorer(moments_of(Z, Y), 0, None)
    near, far = 40.0, 70.0
    scorer.at(near)
    assert curvature_at(scorer, near) == 0
    scorer.at(far)
    other = GcvScorer(moments_of(Z, Y), 0, None)
    slopes = [other.at(near * np.exp(step)).slope for step in (-0.01, 0.01)]
    assert curvature_at(scorer, near) == pytest.approx((slopes[1] - slopes[0]) / 0.02, rel=0.1)


def test_strengths_grow_by_the_root_of_the_scatters():
    Z, Y = rows(200, 10)
    Z[:, half_of(10)] *= 2
    whole = moments_of(Z, Y)
    half = whole.of_features(half_of(10))
    variances = Z.var(axis=0)
    assert alpha_ratio(half, whole) == pytest.approx(np.sqrt(variances.sum() / variances[::2].sum()))


def test_the_score_decides_between_the_strength_and_the_share_of_the_half(coarse):
    Z, Y = rows(200, 20, noise=8.0)
    classes = (Y[:, 0] > np.median(Y[:, 0])).astype(int)
    Y = np.where(classes == 1, 1.0, -1.0)[:, None]
    whole = moments_of(Z, Y)
    origin, target = whole.shifts
    score = HeldOutScore(classes, np.array([0, 1]), "neg_log_loss")
    scored_rows = ScoredRows(Z - origin, Y - target, target, score, score.name)
    plain, _, _ = choose_by_gcv(whole)
    chosen, result, _ = choose_by_gcv(whole, scored_rows=scored_rows)
    scores = result.settings["neg_log_loss"]
    assert plain.alpha / 101 < chosen.alpha <= plain.alpha * 1.0001
    assert scores[result.chosen] == np.nanmax(scores)
    assert np.isfinite(scores).sum() <= 2


def moments_about(Z, Y, shift):
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
    score = HeldOutScore(classes, np.array([0, 1]), "neg_log_loss")
    scored_rows = ScoredRows(Z - shift, Y, np.zeros(1), score, score.name)
    return Z, Y, shift, scored_rows


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_a_row_left_out_is_predicted_as_by_a_fit_without_it(data, alpha):
    Z, Y, shift, scored_rows = data
    outputs = GcvScorer(moments_about(Z, Y, shift), 0, None).left_out(scored_rows, alpha)
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        fitted = ridge(moments_about(Z[rest], Y[rest], shift), alpha)
        np.testing.assert_allclose(outputs[i], Z[i] @ fitted.coef + fitted.intercept, rtol=1e-7)


def test_the_best_score_below_the_least_error_is_taken(data):
    Z, Y, shift, scored_rows = data
    whole = moments_about(Z, Y, shift)
    plain, _, _ = choose_by_gcv(whole)
    found, result, _ = choose_by_gcv(whole, scored_rows=scored_rows)
    scores = result.settings["neg_log_loss"]
    assert plain.alpha / 101 < found.alpha <= plain.alpha
    assert result.best["alpha"] == found.alpha
    assert scores[result.chosen] == np.nanmax(scores)
    assert np.isfinite(scores).sum() >= 3
    again = ridge(whole, found.alpha)
    np.testing.assert_allclose(found.coef, again.coef, rtol=1e-7)


@pytest.mark.parametrize("at_hand", [1.0, 0.1])
def test_the_factor_at_hand_has_its_word_before_it_is_overwritten(data, at_hand, monkeypatch):
    Z, Y, shift, scored_rows = data
    scorer = GcvScorer(moments_about(Z, Y, shift), 0, None)
    for alpha in sorted((1.0, 0.1), key=lambda alpha: alpha == at_hand):
        scorer.at(alpha)
    made = []
    factorised = gcv.factorise
    monkeypatch.setattr(gcv, "factorise", lambda square: made.append(1) or factorised(square))
    word = FinalChoice(scorer, scored_rows)
    is_weaker = word._at_both(1.0, 0.1)
    assert is_weaker == (word.scores[1.0] <= word.scores[0.1])
    assert len(made) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_had_a_say_are_not_left_out_again(data, weighted, monkeypatch):
    """Held-out outputs of the same rows at the same strength are those of the choice; of others they are computed."""
    Z, Y, shift, scored_rows = data
    weights = np.random.default_rng(1).integers(1, 4, 60).astype(float) if weighted else None
    scored_rows = replace(scored_rows, score=replace(scored_rows.score, sample_weight=weights), weights=weights)
    moments = FoldMoments(1, 12, 1, shift, np.zeros(1), np.dtype(float))
    moments.folds[0].update(Z, Y, weights)
    problem = RidgeProblem(moments, scored_rows=scored_rows)
    solution = GeneralisedCrossValidation().choose(problem, OpenSettings(None)).solution
    same = ValidationRows(np.arange(60), scored_rows.Z, Y, np.zeros(60, int), weights)
    others = replace(same, Z=scored_rows.Z.copy())
    computed, elsewhere = problem.held_out(solution, others), ridge(moments.whole(), 2 * solution.alpha)
    expected = problem.held_out(elsewhere, others).outputs
    np.testing.assert_allclose(problem.held_out(elsewhere, same).outputs, expected, rtol=1e-9)
    monkeypatch.setattr("chimap.solvers.from_moments.leverages", None)
    taken = problem.held_out(solution, same)
    np.testing.assert_allclose(taken.outputs, computed.outputs, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(taken.noise, computed.noise, rtol=1e-6)


WEIGHTS = {
    "a heavy class": lambda rng, n: np.where(rng.random(n) < 0.1, 20.0, 1.0),
    "precisions": lambda rng, n: rng.lognormal(0, 1.5, n),
    "few rows that matter": lambda rng, n: np.where(rng.random(n) < 0.2, 1.0, 0.01),
}


def weighed_rows(Z, Y, w, moments, counts=None):
    shift, target = moments.shifts
    return ScoredRows(Z - shift, Y - target, target, lambda outputs: 0.0, "none", None, w, counts=counts)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_rows_of_unequal_weights_are_left_out_by_their_own_leverages(kind):
    rng = np.random.default_rng(0)
    Z, Y, w = rng.standard_normal((30, 4)), rng.standard_normal((30, 2)), WEIGHTS[kind](rng, 30)
    moments = Moments(4, 2).update(Z, Y, w)
    scorer = GcvScorer(moments, 0, None, scored_rows=weighed_rows(Z, Y, w, moments))
    squares = []
    for row in range(30):
        others = np.arange(30) != row
        machine = ridge(Moments(4, 2).update(Z[others], Y[others], w[others]), 0.7)
        squares.append(np.square(Z[row] @ machine.coef + machine.intercept - Y[row]).sum())
    assert scorer.at(0.7).score == pytest.approx(w @ np.array(squares) / w.sum(), rel=1e-8)
    up, down = (scorer.at(0.7 * np.exp(step)).score for step in (1e-5, -1e-5))
    assert scorer.at(0.7).slope == pytest.approx(np.log(up / down) / 2e-5, rel=1e-4)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_unequal_weights_choose_a_strength_near_the_best(kind):
    """With more features than the effective number of rows, whose df is above it at the best strength."""
    rng = np.random.default_rng(0)
    n, D = 400, 120
    scales, truth = np.arange(1, D + 1) ** -0.7, rng.standard_normal((D, 1))
    Z, new, w = rng.standard_normal((n, D)) * scales, rng.standard_normal((2000, D)) * scales, WEIGHTS[kind](rng, n)
    Y = Z @ truth + rng.standard_normal((n, 1))
    moments = Moments(D, 1).update(Z, Y, w)
    assert w.sum() ** 2 / np.square(w).sum() < D

    def error(**settings):
        solution = choose_by_gcv(moments, **settings)[0]
        return 1 + np.square(new @ (solution.coef - truth) + solution.intercept).mean()

    least = min(error(alphas=[alpha]) for alpha in 10.0 ** np.arange(-2, 4, 0.5))
    assert error(scored_rows=weighed_rows(Z, Y, w, moments)) < 1.05 * least


def test_frequencies_leave_one_of_the_equal_rows_out():
    rng = np.random.default_rng(0)
    Z, Y, times = rng.standard_normal((40, 4)), rng.standard_normal((40, 1)), rng.integers(1, 5, 40).astype(float)
    moments = Moments(4, 1).update(Z, Y, times)
    scorer = GcvScorer(moments, 0, None, n_rows=times.sum(), scored_rows=weighed_rows(Z, Y, times, moments, times))
    many = np.repeat(np.arange(40), times.astype(int))
    repeated = GcvScorer(Moments(4, 1).update(Z[many], Y[many]), 0, None)
    assert scorer.at(2.0).score == pytest.approx(repeated.at(2.0).score, rel=1e-10)
