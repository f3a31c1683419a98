"""Loops over slices of rows: complete, in order, without deadlock."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from chimap import HistogramClassifier, _threads, chi2
from chimap.fit import fit

from .histograms import histograms


def covered(n_rows: int) -> list[int]:
    parts = _threads.over_rows(n_rows, 10**6, lambda rows: list(range(n_rows))[rows])
    return [i for part in parts for i in part]


@pytest.mark.parametrize("n_rows", [1, 2, 7, 1000])
def test_slices_cover_all_rows_in_order(n_rows):
    assert covered(n_rows) == list(range(n_rows))


def test_no_rows():
    assert covered(0) == []


def test_a_call_from_within_a_slice_does_not_wait_for_itself():
    def outer(rows):
        return sum(len(part) for part in _threads.over_rows(50, 10**6, lambda inner: range(50)[inner]))

    assert set(_threads.over_rows(100, 10**6, outer)) == {50}


def test_several_threads_at_once():
    X = histograms(300, 200, seed=1)
    expected = chi2(X)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: chi2(X), range(8)):
            np.testing.assert_array_equal(found, expected)


def gram_sum(seed: int) -> float:
    return float(chi2(histograms(300, 200, seed)).sum())


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork():
    expected = gram_sum(3)  # the pool of the parent has threads now; the child has not
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(gram_sum, (3,)).get(timeout=60) == pytest.approx(expected)


def test_limit_of_threads():
    with _threads.threads(1):
        assert _threads.count() == 1
        assert len(_threads.over_rows(100, 10**6, lambda rows: rows)) == 1
    assert _threads.count() == _threads.available()


def test_zero_threads_is_refused():
    with pytest.raises(ValueError, match="n_jobs must not be 0"), _threads.threads(0):
        pass


def test_an_error_in_a_slice_comes_out():
    def fail(rows):
        raise RuntimeError("in a slice")

    with pytest.raises(RuntimeError, match="in a slice"):
        _threads.over_rows(100, 10**6, fail)


def test_products_on_one_thread_are_not_limited_again(monkeypatch):
    """Setting the limit takes longer than a small product."""
    limited = []
    controller = _threads._controller()
    monkeypatch.setattr(_threads, "_controller", lambda: limited.append(1) or controller)
    with _threads.threads(1):
        limited.clear()
        assert _threads.tasks([1, 2], lambda i: 2 * i) == [2, 4]
        assert not limited
    with _threads.threads(2):
        limited.clear()
        _threads.tasks([1, 2], lambda i: 2 * i)
        assert limited


def blas_threads() -> set[int]:
    pools = ThreadpoolController().select(user_api="blas").lib_controllers
    return {pool.num_threads for pool in pools}


def test_a_limit_is_of_blas_too_and_ends_with_the_block():
    before = blas_threads()
    with _threads.threads(3):
        assert blas_threads() == {3}
    assert blas_threads() == before


def test_libraries_are_looked_for_once_and_again_after_an_import(monkeypatch):
    """Looking takes longer than to predict a row."""
    controller = _threads._controller()
    assert _threads._controller() is controller
    monkeypatch.setitem(sys.modules, "a_module_with_a_library", sys)
    assert _threads._controller() is not controller


@pytest.mark.parametrize(("n_jobs", "n_rows", "expected"), [(1, 320, 1), (None, 320, None), (None, 60, 1), (2, 60, 2)])
def test_all_of_a_fit_runs_on_the_threads_that_suit_it(monkeypatch, n_jobs, n_rows, expected):
    """The race too; a few rows take one thread unless more are asked for."""
    monkeypatch.setattr(_threads, "available", lambda: 3)
    seen = []
    race = fit.race
    monkeypatch.setattr(fit, "race", lambda *given: (seen.append(_threads.count()), race(*given))[1])
    rng = np.random.default_rng(0)
    model = HistogramClassifier("hellinger", n_jobs=n_jobs)
    model.fit(rng.random((n_rows, 4)), np.arange(n_rows) % 2)
    assert seen == [expected or 3]
