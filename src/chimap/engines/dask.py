"""Passes over the rows on the workers of ``dask.distributed``.

The rows are divided into parts whose borders come from the chunks alone, each part is added up on a worker, and the
moments of the parts are merged there in pairs, in a tree that does not depend on who is ready first: the result is the
same, to the bit, however many workers there are and whichever of them die. (A pass on one machine adds the same chunks
one after the other, which rounds the sums of float64 in another order.) No row passes through this process unless it
comes from here; moments come back merged, a group of parts at a time, which is where a checkpoint can be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chimap import _threads
from chimap._validation import DataError
from chimap.data import Source
from chimap.engines.local import Reached
from chimap.engines.progress import Progress

_PART_CHUNKS = 4  # a part: enough that adding up outweighs merging
_GROUP = 64  # parts that are under way together
_RETRIES = 3  # of a part whose worker has died
_CONNECT_SECONDS = 20


class DaskEngine:
    """Workers of a ``dask.distributed`` cluster, reached through a client of it."""

    def __init__(self, client: Any):
        self.client = client

    def run(
        self,
        work: Any,
        source: Source,
        chunk_rows: int,
        progress: Progress,
        stage: str,
        first: int,
        reached: Reached,
    ) -> None:
        """See ``Engine``; ``reached`` is told after each group of parts."""
        if not source.can_seek:
            raise DataError(
                f"{source.name} can be read from its beginning only, and workers read parts of it. Write it as "
                "Parquet, Zarr, HDF5 or .npy, or fit with engine='local'."
            )
        progress.stage(stage, source.n_rows)
        progress.advance(first)
        template = self.client.scatter(work.fresh(), broadcast=True, hash=False)
        shared = self.client.scatter(source, broadcast=True, hash=False)
        step = chunk_rows * _PART_CHUNKS
        starts = range(first, source.n_rows, step)
        for k in range(0, len(starts), _GROUP):
            group = starts[k : k + _GROUP]
            stop = min(group[-1] + step, source.n_rows)
            parts = [
                self._submit(_added, template, shared, start, min(start + step, source.n_rows), chunk_rows)
                for start in group
            ]
            merged = self._tree(parts)
            self._watch(parts, [min(start + step, source.n_rows) - start for start in group], progress)
            work.moments.merge(merged.result())
            reached(work, stop)

    def _tree(self, parts: list[Any]) -> Any:
        """Merge neighbours, then neighbours of those, until one is left."""
        while len(parts) > 1:
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [self._submit(_merged, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return parts[0]

    def _submit(self, task: Any, *arguments: Any) -> Any:
        return self.client.submit(task, *arguments, pure=False, retries=_RETRIES)

    def _watch(self, parts: list[Any], rows: list[int], progress: Progress) -> None:
        from distributed import as_completed

        sizes = {part.key: n for part, n in zip(parts, rows, strict=True)}
        for done in as_completed(parts):
            if done.status == "error":
                done.result()  # raises what the worker raised: a row that will not do, named
            progress.advance(sizes.pop(done.key, 0))


def _added(template: Any, source: Source, first: int, stop: int, chunk_rows: int) -> Any:
    """On a worker: the rows of a part added up, chunk by chunk."""
    from distributed import get_worker

    work = template.fresh()
    with _threads.threads(get_worker().state.nthreads):
        for chunk in source.chunks_from(first, chunk_rows, stop):
            work.add(chunk.X, chunk.y, chunk.start, source.name)
    work.moments.release_buffers()
    return work.moments


def _merged(left: Any, right: Any) -> Any:
    """On a worker: both added up, in memory of their own, so that a lost result can be computed again."""
    both = left.fresh()
    both.merge(left)
    both.merge(right)
    return both


@contextmanager
def dask_engine(where: Any) -> Iterator[DaskEngine]:
    """The engine of a client, of a scheduler's address, or ("dask") of new workers on this machine, one a core."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError("engine='dask' needs dask.distributed: pip install 'chimap[dask]'.") from error

    if not isinstance(where, str):
        yield DaskEngine(where)
        return
    if where == "dask":
        n_workers = _threads.count()
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
            ) as cluster,
            Client(cluster) as client,
        ):
            yield DaskEngine(client)
        return
    try:
        client = Client(where, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise DataError(
            f"no Dask scheduler answers at {where} ({error}). Start one with 'dask scheduler', its workers with "
            "'dask worker ADDRESS', and give that address."
        ) from error
    with client:
        yield DaskEngine(client)
