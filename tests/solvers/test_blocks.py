"""Machines solved block by block, against the factor of the whole matrix and against machines fitted without rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from chimap._progress import Progress
from chimap._validation import DataError
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.solvers.block_kernel import block_kernel
from chimap.solvers.blocks import BlockRidge, Sweep
from chimap.solvers.exact import DualRidge

N, ALPHA = 240, 0.3
RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(12), N)
Y = np.column_stack([np.sin(6 * X[:, 0]) + X[:, 1], X[:, 2] > X[:, 3]]).astype(float)
WEIGHTS = RNG.uniform(0.5, 3, N)
BLOCKS = [slice(0, 80), slice(80, 170), slice(170, N)]
KERNELS = ["exp-chi2", "gaussian", "minmax", "chi2"]


def fitted(kernel="exp-chi2"):
    return ExactFeatures(kernel, n_terms=3, random_state=0).fit(X)


def machine(kernel="exp-chi2", weights=None, alpha=ALPHA, core=0, is_open=False):
    return of_features(fitted(kernel), weights, alpha, core, is_open=is_open)


def of_features(features, weights=None, alpha=ALPHA, core=0, rows=slice(None), dtype="float64", is_open=False):
    chosen = None if weights is None else weights[rows]
    kernel = block_kernel(features, 90 + core, np.dtype(dtype))
    intercept, is_lifted = Y.mean(axis=0), features.is_centred
    return BlockRidge(kernel, Y[rows], chosen, alpha, intercept, core, is_lifted=is_lifted, is_open=is_open)


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


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_how_a_step_changes_with_the_strength(kernel, weights):
    def after(alpha):
        ridge = machine(kernel, weights, core=30, is_open=True)
        ridge.learn(BLOCKS[0])
        ridge.alpha = alpha
        ridge.learn(BLOCKS[1])
        return ridge

    above, below = (after(ALPHA * (1 + share)).step for share in (1e-5, -1e-5))
    np.testing.assert_allclose(after(ALPHA).step_by_strength, (below - above) / (2e-5 * ALPHA), rtol=1e-3, atol=1e-5)


THIRDS = [slice(start, start + 300) for start in (0, 300, 600)]


def too_strong(weights=None, **settings):
    """A machine of 900 rows whose strength, of the first block, is far too large, and the targets."""
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(12), 900)
    features = ExactFeatures("exp-chi2", random_state=0).fit(rows)
    y = np.sin(9 * rows[:, :1]) + 0.1 * rng.standard_normal((900, 1))
    kernel = block_kernel(features, 400, np.dtype("float64"))
    return BlockRidge(kernel, y, weights, 10.0, y.mean(axis=0), 100, **settings), y


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 3, 900)], ids=["equal", "weighted"])
def test_a_strength_that_is_too_large_falls_if_it_was_left_open(weights):
    """The rows of the third block show that the step of the second was too smooth."""
    (kept, _), (falls, y) = (too_strong(weights, is_open=is_open) for is_open in (False, True))
    assert swept(kept, THIRDS).alpha == 10
    assert swept(falls, THIRDS).alpha == pytest.approx(10 / 10**0.5)
    noise = falls.alpha / (np.ones(900) if weights is None else weights)
    residuals = y - falls.outputs(slice(0, 900)) - noise[:, None] * falls.weights
    # what is left in the core, under the strength that now holds
    np.testing.assert_allclose(residuals[:100], falls.core_residuals, atol=1e-9)


@pytest.mark.parametrize(("size", "falls"), [(5, True), (20, False)])
def test_rows_of_a_group_tell_once_whether_a_strength_is_too_large(size, falls):
    """Groups of 5 rows make 50 parts of a block of 300 rows; 15 groups are too few to tell."""
    ridge, _ = too_strong(is_open=True, starts=np.arange(0, 900, size))
    assert (swept(ridge, THIRDS).alpha < 10) == falls


def test_parts_of_a_block_have_whole_groups():
    starts = np.unique(np.random.default_rng(0).integers(0, 900, 150))
    starts[0] = 300
    ridge, _ = too_strong(is_open=True, starts=np.unique(np.r_[0, 300, 600, starts]))
    edges = ridge._edges_of_parts(THIRDS[1])
    assert edges[0] == 0
    assert np.isin(edges + 300, ridge._starts).all()
    assert 20 <= edges.size <= 50


def test_a_strength_that_rounding_needs_stays(monkeypatch):
    factorise = DualRidge.factorise
    monkeypatch.setattr(DualRidge, "factorise", lambda self, alpha: alpha >= 10 and factorise(self, alpha))
    ridge, _ = too_strong(is_open=True)
    kept, _ = too_strong()
    swept(ridge, THIRDS)
    assert ridge.alpha == 10
    np.testing.assert_allclose(ridge.weights, swept(kept, THIRDS).weights)


def test_a_sweep_goes_on_after_its_strength_fell():
    (whole, _), (resumed, _) = (too_strong(is_open=True) for _ in range(2))
    parts = [*THIRDS[:2], slice(600, 820), slice(820, 900)]
    swept(whole, parts[:3])
    names = ("weights", "core_residuals", "lengths", "step", "step_by_strength", "alpha")
    begun = SimpleNamespace(**{name: np.array(getattr(whole, name)) for name in names})
    begun.weights = begun.weights[:820]
    resumed.adopt(begun)
    resumed.alpha = whole.alpha
    for ridge in (whole, resumed):
        ridge.learn(parts[3])
    assert whole.alpha < 10
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.alpha == whole.alpha


@pytest.mark.parametrize("seed", range(5))
def test_a_strength_that_suits_the_rows_stays(seed):
    """The targets are of a Gaussian process whose noise has the strength as its variance: no other one is better."""
    rng = np.random.default_rng(seed)
    features = ExactFeatures("exp-chi2", random_state=0).fit(rng.dirichlet(np.ones(12), 1000))
    y = np.linalg.cholesky(gram(features, 1000) + 0.5 * np.eye(1000)) @ rng.standard_normal((1000, 1))
    ridge = BlockRidge(block_kernel(features, 300, np.dtype("float64")), y, None, 0.5, np.zeros(1), 100, is_open=True)
    swept(ridge, [slice(start, start + 200) for start in range(0, 1000, 200)])
    assert ridge.alpha == 0.5


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
    monkeypatch.setattr(BlockRidge, "_left_at_best_length", lambda *_: None)
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
    monkeypatch.setattr(
        BlockRidge, "_left_at_best_length", lambda self, *_: self.lengths.append(0.6)
    )  # whatever the rows are
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
    monkeypatch.setattr(
        BlockRidge, "_left_at_best_length", lambda self, *_: self.lengths.append(0.6)
    )  # whatever the rows are
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
    monkeypatch.setattr("chimap.solvers.blocks.time", clock)

    class Slow:
        latest, n_seen, alpha = None, 100, 1.0

        def adopt(self, begun):
            pass

        def learn(self, block):
            clock.now += seconds.pop(0)
            self.n_seen = block.stop
            return np.zeros((block.stop - block.start, 1))

    rows = SimpleNamespace(Y=np.zeros((160, 1)), score=SimpleNamespace(name="r2"), score_if_any=lambda *_: 0.0)
    begun = SimpleNamespace(borders=[0, *range(100, 161, 10)], held_out=np.zeros((100, 1)), scores=[])
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
