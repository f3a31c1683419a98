"""Machines in blocks on a device of torch: what computes makes no difference."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._validation import DataError
from chimap.backends import backend_of
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.solvers.block_kernel import block_kernel
from chimap.solvers.blocks import BlockRidge

torch = pytest.importorskip("torch", reason="the path of devices is tested where torch is installed")

from chimap.backends.torch import TorchFactor, TorchRows, Uploads  # noqa: E402

from ..torch_backend import compute_cpu_0_by_torch, torch_device  # noqa: E402

N = 300
RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.full(30, 0.2), N)
Y = np.column_stack([np.sin(6 * X[:, 0]) + X[:, 1], X[:, 2] > X[:, 3]]).astype(float)
WEIGHTS = RNG.uniform(0.5, 3, N)
BLOCKS = [slice(0, 110), slice(110, 200), slice(200, N)]
GROUPS = [np.array([5, 4]), np.arange(0, 3), np.arange(10, 60), np.arange(60, 100)]
IS_RARE = (np.arange(N)[:, None] % 17 > 0) & (np.arange(30) < 9)  # columns of few entries are not stored dense
SPARSE = sp.csr_matrix(np.where((X > 0.02) & ~IS_RARE, X, 0))
COLUMNS = [slice(0, 16), slice(12, 30)]
FEATURES = {
    "exponential": lambda: ExactFeatures("exp-chi2").fit(X),
    "gaussian": lambda: ExactFeatures("gaussian").fit(X),
    "products": lambda: ExactFeatures("chi2", n_terms=3).fit(X),
    "linear": lambda: ExactFeatures("linear").fit(X),
    "sparse": lambda: ExactFeatures("exp-chi2").fit(sp.csr_matrix(SPARSE)),
    "sparse products": lambda: ExactFeatures("chi2").fit(sp.csr_matrix(SPARSE)),
    "blocks of columns": lambda: ExactBlocks(
        [ExactFeatures("exp-chi2", n_terms=2), ExactFeatures("gaussian", gamma=3.0)], COLUMNS
    ).fit(X),
    "blocks of products": lambda: ExactBlocks([ExactFeatures("chi2"), ExactFeatures("linear")], COLUMNS).fit(X),
    "float32": lambda: ExactFeatures("exp-chi2").fit(X.astype(np.float32)),
}
every_kernel = pytest.mark.parametrize("make", FEATURES.values(), ids=FEATURES)


@pytest.fixture(autouse=True)
def _torch_by_its_own_name_of_the_cpu(monkeypatch):
    compute_cpu_0_by_torch(monkeypatch)


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Let tiles, pieces and steps be smaller than the rows, as they are on a device."""
    for name, size in (("_TILE", 1), ("_SUMMED", 32), ("_PIECE", 10_000), ("_STEP", 48)):
        monkeypatch.setattr(f"chimap.backends.torch.{name}", size)


def precision(features):
    rows = features.summands[0][0]
    return rows.squares.dtype


def machine(features, device, weights=None, core=0, alpha=0.1):
    kernel = block_kernel(features, 150, precision(features), device)
    return BlockRidge(kernel, Y, weights, alpha, Y.mean(axis=0), core, is_lifted=features.is_centred)


def assert_close(there, here, features):
    atol = 1e-9 if precision(features) == np.float64 else 1e-4
    np.testing.assert_allclose(there, here, rtol=0, atol=atol * (1 + np.nanmax(np.abs(here))))


@every_kernel
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("core", [0, 40])
def test_every_step_of_a_sweep_is_that_of_the_host(make, weights, core):
    features = make()
    here, there = (machine(features, device, weights, core) for device in ("cpu", "cpu:0"))
    for block in BLOCKS:
        before = here.outputs(block)
        assert_close(there.outputs(block), before, features)
        here.learn(block)
        there.learn(block)
        assert_close(there.outputs(block), here.outputs(block), features)
    assert_close(there.intercept, here.intercept, features)
    assert_close(there.left_out(20), here.left_out(20), features)
    assert_close(there.left_out_together(GROUPS), here.left_out_together(GROUPS), features)
    assert np.isnan(there.left_out_together(GROUPS)[6:10]).all()


def test_a_changed_gamma_is_taken():
    features = ExactFeatures("exp-chi2").fit(X)
    here, there = (machine(features, device) for device in ("cpu", "cpu:0"))
    for octaves in (0, 3):
        features.set_octaves(octaves)
        for ridge in (here, there):
            ridge.learn(BLOCKS[0])
    assert_close(there.outputs(BLOCKS[1]), here.outputs(BLOCKS[1]), features)


def test_equal_rows_are_solved_with_a_strength_above_the_rounding():
    rows = np.repeat(X[:75], 4, axis=0).astype(np.float32)
    features = ExactFeatures("exp-chi2").fit(rows)
    there = machine(features, "cpu:0", alpha=1e-9)
    for block in BLOCKS:
        there.learn(block)
    assert np.isfinite(there.weights).all()


def test_a_block_that_is_singular_to_rounding_is_refused():
    rows = np.repeat(X[:1], N, axis=0).astype(np.float32) * 1e-3
    features = ExactFeatures("gaussian", gamma=1.0).fit(rows)
    with pytest.raises(DataError, match="alpha=1e-30 is too small: the kernel matrix of rows 0 to 110"):
        machine(features, "cpu:0", alpha=1e-30).learn(BLOCKS[0])


def test_a_kernel_without_a_map_has_no_form_there():
    features = ExactFeatures("minmax").fit(X)
    with pytest.raises(TypeError, match="without a map has no form for a device"):
        backend_of("cpu:0").block_kernel(features)
    assert ExactBlocks([ExactFeatures("chi2"), ExactFeatures("minmax")], COLUMNS).fit(X).summands is None


def test_entries_in_columns_that_training_rows_lack_add_to_distances_alone():
    # 22 columns are stored, and with two more they fill a row
    features = ExactFeatures("gaussian").fit(sp.csr_matrix(np.where(np.arange(30) < 8, 0, X)))
    there = backend_of("cpu:0").block_kernel(features)
    rows = sp.csr_matrix(X[:20])
    assert rows[:, 4].nnz > 10
    assert_close(there.outputs(rows, there.upload(Y)), features.outputs(rows, Y), features)


def test_equal_rows_are_no_closer_than_equal():
    rows = np.repeat(1e3 + X[:60], 5, axis=0).astype(np.float32)
    features = ExactFeatures("gaussian", gamma=50.0).fit(rows)
    there = backend_of("cpu:0").block_kernel(features)
    assert there.outputs(rows, there.upload(np.eye(N))).max() == 1


def test_strengths_below_the_rounding_of_the_diagonal_count():
    K = RNG.random((60, 200)).astype(np.float32)
    K = K @ K.T
    diagonal, right, row_weights = K.diagonal() + 1e-7, RNG.random((60, 2)), WEIGHTS[:60]
    upload = Uploads(torch_device())
    factor = TorchFactor(upload(K.copy()), diagonal, row_weights, upload)
    assert factor.factorise(1e-3)
    A = K.astype(np.float64)
    A[np.diag_indices(60)] = diagonal + 1e-3 / row_weights
    solution = factor.solve_for(right, 5)
    assert np.abs(A @ solution - right).max() < 1e-9
    assert not factor.factorise(-1e4)
    factor.lift(0.5)
    assert factor.factorise(1e-3)
    assert np.abs((A + 0.5) @ factor.solve_for(right, 5) - right).max() < 1e-5


def test_products_are_in_full_precision_whatever_the_program_asked_for(monkeypatch):
    seen = []
    for owner, name in ((TorchRows, "values"), (TorchFactor, "_solve"), (TorchFactor, "_product")):
        monkeypatch.setattr(owner, name, noting(seen, getattr(owner, name)))
    torch.set_float32_matmul_precision("medium")
    try:
        ridge = machine(FEATURES["float32"](), "cpu:0")
        for block in BLOCKS:
            ridge.learn(block)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert len(seen) > 10
    assert set(seen) == {"highest"}


def noting(seen, method):
    def noted(*arguments):
        seen.append(torch.get_float32_matmul_precision())
        return method(*arguments)

    return noted
