"""Products of bfloat16 matrices, on views and on several threads, against float64."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from chimap import _onednn

needs_onednn = pytest.mark.skipif(not _onednn.multiplies(), reason="needs oneDNN, and a processor with bfloat16")


def halves(rng, *shape):
    """Random numbers that bfloat16 holds: the upper halves of float32, and float64."""
    values = rng.standard_normal(shape).astype(np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    return upper, (upper.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@needs_onednn
@pytest.mark.parametrize(("k", "m", "n"), [(1, 1, 1), (3, 5, 2), (200, 33, 70), (2048, 96, 130)])
def test_writes_the_product_or_adds_it_to_what_is_there(k, m, n):
    rng = np.random.default_rng(0)
    (A, wide_A), (B, wide_B) = halves(rng, k, m), halves(rng, k, n)
    before = rng.standard_normal((m, n)).astype(np.float32)
    out = before.copy()
    product = wide_A.T @ wide_B
    close = partial(np.testing.assert_allclose, rtol=0, atol=1e-5 * np.sqrt(k) * np.abs(product).max() + 1e-6)
    for rows in (A.T, np.ascontiguousarray(A.T)):  # column by column, and row by row
        _onednn.multiply(rows, B, out)
        close(out, product)
        out[:] = before
        _onednn.multiply(rows, B, out, add=True)
        close(out, before + product)


@needs_onednn
def test_takes_views_and_leaves_what_is_beside_them():
    rng = np.random.default_rng(1)
    wide, values = halves(rng, 50, 90)
    out = np.full((40, 64), 7, np.float32)
    _onednn.multiply(wide[:, 3:23].T, wide[:, 40:75], out[5:25, 9:44], add=True)
    expected = np.full((40, 64), 7.0)
    expected[5:25, 9:44] += values[:, 3:23].T @ values[:, 40:75]
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-4)


@needs_onednn
def test_threads_do_not_disturb_each_other():
    rng = np.random.default_rng(2)
    matrix, values = halves(rng, 300, 64)
    outs = np.zeros((40, 64, 64), np.float32)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda out: _onednn.multiply(matrix.T, matrix, out), outs))
    assert (outs == outs[0]).all()
    np.testing.assert_allclose(outs[0], values.T @ values, rtol=0, atol=1e-3)


@needs_onednn
def test_products_stay_on_their_thread_and_leave_the_number_for_others():
    library = _onednn.library()
    if not hasattr(library, "omp_get_max_threads"):
        pytest.skip("this oneDNN has one thread")
    library.omp_set_num_threads(3)
    matrix, _ = halves(np.random.default_rng(3), 400, 400)
    tasks = Path("/proc/self/task")
    threads = {*tasks.iterdir()} if tasks.exists() else None
    _onednn.multiply(matrix.T, matrix, np.zeros((400, 400), np.float32))
    assert library.omp_get_max_threads() == 3
    if threads is not None:
        assert {*tasks.iterdir()} <= threads


@needs_onednn
def test_threads_that_begin_together_share_one_engine(monkeypatch):
    for _ in range(50):
        monkeypatch.setattr(_onednn, "_engines", [])
        together = threading.Barrier(4)

        def engine(together=together):
            together.wait()
            return _onednn._engine().value

        with ThreadPoolExecutor(4) as pool:
            assert len({found.result() for found in [pool.submit(engine) for _ in range(4)]}) == 1


@needs_onednn
def test_what_is_no_longer_kept_is_destroyed():
    destroyed = []
    matmul = _onednn._Matmul(3, 4, 5, (4, 1), 5, 5, add=True)
    weakref.finalize(matmul, destroyed.append, True)
    names = []
    with pytest.MonkeyPatch.context() as patch:
        call = _onednn._call
        patch.setattr(_onednn, "_call", lambda name, *rest: names.append(name) or call(name, *rest))
        del matmul
        gc.collect()
    assert destroyed
    assert sorted(names) == sorted(
        ["primitive_destroy", "primitive_desc_destroy", "primitive_attr_destroy", "post_ops_destroy"]
        + 3 * ["memory_desc_destroy"]
    )


def test_a_processor_without_a_product_has_none(monkeypatch):
    def refuse(*shape, add):
        raise _onednn.OneDnnError("status 3")

    monkeypatch.setattr(_onednn, "_Matmul", refuse)
    monkeypatch.setattr(_onednn, "library", lambda: "there")
    assert _onednn.multiplies.__wrapped__() is False


@needs_onednn
def test_shapes_that_do_not_fit_are_refused():
    matrix = np.zeros((8, 4), np.uint16)
    with pytest.raises(ValueError, match=r"is \(4, 4\); got an array of \(4, 5\)"):
        _onednn.multiply(matrix.T, matrix, np.zeros((4, 5), np.float32))


def test_there_is_none_without_its_file(monkeypatch):
    _onednn.library.cache_clear()
    monkeypatch.setattr(_onednn, "_WHEEL", "no-such-wheel")
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    assert _onednn.library() is None
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: "libno-such-file.so")
    _onednn.library.cache_clear()
    assert _onednn.library() is None
    _onednn.library.cache_clear()
