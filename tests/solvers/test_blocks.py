"""Machines solved block by block, against the factor of the whole matrix and against machines fitted without rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from chimap._progress import Progress
from chimap._validation import DataError
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.solvers.block_kernel import block_kernel
from chimap.solvers.blocks import BlockRidge
from chimap.solvers.sweep import Sweep

N, ALPHA = 240, 0.3
RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(12), N)
Y = np.column_stack([np.sin(6 * X[:, 0]) + X[:, 1], X[:, 2] > X[:, 3]]).astype(float)
WEIGHTS = RNG.uniform(0.5, 3, N)
BLOCKS = [slice(0, 80), slice(80, 170), slice(170, N)]
KERNELS = ["exp-chi2", "gaussian", "minmax", "chi2"]


def fitted(kernel="exp-chi2"):
    return ExactFeatures(kernel, n_terms=3, random_state=0).fit(X)


def machine(kernel="exp-chi2", weights=None, alpha=ALPHA, core=0):
    return of_features(fitted(kernel), weights, alpha, core)


def of_features(features, weights=None, alpha=ALPHA, core=0, rows=slice(None), dtype="float64"):
    chosen = None if weights is None else weights[rows]
    kernel = block_kernel(features, 90 + core, np.dtype(dtype))
    intercept, is_lifted = Y.mean(axis=0), features.is_centred
    return BlockRidge(kernel, Y[rows], chosen, alpha, intercept, core, is_lifted=is_lifted)


def gram(features, n=N):
    square = np.zeros((n, n))
    diagonal = features.gram_into(square)
    below = np.tril(square, -1)
    return below + below.T + np.diag(diagonal)


def swept(ridge, blocks=BLOCKS, sweeps=1):
    for _ in range(sweeps):
        for block in blocks:
            ridge.learn(block)
    return ridge


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("core", [0, 30])
def test_sweeps_converge_to_the_solution_of_the_whole_matrix(kernel, weights, core):
    alpha = 10.0  # of strongly coupled blocks: at ALPHA the same takes a thousand sweeps
    ridge = swept(machine(kernel, weights, alpha, core), sweeps=60)
    noise = alpha / (np.ones(N) if weights is None else weights)
    K = gram(fitted(kernel)) + ridge.lift
    whole = np.linalg.solve(K + np.diag(noise), Y - Y.mean(axis=0))
    assert np.abs(ridge.weights - whole).max() < 1e-5 * np.abs(whole).max()
    assert np.allclose(ridge.outputs(slice(0, N)), K @ whole + Y.mean(axis=0), atol=1e-6)


def test_each_step_lowers_the_objective():
    ridge = machine()
    K, R = gram(fitted()) + ALPHA * np.eye(N), Y - Y.mean(axis=0)

    def phi():
        return float((ridge.weights * (K @ ridge.weights / 2 - R)).sum())

    values = [phi()]
    for block in BLOCKS * 2:
        ridge.learn(block)
        values.append(phi())
    assert (np.diff(values) < 0).all()


def test_outputs_before_a_block_is_learned_are_those_of_a_machine_without_its_rows():
    ridge = swept(machine(), BLOCKS[:2])
    seen = slice(0, BLOCKS[1].stop)
    K = gram(fitted())
    expected = K[BLOCKS[2], seen] @ ridge.weights[seen] + Y.mean(axis=0)
    before = ridge.outputs(BLOCKS[2])
    assert np.allclose(before, expected, atol=1e-10)
    assert np.allclose(ridge.learn(BLOCKS[2]), before, atol=1e-10)
    assert not np.allclose(ridge.outputs(BLOCKS[2]), before, atol=1e-3)


@pytest.mark.parametrize("core", [0, 30])
def test_what_a_step_adds_to_the_outputs_of_rows_to_come(core):
    for kernel in ("exp-chi2", "chi2"):
        ridge, watched = machine(kernel, core=core), slice(170, N)
        ridge.learn(BLOCKS[0])
        of_others = ridge.outputs(watched) - ridge.intercept
        ridge.learn(BLOCKS[1])
        of_others += ridge.change_of_outputs(watched)
        np.testing.assert_allclose(of_others, ridge.outputs(watched) - ridge.intercept, atol=1e-9)


@pytest.mark.parametrize("core", [0, 30])
def test_a_step_in_full_leaves_no_residual_in_its_block_and_in_the_core(core):
    ridge = swept(machine(core=core), BLOCKS[:2])
    residuals = Y - ridge.outputs(slice(0, N)) - ALPHA * ridge.weights
    settled = np.r_[np.arange(core), np.arange(BLOCKS[1].start, BLOCKS[1].stop)]
    assert np.abs(residuals[settled]).max() < 1e-9
    assert np.abs(np.delete(residuals, settled, axis=0)).max() > 1e-3


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_the_length_of_a_step_is_the_best_for_the_rows_to_come(weights):
    ridge = swept(machine(weights=weights, core=30), BLOCKS[:2])
    full, last = ridge.weights.copy(), BLOCKS[2]
    step = np.zeros(full.shape)
    step[np.r_[:30, 80:170]] = ridge.step
    errors, w = [], np.ones((N, 1)) if weights is None else weights[:, None]
    lengths = np.linspace(0, 1, 1001)
    for length in lengths:
        ridge.weights[:] = full - (1 - length) * step
        errors.append(float(np.sum(w[last] * (Y[last] - ridge.outputs(last)) ** 2)))
    ridge.weights[:] = full
    assert ridge.lengths == []
    ridge.learn(last)
    assert 0 < ridge.length < 1
    assert ridge.length == pytest.approx(lengths[np.argmin(errors)], abs=1e-3)
    # what is left in the core, which the next step begins from
    noise = ALPHA / (np.ones(N) if weights is None else weights)
    residuals = Y - ridge.outputs(slice(0, N)) - noise[:, None] * ridge.weights
    assert np.allclose(residuals[:30], ridge.core_residuals, atol=1e-9)


def test_one_sweep_of_noisy_rows_predicts_better_by_lengths_than_by_full_steps(monkeypatch):
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(12), 1500)
    y = (np.sin(6 * rows[:, 0]) + rows[:, 1] + 0.3 * rng.standard_normal(1500))[:, None]
    features = ExactFeatures("exp-chi2", random_state=0).fit(rows)

    def error():
        ridge = BlockRidge(block_kernel(features, 140, np.dtype("float64")), y, None, 0.05, y.mean(axis=0), 40)
        for start in range(0, 1200, 100):
            ridge.learn(slice(start, start + 100))
        return float(
            np.mean((np.sin(6 * rows[1200:, 0]) + rows[1200:, 1] - ridge.outputs(slice(1200, 1500))[:, 0]) ** 2)
        )

    by_lengths = error()
    monkeypatch.setattr(BlockRidge, "_learn_length", lambda *_: None)
    assert by_lengths < 0.7 * error()


def test_a_core_brings_one_sweep_nearer_to_the_solution():
    K = gram(fitted())
    whole = K @ np.linalg.solve(K + ALPHA * np.eye(N), Y - Y.mean(axis=0)) + Y.mean(axis=0)
    errors = [np.linalg.norm(swept(machine(core=core)).outputs(slice(0, N)) - whole) for core in (0, 15, 60)]
    assert errors[2] < 0.6 * errors[0]
    assert errors[2] < errors[1] < errors[0]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("core", [0, 30])
def test_rows_of_the_last_block_are_left_out_as_if_they_had_not_been_there(weights, core, monkeypatch):
    monkeypatch.setattr(BlockRidge, "_learn_length", lambda self, *_: self.lengths.append(0.6))  # whatever the rows are
    ridge = swept(machine(weights=weights, core=core))
    last, first = BLOCKS[2], 50
    left_out = ridge.outputs_left_out(ridge.left_out(first), first)
    features = fitted()
    for row in (first, 63, last.stop - last.start - 1):
        rows = np.delete(np.arange(N), last.start + row)
        without = of_features(features.take(rows), weights, core=core, rows=rows)
        swept(without, [BLOCKS[0], BLOCKS[1], slice(170, N - 1)])
        output = gram(features)[last.start + row, rows] @ without.weights + Y.mean(axis=0)
        assert np.allclose(left_out[row - first], output, atol=1e-8)


def test_groups_of_the_last_block_are_left_out_together(monkeypatch):
    monkeypatch.setattr(BlockRidge, "_learn_length", lambda self, *_: self.lengths.append(0.6))  # whatever the rows are
    ridge = swept(machine(core=30))
    groups = [np.arange(0, 7), np.arange(7, 30)]
    left_out = ridge.outputs_left_out(ridge.left_out_together(groups), 0)
    assert np.isnan(left_out[30:]).all()
    rows = np.delete(np.arange(N), np.arange(177, 200))
    without = of_features(fitted().take(rows), core=30, rows=rows)
    swept(without, [BLOCKS[0], BLOCKS[1], slice(170, N - 23)])
    outputs = gram(fitted())[177:200][:, rows] @ without.weights + Y.mean(axis=0)
    assert np.allclose(left_out[7:30], outputs, atol=1e-8)


def test_blocks_of_columns_add_up():
    columns = [slice(0, 6), slice(4, 12)]
    features = ExactBlocks([ExactFeatures("exp-chi2", n_terms=2), ExactFeatures("gaussian")], columns).fit(X)
    ridge = of_features(features, alpha=10.0)
    swept(ridge, sweeps=60)
    whole = np.linalg.solve(gram(features) + 10.0 * np.eye(N), Y - Y.mean(axis=0))
    assert np.abs(ridge.weights - whole).max() < 1e-5 * np.abs(whole).max()


def test_equal_rows_are_solved_with_a_strength_above_the_rounding():
    rows = np.repeat(X[:60], 4, axis=0).astype(np.float32)
    features = ExactFeatures("exp-chi2").fit(rows)
    ridge = of_features(features, alpha=1e-9, dtype="float32")
    swept(ridge)
    assert np.isfinite(ridge.weights).all()


def test_a_block_that_is_singular_to_rounding_is_refused():
    rows = np.repeat(X[:1], N, axis=0).astype(np.float32) * 1e-3
    features = ExactFeatures("gaussian", gamma=1.0).fit(rows)
    ridge = of_features(features, alpha=1e-30, dtype="float32")
    with pytest.raises(DataError, match=r"alpha=1e-30 is too small: the kernel matrix of rows 0 to 80 is singular"):
        ridge.learn(BLOCKS[0])


@pytest.mark.parametrize(("seconds", "n_learned"), [([1, 2, 3, 4], 4), ([5, 1, 5, 1], 2)])
def test_no_block_is_begun_that_may_end_after_the_limit(seconds, n_learned, monkeypatch):
    """Seconds grow with the rows, but every other block may have the factors of two to wait for."""
    clock, limit = SimpleNamespace(now=0.0), 10.5
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("chimap.solvers.sweep.time", clock)

    class Slow:
        latest, n_seen, alpha = None, 100, 1.0

        def adopt(self, begun):
            pass

        def learn(self, block):
            clock.now += seconds.pop(0)
            self.n_seen = block.stop
            return np.zeros((block.stop - block.start, 1))

    rows = SimpleNamespace(Y=np.zeros((160, 1)), score=SimpleNamespace(name="r2"), score_if_any=lambda *_: 0.0)
    begun = SimpleNamespace(borders=[0, *range(100, 161, 10)], held_out=np.zeros((100, 1)), scores=[], open=())
    sweep = Sweep(Slow(), rows, begun, Progress(), limit)
    sweep.run()
    assert sweep.n_seen == 100 + 10 * n_learned
    assert clock.now <= limit


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_variances_of_groups_that_are_left_out(weights):
    """Those of a Gaussian process on the other rows of the block, in units of the noise over the strength."""
    ridge = machine(weights=weights)
    ridge.learn(BLOCKS[0])
    rows = np.arange(80)
    groups = [rows[:7], rows[7:8], rows[8:]]
    noise = ALPHA / (np.ones(N) if weights is None else weights)
    K = gram(fitted())[:80, :80] + ridge.lift + np.diag(noise[:80])
    expected = []
    for group in groups:
        rest = np.setdiff1d(rows, group)
        between = K[np.ix_(group, rest)]
        left = K[np.ix_(group, group)] - between @ np.linalg.solve(K[np.ix_(rest, rest)], between.T)
        expected.append(left.diagonal())
    np.testing.assert_allclose(ridge.variances(groups), np.concatenate(expected), rtol=1e-8)
