"""Groups of features from moments and by passes: against a library, against each other, and by their own conditions."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._errors import InputError
from chimap._validation import DataError
from chimap.losses import CATALOGUE as LOSSES
from chimap.losses import Poisson, Square
from chimap.moments import FoldMoments
from chimap.penalties import L21
from chimap.selection.folds import score_path
from chimap.solvers.catalogue import solver_of
from chimap.solvers.findings import KernelPath
from chimap.solvers.groups import (
    GroupQuadratic,
    LossProblem,
    SquareProblem,
    follow,
    full_scatter,
    group_lasso_path,
    largest_group_alpha,
)
from chimap.solvers.lbfgs import over
from chimap.solvers.sparse import PATH_END, SparsePath

from ..moments.cases import moments_of, rows

GROUPS = [slice(0, 7), [7, 9, 11, 8], slice(12, 30), [10], slice(30, 40)]
D = 40
TARGETS = {"each by itself": False, "shared": True}
every_sharing = pytest.mark.parametrize("shared", TARGETS.values(), ids=TARGETS)


def problem(n=200, n_targets=2, seed=0, mean=3.0, scale=None):
    """Correlated rows whose targets come from the first and third groups."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 12)) @ rng.standard_normal((12, D)) + 0.3 * rng.standard_normal((n, D)) + mean
    if scale is not None:
        Z *= scale
    W = np.zeros((D, n_targets))
    W[:7], W[12:30] = rng.standard_normal((7, n_targets)), rng.standard_normal((18, n_targets))
    return Z, Z @ W + 2 * rng.standard_normal((n, n_targets))


def penalty_of(shared=False, weights=None):
    return L21(1.0, GROUPS, D, weights, shared)


def objective(loss, Z, Y, found, penalty, alpha):
    scores = Z @ found.coef + found.intercept
    return loss.value(Y, scores).sum() + alpha * penalty.value(found.coef)


def residual(loss, Z, Y, found, penalty, alpha):
    """The optimality conditions from the definition, over the rows."""
    slopes = loss.gradient(Y, Z @ found.coef + found.intercept)
    gradient, worst = Z.T @ slopes, np.abs(slopes.sum(axis=0)).max() / alpha
    weights = penalty.levels()
    for level, g in zip(weights * alpha, penalty.members, strict=True):
        columns = [slice(None)] if penalty.shared else [[t] for t in range(Y.shape[1])]
        for t in columns:
            w, pull = found.coef[g][:, t], gradient[g][:, t]
            size = np.linalg.norm(w)
            off = np.linalg.norm(pull + level * w / size) if size else np.linalg.norm(pull) - level
            worst = max(worst, off / level)
    return worst


@every_sharing
@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 2.0, 1.0, 1.5]])
def test_conditions_hold_along_the_path(shared, weights):
    Z, Y = problem()
    penalty = penalty_of(shared, weights)
    square = SquareProblem(moments_of(Z, Y), penalty)
    alphas = np.geomspace(square.largest, PATH_END * square.largest, 8)
    path = follow(square, alphas)
    assert [found.alpha for found in path] == pytest.approx(alphas)
    for found in path:
        assert found.residual < 1e-6
        assert residual(Square(), Z, Y, found, penalty, found.alpha) < 1e-6
        assert found.objective == pytest.approx(objective(Square(), Z, Y, found, penalty, found.alpha), rel=1e-9)
    used = [(penalty.norms(found.coef) > 0).sum() for found in path]
    assert used[0] == 0 < used[1] <= used[-1]


def test_just_below_the_largest_alpha_one_group_is_used():
    Z, Y = problem(n_targets=1)
    square = SquareProblem(moments_of(Z, Y), penalty_of())
    above, below = (square.solve(square.largest * f, square.zero()) for f in (1.0001, 0.9999))
    assert not np.any(above.coef)
    assert (penalty_of().norms(below.coef) > 0).sum() == 1


def of_the_path():
    """Centred rows, targets, groups, their weights and the strengths of a path."""
    Z, Y = rows(200, 12, 1, mean=10.0)
    largest = largest_group_alpha(moments_of(Z, Y), np.arange(12).reshape(4, 3))
    alphas = largest * np.array([1.001, 0.3, 0.03])
    return Z - Z.mean(axis=0), Y[:, 0] - Y[:, 0].mean(), np.arange(12).reshape(4, 3), np.sqrt([3.0] * 4), alphas


def of_a_problem():
    Z, Y = problem(n_targets=1)
    penalty = penalty_of(weights=[1.0, 0.5, 2.0, 1.0, 1.5])
    alphas = np.array([0.5, 0.05, 0.005]) * SquareProblem(moments_of(Z, Y), penalty).largest / len(Z)
    return Z - Z.mean(axis=0), Y[:, 0] - Y[:, 0].mean(), penalty.members, penalty.levels(), alphas


def error_and_penalty(w, Z, y, groups, weights, alpha):
    return np.mean((Z @ w - y) ** 2) / 2 + alpha * sum(
        s * np.linalg.norm(w[g]) for g, s in zip(groups, weights, strict=True)
    )


PEERS = {  # what skglm 0.5 reaches, which takes seconds to compile in each process; a thorough test asks it again
    of_the_path: [0.8674172322100182, 0.7028551607490889, 0.5234016698249446],
    of_a_problem: [59.319750156740355, 15.11925906516453, 3.52798393889232],
}


@pytest.mark.thorough
@pytest.mark.parametrize("made", PEERS)
def test_the_peer_reaches_what_is_written_here(made):
    skglm = pytest.importorskip("skglm")
    Z, y, groups, weights, alphas = made()
    settings = {"tol": 1e-12, "max_iter": 1000, "max_epochs": 100_000, "fit_intercept": False}
    for alpha, reached in zip(alphas, PEERS[made], strict=True):
        peer = skglm.GroupLasso([list(map(int, g)) for g in groups], alpha, weights, **settings)
        found = error_and_penalty(peer.fit(np.asfortranarray(Z), y).coef_, Z, y, groups, weights, alpha)
        assert found == pytest.approx(reached, rel=1e-12)


def test_a_path_is_that_of_skglm_on_the_rows():
    Z, Y = rows(200, 12, 1, mean=10.0)
    Zc, y, groups, weights, alphas = of_the_path()
    path = group_lasso_path(moments_of(Z, Y), alphas, groups)
    assert path.n_used[0] == 0
    assert path.residuals.max() < 1e-6
    for alpha, found, reached in zip(path.alphas, path.solutions, PEERS[of_the_path], strict=True):
        ours = error_and_penalty(found.coef[:, 0], Zc, y, groups, weights, alpha)
        np.testing.assert_allclose(ours, reached, rtol=1e-8)


@pytest.mark.parametrize("place", range(3))
def test_objective_is_that_of_skglm(place):
    Z, Y = problem(n_targets=1)
    square = SquareProblem(moments_of(Z, Y), penalty_of(weights=[1.0, 0.5, 2.0, 1.0, 1.5]))
    Zc, y, groups, weights, alphas = of_a_problem()
    found = square.solve(alphas[place] * len(Z), square.zero())
    ours = error_and_penalty(found.coef[:, 0], Zc, y, groups, weights, alphas[place])
    assert ours == pytest.approx(PEERS[of_a_problem][place], rel=1e-8)
    assert ours <= PEERS[of_a_problem][place] * (1 + 1e-12)


def chunks_of(Z, Y, size=64):
    return over(lambda: ((Z[i : i + size], Y[i : i + size]) for i in range(0, len(Z), size)))


def targets_for(loss, Y):
    return np.sign(Y - Y.mean(axis=0)) if loss.domain == "sign" else Y / Y.std()


@every_sharing
@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.domain != "count"])
def test_every_loss_meets_its_conditions(name, shared):
    loss = LOSSES[name]()
    Z, Y = problem(scale=0.1)
    Y = targets_for(loss, Y)
    penalty = penalty_of(shared)
    whole = moments_of(Z, Y)
    shift = whole.shifts[0]
    passes = LossProblem(loss, chunks_of(Z - shift, Y), whole, penalty)
    path = follow(passes, passes.largest * np.array([1.001, 0.3, 0.1]))
    assert not np.any(path[0].coef)
    for found in path[1:]:
        assert np.any(found.coef)
        assert found.residual < 1e-6
        assert residual(loss, Z - shift, Y, found, penalty, found.alpha) < 2e-6


@every_sharing
def test_passes_of_the_square_loss_end_where_the_moments_do(shared):
    Z, Y = problem()
    whole = moments_of(Z, Y)
    shift, target_shift = whole.shifts
    square = SquareProblem(whole, penalty_of(shared))
    alpha = 0.05 * square.largest
    passes = LossProblem(Square(), chunks_of(Z - shift, Y - target_shift), whole, penalty_of(shared))
    one, other = (p.solve(alpha, p.zero()) for p in (square, passes))
    assert other.objective == pytest.approx(one.objective, rel=1e-10)
    np.testing.assert_allclose(other.coef, one.coef, atol=1e-4 * np.abs(one.coef).max())
    intercept = other.intercept - shift @ other.coef + target_shift
    np.testing.assert_allclose(intercept, one.intercept, atol=1e-4 * np.abs(one.intercept).max())
    assert other.evaluations < 20  # its bound is the loss itself


def test_float32_features_meet_the_conditions_as_well():
    loss = LOSSES["logistic"]()
    Z, Y = problem(scale=0.1)
    Y = targets_for(loss, Y)
    whole = moments_of(Z, Y)
    Z = (Z - whole.shifts[0]).astype(np.float32)
    passes = LossProblem(loss, chunks_of(Z, Y), whole, penalty_of())
    assert passes.solve(0.05 * passes.largest, passes.zero()).residual < 1e-6


def test_targets_apart_are_problems_apart():
    Z, Y = problem(n_targets=3)
    both = SquareProblem(moments_of(Z, Y), penalty_of())
    alpha = 0.1 * both.largest
    together = both.solve(alpha, both.zero())
    for t in range(3):
        one = SquareProblem(moments_of(Z, Y[:, [t]]), penalty_of())
        alone = one.solve(alpha, one.zero())
        np.testing.assert_allclose(together.coef[:, [t]], alone.coef, atol=1e-5 * np.abs(alone.coef).max())


def test_sharing_uses_a_group_for_all_targets_or_none():
    Z, Y = problem(n_targets=3)
    square = SquareProblem(moments_of(Z, Y), penalty_of(shared=True))
    used = penalty_of().norms(square.solve(0.3 * square.largest, square.zero()).coef) > 0
    assert 0 < used.any(axis=1).sum() < len(GROUPS)
    np.testing.assert_array_equal(used.any(axis=1), used.all(axis=1))


def test_a_group_that_is_constant_stays_out():
    Z, Y = problem()
    Z[:, 30:] = 0.7
    with np.errstate(all="raise"):
        square = SquareProblem(moments_of(Z, Y), penalty_of())
        found = square.solve(1e-3 * square.largest, square.zero())
    assert found.residual < 1e-6
    assert not np.any(found.coef[30:])
    assert np.any(found.coef[12:30])


def test_copies_of_a_group_share_its_weight():
    Z, Y = problem(n_targets=1)
    Z[:, 30:37] = Z[:, :7]
    square = SquareProblem(moments_of(Z, Y), L21(1.0, [slice(0, 7), slice(7, 30), slice(30, 37), slice(37, 40)], D))
    found = square.solve(0.02 * square.largest, square.zero())
    assert found.residual < 1e-6


def test_a_path_can_be_ended():
    Z, Y = problem()
    square = SquareProblem(moments_of(Z, Y), penalty_of())
    path = follow(square, [1.0, 3.0, 2.0], lambda found: found.alpha < 2.5)
    assert [found.alpha for found in path] == [3.0, 2.0]
    with pytest.raises(ValueError, match="each of alpha must be a positive number"):
        follow(square, [1.0, -1.0])


def test_objectives_that_are_not_finite_name_what_is_too_large():
    Z, Y = problem()
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(DataError, match="targets y are too large"):
        SquareProblem(moments_of(Z, 1e200 * Y), penalty_of())
    whole = moments_of(Z, Y)
    passes = LossProblem(Square(), chunks_of(Z, 1e200 * Y), whole, penalty_of())
    with np.errstate(over="ignore"), pytest.raises(DataError, match="square loss is not finite: the targets y"):
        passes.solve(1.0, passes.zero())


def test_no_rows_and_targets_that_a_loss_cannot_take():
    Z, Y = problem()
    with pytest.raises(DataError, match="no rows"):
        SquareProblem(moments_of(Z, Y).fresh(), penalty_of())
    whole = moments_of(Z, Y)
    with pytest.raises(DataError, match="no rows: the chunks of a pass are empty"):
        LossProblem(Square(), over(lambda: []), whole, penalty_of()).zero()
    with pytest.raises(DataError, match=r"target 0 is .* the logistic loss takes -1 or 1"):
        LossProblem(LOSSES["logistic"](), chunks_of(Z, Y), whole, penalty_of()).zero()


def path_of(moments, alphas):
    path = follow(SquareProblem(moments, penalty_of()), alphas)
    return SparsePath(alphas, path, np.array([point.residual for point in path]))


def test_a_loss_that_no_parabola_bounds_is_refused_with_what_takes_it():
    with pytest.raises(InputError, match=r"loss=Poisson.* is not one.*HistogramRegressor with a sum of the kernels"):
        solver_of(Poisson(), L21)


def test_a_fold_without_rows_is_named():
    Z, Y = problem()
    whole = moments_of(Z, Y)
    folds = FoldMoments.of([whole.fresh(), whole.copy()], np.dtype(float))
    with pytest.raises(DataError, match="fold 0 of 2 holds 0 of 200 rows"):
        score_path(folds, whole, np.ones(1), path_of)


def test_held_out_errors_are_those_of_the_rows():
    Z, Y = problem()
    parts = [moments_of(Z[i::3], Y[i::3], shift=Z[0], target_shift=Y[0]) for i in range(3)]
    folds = FoldMoments.of(parts, np.dtype(float))
    alphas = np.array([2000.0, 100.0])
    errors = score_path(folds, folds.whole(), alphas, path_of).scores
    for k in range(3):
        rest = np.arange(len(Z)) % 3 != k
        square = SquareProblem(moments_of(Z[rest], Y[rest]), penalty_of())
        for s, alpha in enumerate(alphas):
            found = square.solve(alpha, square.zero())
            error = np.square(Z[~rest] @ found.coef + found.intercept - Y[~rest]).sum(axis=1).mean()
            assert errors[s, k] == pytest.approx(error, rel=1e-5)


def test_too_few_passes_are_warned_of():
    loss = LOSSES["logistic"]()
    Z, Y = problem(scale=0.1)
    Y = targets_for(loss, Y)
    whole = moments_of(Z, Y)
    passes = LossProblem(loss, chunks_of(Z - whole.shifts[0], Y), whole, penalty_of(), max_passes=3)
    with pytest.warns(UserWarning, match="short of tolerance"):
        assert passes.solve(0.05 * passes.largest, passes.zero()).evaluations <= 4


def test_no_weights_have_the_best_intercepts():
    """Of the logistic loss it is the logarithm of the odds; a column that is always 0 changes nothing."""
    Z, _ = problem(n_targets=1)
    Z[:, -1] = 0
    y = np.where(np.arange(len(Z)) < 50, 1.0, -1.0)[:, None]
    whole = moments_of(Z, y, shift=np.zeros(D), target_shift=np.zeros(1))
    start = LossProblem(LOSSES["logistic"](), chunks_of(Z, y), whole, penalty_of()).zero()
    assert not start.coef.any()
    np.testing.assert_allclose(start.intercept, np.log(50 / 150), rtol=1e-4)


def test_passes_end_at_the_minimum_for_rows_that_are_not_centred():
    """The conditions hold for rows as they are, their mean three times their spread and no shift taken off."""
    loss = LOSSES["logistic"]()
    Z, Y = problem(scale=0.1)
    Y = targets_for(loss, Y)
    whole = moments_of(Z, Y, shift=np.zeros(D), target_shift=np.zeros(Y.shape[1]))
    passes = LossProblem(loss, chunks_of(Z, Y), whole, penalty_of())
    alpha = 0.2 * passes.largest
    solution = passes.solve(alpha, passes.zero())
    assert solution.coef.any()
    assert residual(loss, Z, Y, solution, penalty_of(), alpha) < 1e-5


@pytest.mark.parametrize("shared", [False, True])
def test_the_best_weights_of_a_group_meet_their_equation(shared):
    """H w - v + level w / |w| = 0 for the group that was swept last, to rounding, from any length to begin with."""
    rng = np.random.default_rng(0)
    Z, V = rng.standard_normal((40, 9)), 30 * rng.standard_normal((9, 3))
    H, groups = Z.T @ Z, [[8, 0, 3], [1, 2, 7], [4, 5, 6]]  # no group has its columns side by side
    penalty = L21(2.0, groups, 9, shared=shared)
    last = groups[1]
    for guess in (1e-3, 0.4, 50.0):
        W = GroupQuadratic(H, penalty).sweep(np.full((9, 3), guess), V, penalty, np.array([0, 1]), times=1)
        lengths = np.linalg.norm(W[last]) if shared else np.linalg.norm(W[last], axis=0)
        np.testing.assert_allclose((H @ W + 2.0 * W / lengths)[last], V[last], rtol=1e-11)
        assert np.all(W[groups[2]] == guess)  # not active


def test_the_least_strength_without_weights():
    """The largest |Vc_g| of a group and target, over sqrt(n_g) and the rows for the strengths of scikit-learn."""
    Z, Y = problem()
    moments, groups = moments_of(Z, Y), penalty_of().members
    V = (Z - Z.mean(axis=0)).T @ (Y - Y.mean(axis=0))
    expected = max(np.linalg.norm(V[g], axis=0).max() for g in groups)
    assert SquareProblem(moments, penalty_of()).largest == pytest.approx(expected, rel=1e-12)
    groups = [np.arange(7), np.arange(7, D)]
    rooted = max(np.linalg.norm(V[g], axis=0).max() / len(g) ** 0.5 for g in groups)
    assert largest_group_alpha(moments, groups) == pytest.approx(rooted / len(Z), rel=1e-12)


def test_both_halves_of_a_scatter_of_many_features():
    Z = np.random.default_rng(0).standard_normal((20, 600))
    centred = Z - Z.mean(axis=0)
    scatter = full_scatter(moments_of(Z, Z[:, :1]))
    np.testing.assert_allclose(scatter, centred.T @ centred, rtol=1e-9, atol=1e-9)


def test_kernels_of_a_path_that_some_target_uses():
    weights = np.array([[[0.0, 0.0, 0.0]], [[0.0, 2.0, 0.0]], [[1.0, 2.0, 0.0]]])
    path = KernelPath(np.array([3.0, 2.0, 1.0]), weights, np.zeros(3), np.zeros(3), 2)
    assert path.n_used.tolist() == [0, 1, 2]
