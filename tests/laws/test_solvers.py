"""Every solver with every loss and penalty that it takes: optimality conditions, and a minimum found another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from chimap.engines.rows import RowsInMemory
from chimap.features.exact import ExactFeatures
from chimap.losses import CATALOGUE as LOSSES
from chimap.losses import Observed, Square
from chimap.moments import DealtFolds, FoldMoments
from chimap.moments.kept import KeptFeatures
from chimap.penalties import L21
from chimap.solvers.base import Evidence, KernelRows
from chimap.solvers.catalogue import SOLVERS
from chimap.solvers.groups import LossProblem, SquareProblem
from chimap.solvers.sparse import elastic_net

from ..references.proximal import ElasticNet, prox

N, D, T = 90, 7, 2
GROUPS = [slice(0, 3), [3, 5], [6, 4]]
WORDS = [*LOSSES, "hinge"]
PAIRS = [(name, word) for name, solver in SOLVERS.items() for word in WORDS if solver.supports(word)]


def data(domain):
    """Rows whose mean is far from zero, and targets that are not linear in them."""
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((N, D)) * np.linspace(0.5, 2, D) + 4
    Y = np.tanh(Z[:, :T] - 4 + 0.5 * rng.standard_normal((N, T))) + 0.3
    return Z, {"sign": np.sign, "real": np.copy, "count": np.abs}[domain](Y)


def evidence_of(Z, Y):
    """All that a solver may need, of the same rows; features and targets of the passes are less their shifts."""
    shift = Z[:8].mean(axis=0)
    moments = FoldMoments(1, D, T, shift, np.zeros(T), np.dtype(float))
    moments.add_shifted(0, np.ascontiguousarray(Z - shift), Y)
    moments.release_buffers()
    rows = RowsInMemory(np.array([N]), D, T, np.dtype(float))
    rows.put(0, Z - shift, Y)
    kept = KeptFeatures(DealtFolds(1, 0))
    kept.put(Z, Y, 0)
    features = ExactFeatures("linear").fit(Z)
    kernel = KernelRows(features, np.arange(N), None, Y, np.zeros(T), None, NoScore(), np.dtype(float))
    borders = np.array([0, N])  # one block: a sweep over several ends near the minimum
    return Evidence(moments, rows, kept, kernel, borders, N)


def in_features(solver, solution, evidence):
    """Weights and intercepts of the features; those of exact machines are of the rows."""
    if not solver.leaves_out:
        return solution.coef, solution.intercept
    model = evidence.kernel.features.simplified(solution.coef, solution.intercept)
    return model.coef, model.intercept


class NoScore:
    """Of rows that nobody scores."""

    name = "none"

    def __call__(self, outputs, rows):
        return float("nan")


def smooth(loss, Z, Y, W, b):
    """sum loss(y, z'w + b), with its gradients in W and b."""
    scores = Z @ W + b
    slopes = loss.gradient(Y, scores)
    return float(loss.value(Y, scores).sum()), Z.T @ slopes, slopes.sum(axis=0)


def minimum(loss, Z, Y, alpha, is_free=True):
    """The least objective with alpha/2 |w|^2, by scipy from another start, on the rows themselves.

    The intercept is free, or 0.
    """
    D = Z.shape[1]

    def objective(x):
        W, b = x[: D * T].reshape(D, T), is_free * x[D * T :]
        value, in_weights, in_intercept = smooth(loss, Z, Y, W, b)
        gradient = np.concatenate([(in_weights + alpha * W).ravel(), is_free * in_intercept])
        return value + alpha / 2 * np.square(W).sum(), gradient

    found = minimize(
        objective,
        np.full(D * T + T, 0.1),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return found.fun


def hinge_maximum(Z, y, alpha, intercept):
    """The largest dual of the hinge, a quadratic on a box, by scipy; a free intercept cuts the box by a plane."""
    rows = y[:, None] * np.column_stack([Z, np.full(N, float(intercept))])

    def negative(a):
        w = rows.T @ a / alpha
        return alpha / 2 * w @ w - a.sum(), rows @ w - 1

    plane = () if intercept else {"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y}
    found = minimize(
        negative,
        np.zeros(N),
        jac=True,
        bounds=[(0, 1)] * N,
        constraints=plane,
        method="L-BFGS-B" if intercept else "SLSQP",
        options={"maxiter": 20_000, "ftol": 1e-15} | ({"maxfun": 50_000, "gtol": 1e-9} if intercept else {}),
    )
    return -found.fun


def test_every_loss_has_a_solver_and_every_solver_a_loss():
    assert {word for _, word in PAIRS} == set(WORDS)
    of_gaps = {name for name, solver in SOLVERS.items() if solver.supports(Observed(Square()))}
    of_groups = {name for name, solver in SOLVERS.items() for word in LOSSES if solver.supports(word, L21)}
    assert {name for name, _ in PAIRS} | of_gaps | of_groups == set(SOLVERS)


@pytest.mark.parametrize("alpha", [0.3, 30.0])
@pytest.mark.parametrize(("name", "word"), PAIRS)
def test_the_ridge_penalty(name, word, alpha):
    solver = SOLVERS[name]
    Z, Y = data("sign" if word == "hinge" else LOSSES[word].domain)
    evidence = evidence_of(Z, Y)
    problem = solver.problem(word, evidence)
    solution = problem.solve(alpha)
    W, b = in_features(solver, solution, evidence)
    assert (solution.alpha, problem.n_rows) == (alpha, N)
    if word == "hinge":
        for t, y in enumerate(Y.T):
            penalised = W[:, t] @ W[:, t] + (b[t] ** 2 if name == "liblinear" else 0)
            primal = alpha / 2 * penalised + np.maximum(1 - y * (Z @ W[:, t] + b[t]), 0).sum()
            gap = primal - hinge_maximum(Z, y, alpha, name == "liblinear")
            assert 0 <= gap + 1e-6 * primal <= 2e-3 * primal
        return
    if name == "liblinear squared":  # the intercept is the weight of a constant feature of 1, penalised as the others
        A, V = np.column_stack([Z, np.ones(N)]), np.vstack([W, b])
        value = smooth(problem.loss, A, Y, V, 0)[0] + alpha / 2 * np.square(V).sum()
        assert value == pytest.approx(minimum(problem.loss, A, Y, alpha, is_free=False), rel=1e-3)
        return
    value, in_weights, in_intercept = smooth(problem.loss, Z, Y, W, b)
    at_zero = np.abs(smooth(problem.loss, Z, Y, np.zeros((D, T)), np.zeros(T))[1]).max()
    assert np.abs(in_weights + alpha * W).max() < 2e-3 * at_zero
    assert np.abs(in_intercept).max() < 2e-3 * N
    least = minimum(problem.loss, Z, Y, alpha)
    assert value + alpha / 2 * np.square(W).sum() == pytest.approx(least, rel=1e-4)


def fixed_point(penalty, loss, Z, Y, W, b):
    """How far a proximal step moves W, over its largest weight or the step from zero: 0 at a minimum alone."""
    step = 1 / (loss.curvature * np.linalg.norm(Z, 2) ** 2)
    _, in_weights, in_intercept = smooth(loss, Z, Y, W, b)
    moved = np.abs(prox(penalty, W - step * in_weights, step) - W).max()
    return moved / step / np.abs(Z.T @ Y).max(), np.abs(in_intercept).max()


def proximal_minimum(penalty, loss, Z, Y):
    """The least objective by accelerated proximal gradients on centred rows, the intercept a step of its own."""
    mean = Z.mean(axis=0)
    A = np.column_stack([Z - mean, np.ones(N)])
    step = 1 / (loss.curvature * np.linalg.norm(A, 2) ** 2)
    W, b = np.zeros((D, T)), np.zeros(T)
    V, c, t = W, b, 1.0
    for _ in range(4000):
        _, in_weights, in_intercept = smooth(loss, Z - mean, Y, V, c)
        after, offset = prox(penalty, V - step * in_weights, step), c - step * in_intercept
        faster = (1 + np.sqrt(1 + 4 * t * t)) / 2
        V, c = after + (t - 1) / faster * (after - W), offset + (t - 1) / faster * (offset - b)
        W, b, t = after, offset, faster
    return smooth(loss, Z - mean, Y, W, b)[0] + penalty.value(W)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("word", [word for word, loss in LOSSES.items() if loss.domain != "count"])
def test_the_group_penalty(word, share, shared):
    loss = LOSSES[word]()
    Z, Y = data(loss.domain)
    evidence = evidence_of(Z, Y)
    whole, shift = evidence.moments.whole(), evidence.moments.shift
    empty = L21(1.0, GROUPS, D, [1.7, 1.4, 1.2], shared=shared)
    if word == "square":
        problem = SquareProblem(whole, empty)
    else:
        problem = LossProblem(loss, lambda at: evidence.rows.sums(at, [0]), whole, empty, warns=False)
    alpha = share * problem.largest
    solution = problem.solve(alpha, problem.zero())
    W, b = solution.coef, solution.intercept
    if word != "square":  # for features less the shifts
        b = b - shift @ W
    penalty = L21(alpha, GROUPS, D, [1.7, 1.4, 1.2], shared=shared)
    moved, in_intercept = fixed_point(penalty, loss, Z, Y, W, b)
    assert moved < 1e-5
    assert in_intercept < 1e-3 * N
    value = smooth(loss, Z, Y, W, b)[0] + penalty.value(W)
    assert value == pytest.approx(proximal_minimum(penalty, loss, Z, Y), rel=1e-5)
    assert (penalty.norms(W) == 0).any() == (share == 0.5)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_the_elastic_net(l1_ratio):
    loss = LOSSES["square"]()
    Z, Y = data("real")
    whole = evidence_of(Z, Y).moments.whole()
    path = elastic_net(whole, np.array([0.2, 0.02]), l1_ratio)
    for alpha, solution in zip(path.alphas * N, path.solutions, strict=True):
        penalty = ElasticNet(alpha * l1_ratio, alpha * (1 - l1_ratio))
        moved, in_intercept = fixed_point(penalty, loss, Z, Y, solution.coef, solution.intercept)
        assert moved < 1e-4
        assert in_intercept < 1e-6 * N
        value = smooth(loss, Z, Y, solution.coef, solution.intercept)[0] + penalty.value(solution.coef)
        assert value == pytest.approx(proximal_minimum(penalty, loss, Z, Y), rel=1e-4)
