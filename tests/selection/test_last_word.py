"""The score of rows that are left out, in closed form, between gcv's strength and two decades below."""

from dataclasses import replace

import numpy as np
import pytest

from chimap.moments import FoldMoments
from chimap.selection import gcv_score
from chimap.selection.gcv import GeneralisedCrossValidation, choose_by_gcv
from chimap.selection.gcv_score import GcvScorer
from chimap.selection.last_word import LastWord
from chimap.selection.scoring import HeldOutScore
from chimap.selection.tried import TriedRows
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.held_out import Witnesses
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


@pytest.mark.parametrize("at_hand", [1.0, 0.1])
def test_the_factor_at_hand_has_its_word_before_it_is_overwritten(data, at_hand, monkeypatch):
    Z, Y, shift, tried = data
    scorer = GcvScorer(moments_of(Z, Y, shift), 0, None)
    for alpha in sorted((1.0, 0.1), key=lambda alpha: alpha == at_hand):
        scorer.at(alpha)
    made = []
    factorised = gcv_score.factorise
    monkeypatch.setattr(gcv_score, "factorise", lambda square: made.append(1) or factorised(square))
    word = LastWord(scorer, tried)
    is_weaker = word._at_both(1.0, 0.1)
    assert is_weaker == (word.scores[1.0] <= word.scores[0.1])
    assert len(made) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_had_a_say_are_not_left_out_again(data, weighted, monkeypatch):
    """Held-out outputs of the same rows at the same strength are those of the choice; of others they are computed."""
    Z, Y, shift, tried = data
    weights = np.random.default_rng(1).integers(1, 4, 60).astype(float) if weighted else None
    tried = replace(tried, score=replace(tried.score, sample_weight=weights), weights=weights)
    moments = FoldMoments(1, 12, 1, shift, np.zeros(1), np.dtype(float))
    moments.folds[0].update(Z, Y, weights)
    problem = RidgeProblem(moments, tried=tried)
    _, solution = GeneralisedCrossValidation().choose(problem, None)
    same = Witnesses(np.arange(60), tried.Z, Y, np.zeros(60, int), weights)
    others = replace(same, Z=tried.Z.copy())
    computed, elsewhere = problem.held_out(solution, others), ridge(moments.whole(), 2 * solution.alpha)
    expected = problem.held_out(elsewhere, others).outputs
    np.testing.assert_allclose(problem.held_out(elsewhere, same).outputs, expected, rtol=1e-9)
    monkeypatch.setattr("chimap.solvers.from_moments.leverages", None)
    taken = problem.held_out(solution, same)
    np.testing.assert_allclose(taken.outputs, computed.outputs, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(taken.noise, computed.noise, rtol=1e-6)
