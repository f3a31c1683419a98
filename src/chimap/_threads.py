"""Threads: compiled loops over slices of rows, on a pool that sleeps when it is idle."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from chimap._messages import Message

_GRAIN = 2**15  # numbers that a slice should hold to be worth waking a thread
_FEW_ROWS = 300
_SLICES = 4  # slices for each thread, so that a slow thread does not keep the others waiting

_limit: ContextVar[int | None] = ContextVar("chimap_threads", default=None)
# Calls from within a slice stay on its thread: waiting for the pool there could deadlock.
_inside = threading.local()
_MOST_THREADS = 2**15  # libraries take a C int; files may hold any number
Item = TypeVar("Item")
Result = TypeVar("Result")
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def available() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count() -> int:
    """Return the number of threads in use here: the limit of the innermost ``threads`` block, or all cores."""
    return _limit.get() or available()


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Limit compiled loops and BLAS to ``n_jobs`` threads in the block.

    -1 stands for all cores and -2 for all but one. None leaves the limit as it is.
    """
    if n_jobs == 0:
        raise ValueError(Message("{n_jobs} must not be 0: use a positive number of threads, or -1 for all cores."))
    if n_jobs is None:
        yield
        return
    wanted = min(max(1, n_jobs if n_jobs > 0 else available() + 1 + n_jobs), _MOST_THREADS)
    token = _limit.set(wanted)
    try:
        with _controller().limit(limits=wanted):
            yield
    finally:
        _limit.reset(token)


def suited(n_jobs: int | None, n_rows: int) -> int | None:
    """Return n_jobs, or 1 if it is None and there are so few rows that threads would wait longer than they work.

    Measured with 30 to 200 rows on two cores that other work shared, fits took 18 s on one thread and 244 s on two.
    """
    return 1 if n_jobs is None and n_rows <= _FEW_ROWS else n_jobs


def over_rows(n_rows: int, row_size: int, call: Callable[[slice], Result]) -> list[Result]:
    """Call ``call`` for slices that cover n_rows, on all threads, and return the results in the order of the slices.

    ``row_size`` is the number of values in a row: small work stays on this thread. Only calls that release the
    interpreter lock become faster, such as the loops of ``_loops``.
    """
    worth = min(n_rows, n_rows * max(1, row_size) // _GRAIN)
    workers = 1 if worth < 2 or getattr(_inside, "pool", False) else count()
    if workers == 1:
        return [call(slice(0, n_rows))]
    slices = min(workers * _SLICES, worth)
    edges = [n_rows * i // slices for i in range(slices + 1)]
    return list(_pool(workers).map(call, itertools.starmap(slice, itertools.pairwise(edges))))


def tasks(items: Iterable[Item], call: Callable[[Item], Result]) -> list[Result]:
    """Call ``call`` for each item, on all threads, and return the results in order.

    The products of a call stay on its thread: this is for work that is already split into products. Threads of BLAS
    wait for each other at every product, spinning, and a machine with anything else to do then loses most of its time
    there (measured: a factor of ten).
    """
    if getattr(_inside, "pool", False):
        return [call(item) for item in items]
    items = list(items)
    with blas_alone():
        if count() == 1 or len(items) < 2:
            return [call(item) for item in items]
        return list(_pool(count()).map(call, items))


@contextmanager
def blas_alone() -> Iterator[None]:
    """Keep products within the block on the thread that calls them; blocks may be nested."""
    if getattr(_inside, "pool", False) or getattr(_inside, "alone", False) or _limit.get() == 1:
        yield
        return
    _inside.alone = True
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _inside.alone = False


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep loops and products within the block on this thread: small ones end before two threads have met."""
    before = getattr(_inside, "pool", False)
    with blas_alone():
        _inside.pool = True
        try:
            yield
        finally:
            _inside.pool = before


def _controller() -> ThreadpoolController:
    """Return the controller of the loaded libraries.

    Finding the libraries takes longer than a small product. They are loaded with modules, so they are searched again
    when the number of modules has changed.
    """
    return _controller_of(len(sys.modules))


@lru_cache(maxsize=1)
def _controller_of(n_modules: int) -> ThreadpoolController:
    return ThreadpoolController()


def _pool(workers: int) -> ThreadPoolExecutor:
    # A forked child inherits the object but not its threads, so pools belong to a process.
    key = (os.getpid(), workers)
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(workers, thread_name_prefix="chimap", initializer=enter_pool)
    return _pools[key]


def enter_pool() -> None:
    """Mark this thread as one of a pool: compiled loops called on it stay on it."""
    _inside.pool = True
