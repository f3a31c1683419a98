"""Work on images by several threads, results in order, no more in memory than the threads are busy with."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

from chimap import _threads

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # items a thread, so that one slow image does not stop the others


def in_order(
    call: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = None
) -> Iterator[Result]:
    """call(item) of all items, in their order, by threads; each works on a whole item, with one thread of BLAS.

    Decoding, filters, matrix products and compiled loops all release the interpreter lock. An exception of a call comes
    out in its place; what has not begun then is dropped.
    """
    with _threads.threads(n_jobs):
        n_workers = _threads.count()
    pending: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(n_workers, thread_name_prefix="chimap-images")
    with threadpool_limits(1):
        try:
            for item in items:
                pending.append(pool.submit(call, item))
                if len(pending) >= _AHEAD * n_workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
