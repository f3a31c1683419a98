from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.features.exact import ExactFeatures
from chimap.selection import learning_curve, leave_one_out
from chimap.selection.leave_one_out import LeaveOut
from chimap.selection.scoring import HeldOutScore
from chimap.solvers import exact_observed
from chimap.solvers.base import KernelRows
from chimap.solvers.exact import DualRidge, DualSolution
from chimap.solvers.kernel_matrix import KernelMatrix

from ..histograms import classes


class ScoreOfResiduals:
    """A score by the residuals of rows that are left out."""

    name = "score"

    def __init__(self, Y: np.ndarray, function: Callable[[np.ndarray], float]):
        self.Y, self.function = Y, function

    def __call__(self, outputs: np.ndarray, rows: np.ndarray) -> float:
        return self.function(self.Y[rows] - outputs)


def scored_by(function: Callable[[np.ndarray], float], rule: LeaveOut) -> LeaveOut:
    return replace(rule, rows=replace(rule.rows, score=ScoreOfResiduals(rule.rows.Y, function)))


def rule_of(features, Y, score, groups=None, weights=None, has_rare=False, **options: object) -> LeaveOut:
    n, t = Y.shape
    precision = np.dtype(np.float64)
    rows = KernelRows(features, np.arange(n), groups, Y, np.zeros(t), weights, score, precision, has_rare=has_rare)
    return LeaveOut(KernelMatrix(features, Y, None, precision), rows, **options)


def problem(n: int = 120, seed: int = 0, kernel: str = "exp-chi2", **options: object) -> LeaveOut:
    X, y = classes(n, 10, seed=seed)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    features = ExactFeatures(kernel, n_terms=4).fit(X)
    return rule_of(features, Y, HeldOutScore(y, np.arange(3)), **options)


def refitted(rule: LeaveOut, alpha: float, gamma: float, left_out: np.ndarray) -> np.ndarray:
    """Outputs for rows left out, by a fit on the others with the kernel of mapped rows."""
    U = rule.matrix.features.rows_.dense
    K = np.exp(-gamma * np.square(U[:, None] - U).sum(axis=2))
    kept = np.setdiff1d(np.arange(len(U)), left_out)
    m = kept.size
    A = np.block([[K[np.ix_(kept, kept)] + alpha * np.eye(m), np.ones((m, 1))], [np.ones((1, m)), 0]])
    found = np.linalg.solve(A, np.vstack([rule.rows.Y[kept], np.zeros((1, rule.rows.Y.shape[1]))]))
    return K[np.ix_(left_out, kept)] @ found[:-1] + found[-1]


@pytest.mark.parametrize("few", [3000, 80, 20])
@pytest.mark.parametrize("grouped", [False, True])
def test_held_out_predictions_are_those_of_refitting(few, grouped, monkeypatch):
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", few)
    groups = [np.arange(a, a + 6) for a in range(0, 120, 6)] if grouped else None
    rule = problem(groups=groups)
    choice = rule.choose()
    best = choice.result.best
    assert best["gamma"] == rule.matrix.gamma(choice.octaves)
    for out in (np.arange(6, 12), np.arange(114, 120)) if grouped else (np.array([3]), np.array([119])):
        expected = refitted(rule, best["alpha"], best["gamma"], out)
        np.testing.assert_allclose(choice.held_out[out], expected, atol=1e-6)
    table = choice.result.table()
    assert table[choice.result.chosen]["chosen"]
    assert choice.result.rule == ("leave-group-out" if grouped else "leave-one-out")
    sizes = {3000: {120}, 80: {26, 80, 120}, 20: {12, 36, 60, 120}}[few]
    assert {row["n_rows"] for row in table} == sizes
    compared = [row for row in table if row["n_rows"] == max(sizes - {120}, default=120)]
    (winner,) = [row for row in compared if (row["alpha"], row["gamma"]) == (best["alpha"], best["gamma"])]
    assert len(compared) > 1
    assert winner["mean"] == max(row["mean"] for row in compared)
    assert best["n_rows"] == 120
    if few < 120:
        assert [row["n_rows"] for row in table].count(120) == 1  # a machine of all rows is much work


def test_all_rows_take_one_factor_and_are_left_out_once(monkeypatch):
    """The machine of all rows is most of the time of a fit."""
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", 40)
    calls: list[object] = []
    factorise, leave_out = DualRidge.factorise, DualRidge.leave_one_out

    def counted(ridge: DualRidge, alpha: float) -> bool:
        calls.extend(["factor"] * (ridge.n_rows == 120))
        return factorise(ridge, alpha)

    def left_out(ridge: DualRidge, solution: DualSolution, first: int = 0) -> np.ndarray:
        calls.extend([first] * (ridge.n_rows == 120))
        return leave_out(ridge, solution, first)

    monkeypatch.setattr(DualRidge, "factorise", counted)
    monkeypatch.setattr(DualRidge, "leave_one_out", left_out)
    rule = problem()
    choice = rule.choose()
    assert rule.matrix.posterior(choice.solution.alpha, choice.octaves) is not None
    assert calls == ["factor", 0]


def test_the_last_rows_of_a_stage_are_left_out(monkeypatch):
    """Leaving out all of many rows would take as long as the factor."""
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", 30)
    first_of_stage: dict[int, set[int]] = {}
    leave_out = DualRidge.leave_one_out

    def watched(ridge: DualRidge, solution: DualSolution, first: int = 0) -> np.ndarray:
        first_of_stage.setdefault(ridge.n_rows, set()).add(first)
        return leave_out(ridge, solution, first)

    monkeypatch.setattr(DualRidge, "leave_one_out", watched)
    problem().choose()
    assert first_of_stage == {12: {0}, 36: {6}, 60: {30}, 120: {0}}


def test_a_matrix_of_some_rows_is_let_go_before_there_is_another(monkeypatch):
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", 40)
    made: list[weakref.ref[np.ndarray]] = []
    of_features = ExactFeatures.gram_into

    def watched(features: ExactFeatures, square: np.ndarray) -> np.ndarray:
        assert all(one() is None for one in made)
        made.append(weakref.ref(square))
        return of_features(features, square)

    monkeypatch.setattr(ExactFeatures, "gram_into", watched)
    problem().choose()
    assert len(made) == 4


def test_of_equal_settings_the_solution_is_that_of_the_one_chosen(monkeypatch):
    monkeypatch.setattr(leave_one_out, "mean_square", lambda *_: 1.0)
    rule = problem(octaves=0)
    rule = scored_by(lambda residuals: 0.5, rule)
    choice = rule.choose()
    assert choice.solution.alpha == choice.result.best["alpha"]


def test_a_strength_of_some_rows_is_raised_until_that_of_all_can_be_solved(monkeypatch):
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", 40)
    given = problem().choose().result.best
    solve = DualRidge.solve

    def singular(ridge: DualRidge, alpha: float) -> DualSolution | None:
        return None if ridge.n_rows == 120 and alpha < 2 * given["alpha"] else solve(ridge, alpha)

    monkeypatch.setattr(DualRidge, "solve", singular)
    raised = problem().choose().result.best
    assert raised["gamma"] == given["gamma"]
    assert raised["alpha"] == pytest.approx(given["alpha"] * 10**0.5)


def test_the_learning_curve_is_of_machines_of_the_first_rows_for_the_last_half(monkeypatch):
    monkeypatch.setattr(learning_curve, "_FEWEST", 10)
    rule = problem(octaves=0, alphas=[0.1])
    rule = scored_by(lambda residuals: -float(np.square(residuals).mean()), rule)
    growth, gamma = dict(rule.choose().growth), rule.matrix.gamma(0)
    later = np.arange(60, 120)
    expected = -np.square(rule.rows.Y[later] - refitted(rule, 0.1, gamma, later)).mean()
    assert growth[60] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("few", [3000, 40])
def test_the_learning_curve_is_that_of_the_setting_that_was_chosen(few, monkeypatch):
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", few)
    monkeypatch.setattr(learning_curve, "_FEWEST", 10)
    choice = problem(octaves=0).choose()
    only = problem(octaves=0, alphas=[choice.result.best["alpha"]]).choose()
    rows, scores = np.transpose(choice.growth)
    assert rows.tolist() == [15, 30, 60, 120]
    np.testing.assert_allclose(scores, np.transpose(only.growth)[1], rtol=1e-6)


def test_the_best_of_a_grid_is_taken():
    alphas = [1e-4, 1e-2, 1.0, 100.0]
    choice = problem(alphas=alphas, octaves=0).choose()
    assert sorted(row["alpha"] for row in choice.result.table()) == alphas
    scores = {}
    for alpha in alphas:
        only = problem(alphas=[alpha], octaves=0).choose()
        scores[alpha] = only.result.means[only.result.chosen]
    assert scores[choice.result.best["alpha"]] == max(scores.values())


def test_several_strengths_are_compared_on_some_rows_and_a_single_one_is_not(monkeypatch):
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", 40)
    for alphas in ([0.1], [0.01, 0.1, 1.0]):
        rows = [row["n_rows"] for row in problem(alphas=alphas, octaves=0).choose().result.table()]
        assert rows.count(120) == 1
        assert (len(rows) > 1) == (len(alphas) > 1)


def test_equal_scores_go_to_the_smaller_error_and_then_to_the_stronger():
    rule = problem()
    rule = scored_by(lambda residuals: 0.5, rule)
    best = rule.choose().result.best
    errors = {}
    for alpha in (best["alpha"] / 10, best["alpha"], best["alpha"] * 10):
        only = problem(alphas=[alpha], octaves=0).choose()
        errors[alpha] = np.square(only.held_out - rule.rows.Y).mean()
    assert errors[best["alpha"]] <= min(errors.values()) * 1.2
    rule = problem(alphas=[1e-9, 1e-8, 1e-7], octaves=0)
    rule = scored_by(lambda residuals: 0.5, rule)
    rule.rows.Y[:] = 1.0  # every strength predicts them without error
    assert rule.choose().result.best["alpha"] == 1e-7


def test_scores_that_are_not_defined_cannot_win():
    rule = problem(alphas=[0.01, 100.0], octaves=0)
    weak = problem(alphas=[0.01], octaves=0).choose()
    least = 1.1 * np.square(weak.held_out - rule.rows.Y).mean()
    rule = scored_by(lambda residuals: np.nan if np.square(residuals).mean() < least else 0.1, rule)
    assert rule.choose().result.best["alpha"] == 100.0


def test_no_strength_is_large_enough():
    rule = problem(alphas=[1e-300], octaves=0)
    rule.matrix.features.rows_ = rule.matrix.features.rows_.take(np.zeros(120, dtype=int))
    with pytest.raises(DataError, match=r"none of the strengths .* is large enough"):
        rule.choose()


def test_the_strongest_that_was_tried_is_named_if_none_is_large_enough(monkeypatch):
    tried = []
    monkeypatch.setattr(DualRidge, "solve", lambda ridge, alpha: tried.append(alpha))
    with pytest.raises(DataError, match="all rows are nearly equal") as raised:
        problem(octaves=0).choose()
    assert len(tried) > 2
    assert f"no strength up to {max(tried):.3g} makes" in str(raised.value)


def test_gammas_come_from_one_matrix():
    rule = problem()
    machine = rule.matrix.solver(None, 0)
    for octaves in (2, -1, 0):
        square = rule.matrix.solver(None, octaves).square
        U, below = rule.matrix.features.rows_.dense, np.tril_indices(120, -1)
        expected = np.exp(-rule.matrix.gamma(octaves) * np.square(U[:, None] - U).sum(axis=2))
        np.testing.assert_allclose(square[below], expected[below], rtol=1e-9)
    assert machine is rule.matrix.solver(None, 0)


def test_of_equal_scores_the_smaller_weighted_error_is_better():
    rng = np.random.default_rng(0)
    X = np.zeros((60, 10))
    X[:20, :5], X[20:, 5:] = rng.dirichlet(np.ones(5), 20), rng.dirichlet(np.ones(5), 40)
    Y = rng.standard_normal((60, 1))  # noise wants a strong ridge
    Y[:20] = X[:20, :1] + 3 * X[:20, 1:2]  # and these a weak one
    weights = np.where(np.arange(60) < 20, 50.0, 0.02)
    features = ExactFeatures("exp-chi2", n_terms=4).fit(X)
    chosen = []
    for own in (None, weights):
        rule = rule_of(features, Y, ScoreOfResiduals(Y, lambda _: 0.0), weights=own, alphas=[1e-2, 100.0], octaves=0)
        chosen.append(rule.choose().solution.alpha)
    assert chosen == [100.0, 1e-2]


def test_a_settled_strength_is_raised_until_the_matrix_can_be_solved():
    settled = problem(alphas=[-1.0, -0.1, 0.01, 0.1], octaves=0, alpha_is_from_race=True).choose()
    assert settled.result.best["alpha"] == 0.01
    given = problem(alphas=[0.01], octaves=0).choose()
    np.testing.assert_allclose(settled.held_out, given.held_out)
    with pytest.raises(DataError, match="none of the strengths"):
        problem(alphas=[-1.0], octaves=0, alpha_is_from_race=True).choose()


@pytest.mark.parametrize("grouped", [False, True])
def test_of_many_rows_a_settled_strength_leaves_out_the_last(grouped, monkeypatch):
    given = {"alphas": [0.1], "octaves": 0}
    if grouped:
        given["groups"] = [np.arange(a, a + 6) for a in range(0, 120, 6)]
    every = problem(**given).choose()
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", 36)
    some = problem(**given, alpha_is_from_race=True).choose()
    assert np.isnan(some.held_out[:-36]).all()
    np.testing.assert_allclose(some.held_out[-36:], every.held_out[-36:], rtol=1e-6)
    np.testing.assert_array_equal(some.solution.weights, every.solution.weights)
    asked = problem(**given, alpha_is_from_race=True, has_rare=True).choose()
    np.testing.assert_allclose(asked.held_out, every.held_out, rtol=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_tasks_with_gaps_leave_out_parts_of_the_rows(grouped, monkeypatch):
    """Against a fit of each task without the part that a row is in."""
    monkeypatch.setattr(leave_one_out, "_WORK", 0.0)  # as of many rows: five parts
    groups = [np.arange(a, a + 8) for a in range(0, 120, 8)] if grouped else None
    rule = problem(groups=groups, octaves=0)
    rng = np.random.default_rng(1)
    rule.rows.Y[rng.random(rule.rows.Y.shape) < 0.25] = np.nan
    rule = scored_by(lambda residuals: -float(np.nanmean(np.square(residuals))), rule)
    choice = rule.choose()
    assert choice.result.rule == "leave-part-out"
    assert not choice.growth
    alpha, gamma = choice.result.best["alpha"], choice.result.best["gamma"]
    part = rule.rows.groups[1]
    assert len(rule.rows.groups) == 5
    assert part[0] == 24
    for task in range(3):
        seen = np.flatnonzero(~np.isnan(rule.rows.Y[:, task]))
        own = np.intersect1d(part, seen)
        unseen = np.setdiff1d(np.arange(120), seen)
        alone = problem()
        alone.rows.Y[:] = np.nan_to_num(rule.rows.Y)
        expected = refitted(alone, alpha, gamma, np.union1d(part, unseen))
        places = np.searchsorted(np.union1d(part, unseen), own)
        np.testing.assert_allclose(choice.held_out[own, task], expected[places, task], atol=1e-6)


def test_the_search_for_tasks_with_gaps_begins_where_conjugate_gradients_are_quick():
    whole, gaps = problem(octaves=0), problem(octaves=0)
    gaps.rows.Y[::4, 0] = np.nan
    gaps = scored_by(lambda residuals: -float(np.nanmean(np.square(residuals))), gaps)
    scale = whole.matrix.solver(None, 0).scale()
    first, of_gaps = (rule.choose().result.settings["alpha"][0] / scale for rule in (whole, gaps))
    assert (first, of_gaps) == (pytest.approx(0.1), pytest.approx(1.0))


def test_of_many_rows_with_gaps_the_best_of_few_is_solved_once_on_all(monkeypatch):
    monkeypatch.setattr(leave_one_out, "FEW_ROWS", 60)
    rule = problem()
    rule.rows.Y[::4, 0] = np.nan
    rule = scored_by(lambda residuals: -float(np.nanmean(np.square(residuals))), rule)
    choice = rule.choose()
    assert [row["n_rows"] for row in choice.result.table()].count(120) == 1
    assert np.isnan(choice.held_out[:48]).all()
    assert np.isfinite(choice.held_out[60:, 1]).all()


@pytest.mark.parametrize(("n", "n_targets"), [(10, 1), (100, 3), (2000, 12), (20_000, 12), (100_000, 1)])
def test_there_are_as_many_parts_as_the_work_allows(n, n_targets):
    parts = leave_one_out.parts_of(None, n, n_targets)
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(n))
    work = n_targets * float(n) ** 2  # of a part
    allowed = leave_one_out._WORK / work
    assert len(parts) <= max(5, allowed)
    assert len(parts) >= min(n, max(5, allowed)) - 1


@pytest.mark.parametrize("sizes", [[99, 1], [1, 99], [1, 1, 98], [20] * 5, [50, 50]])
def test_parts_keep_groups_whole_and_leave_rows_to_learn_from(sizes):
    edges = np.cumsum([0, *sizes])
    groups = [np.arange(a, b) for a, b in pairwise(edges)]
    parts = leave_one_out.parts_of(groups, 100, 10**9)
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(100))
    assert 1 < len(parts) <= 5
    starts = {int(group[0]) for group in groups}
    assert all(int(part[0]) in starts for part in parts)


def test_a_strength_whose_rows_left_out_are_not_known_cannot_win(monkeypatch):
    monkeypatch.setattr(exact_observed, "_MOST_STEPS", 4)
    rule = problem(alphas=[1e-8, 1e3], octaves=0)
    rule.rows.Y[::4, 0] = np.nan
    rule = scored_by(lambda residuals: 1.0 if np.isnan(residuals).mean() > 0.2 else 0.5, rule)
    assert rule.choose().solution.alpha == 1e3
