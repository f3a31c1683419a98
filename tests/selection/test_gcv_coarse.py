"""A search on half of the features, confirmed with all of them."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.selection import gcv
from chimap.selection.gcv import choose_by_gcv
from chimap.selection.gcv_coarse import CoarseChoice, curvature_at, half_of, scaled
from chimap.selection.gcv_score import GcvScore, GcvScorer
from chimap.selection.scoring import HeldOutScore
from chimap.selection.tried import TriedRows

from ..moments.cases import moments_of
from .test_gcv import SHAPES, directly, rows


@pytest.fixture
def coarse(monkeypatch):
    """Searches with as few features as the tests have begin with half of them, too."""
    monkeypatch.setattr(gcv, "FROM_FEATURES", 2)


@pytest.fixture
def factors(monkeypatch):
    """The orders of the matrices that are factorised."""
    from chimap.selection import gcv_score

    made = []
    factorise = gcv_score.factorise
    monkeypatch.setattr(gcv_score, "factorise", lambda square: made.append(len(square)) or factorise(square))
    return made


@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("noise", [0.05, 1.0, 20.0])
def test_comes_as_close_to_the_minimum_as_a_search_with_all_features(shape, noise, coarse):
    Z, Y = rows(*shape, noise=noise)
    _, result = choose_by_gcv(moments_of(Z, Y))
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
    _, result = choose_by_gcv(moments_of(Z, Y))
    assert abs(np.log10(result.best["alpha"] / expected.best["alpha"])) < 0.5


def test_a_strength_that_all_features_do_not_allow_is_searched_again(coarse, monkeypatch):
    Z, Y = rows(300, 12)
    Z = np.hstack([Z, Z])  # singular at next to no strength
    monkeypatch.setattr(gcv, "_of_half", lambda *_: CoarseChoice(1e-300, 1.0))
    solution, result = choose_by_gcv(moments_of(Z, Y))
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
    assert scaled(half, whole) == pytest.approx(np.sqrt(variances.sum() / variances[::2].sum()))


def test_the_score_decides_between_the_strength_and_the_share_of_the_half(coarse):
    Z, Y = rows(200, 20, noise=8.0)
    classes = (Y[:, 0] > np.median(Y[:, 0])).astype(int)
    Y = np.where(classes == 1, 1.0, -1.0)[:, None]
    whole = moments_of(Z, Y)
    origin, target = whole.shifts
    tried = TriedRows(Z - origin, Y - target, target, HeldOutScore(classes, np.array([0, 1]), "neg_log_loss"))
    plain, _ = choose_by_gcv(whole)
    chosen, result = choose_by_gcv(whole, tried=tried)
    scores = result.settings["neg_log_loss"]
    assert plain.alpha / 101 < chosen.alpha <= plain.alpha * 1.0001
    assert scores[result.chosen] == np.nanmax(scores)
    assert np.isfinite(scores).sum() <= 2
