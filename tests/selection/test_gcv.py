from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV

from chimap._validation import DataError
from chimap.moments import FoldMoments, Moments
from chimap.selection import choose_alpha, gcv_score
from chimap.selection.gcv import choose_by_gcv

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
    found, result = choose_by_gcv(moments_of(Z, Y), alphas)
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
    _, result = choose_by_gcv(moments_of(Z, Y))
    best = min(directly(Z, Y, alpha) for alpha in np.logspace(-3, 7, 31))
    assert directly(Z, Y, result.best["alpha"]) < 1.05 * best
    assert len(result.alphas) <= 7


def test_is_the_choice_of_scikit_learn():
    Z, Y = rows(200, 20)
    alphas = np.logspace(-2, 4, 13)
    expected = RidgeCV(alphas).fit(Z, Y[:, 0]).alpha_  # leave-one-out by each row's own leverage
    _, result = choose_by_gcv(moments_of(Z, Y[:, :1]), alphas)
    assert abs(np.log10(result.best["alpha"] / expected)) <= 0.51


def test_is_the_choice_of_folds():
    Z, Y = rows(600, 40)
    folds = FoldMoments(5, 40, 2, Z.mean(axis=0), Y.mean(axis=0), np.dtype(np.float64))
    for k in range(5):
        folds.add_shifted(k, Z[k::5] - Z.mean(axis=0), Y[k::5] - Y.mean(axis=0))
    by_folds = choose_alpha(folds, folds.whole())
    _, result = choose_by_gcv(folds.whole())
    assert abs(np.log10(result.best["alpha"] / by_folds.best["alpha"])) <= 0.75
    np.testing.assert_allclose(result.means[result.chosen], by_folds.means[by_folds.chosen], rtol=0.1)
    assert result.baseline == pytest.approx(by_folds.baseline)


def test_float32_and_float64_agree(monkeypatch):
    Z, Y = rows(900, 530)
    single = gcv_score.GcvScorer(moments_of(Z, Y), 0, None)
    monkeypatch.setattr(gcv_score, "_SINGLE_FROM", 1000)
    double = gcv_score.GcvScorer(moments_of(Z, Y), 0, None)
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    for alpha in (0.1, 20.0, 3e4):
        one, other = single.at(alpha), double.at(alpha)
        np.testing.assert_allclose(
            [one.score, one.df, one.slope], [other.score, other.df, other.slope], rtol=2e-3, atol=1e-4
        )
        np.testing.assert_allclose(one.coef, other.coef, atol=1e-8 * np.abs(other.coef).max())


def test_slope_is_the_derivative():
    Z, Y = rows(300, 40)
    scorer = gcv_score.GcvScorer(moments_of(Z, Y), 0, None)
    for alpha in (0.3, 7.0, 400.0):
        step = 1e-4
        above, below = scorer.at(alpha * np.exp(step)), scorer.at(alpha * np.exp(-step))
        rise = np.log(above.score / below.score) / (2 * step)
        np.testing.assert_allclose(scorer.at(alpha).slope, rise, rtol=1e-3, atol=1e-6)


def test_dependent_and_constant_features():
    Z, Y = rows(300, 10)
    Z = np.hstack([Z, Z[:, :5], np.ones((300, 2))])
    found, result = choose_by_gcv(moments_of(Z, Y))
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
    found, result = choose_by_gcv(moments_of(Z, np.full((100, 1), 4.0)))
    np.testing.assert_allclose(found.coef, 0, atol=1e-9)
    np.testing.assert_allclose(found.intercept, 4)
    assert np.isfinite(result.best["alpha"])


def test_a_strength_that_is_too_small_is_listed_and_cannot_win():
    Z, Y = rows(300, 10)
    moments = moments_of(np.hstack([Z, Z]), Y)
    _, result = choose_by_gcv(moments, [1e-300, 1.0])
    assert result.best["alpha"] == 1.0
    with pytest.raises(DataError, match=r"none of the strengths .* is large enough"):
        choose_by_gcv(moments, [1e-300])


def test_too_few_rows():
    with pytest.raises(DataError, match="2 rows are too few"):
        choose_by_gcv(moments_of(np.eye(2), np.eye(2)))
    with pytest.raises(DataError, match="0 rows are too few"):
        choose_by_gcv(Moments(3, 1))
