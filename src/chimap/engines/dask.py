"""Passes over the rows on the workers of ``dask.distributed``.

The rows are divided into parts whose borders depend only on the chunks. Each part is summed on a worker, and the
moments of the parts are merged there in pairs, in a tree that does not depend on which part is ready first: the result
is the same, to the bit, however many workers there are and whichever of them die. (A pass on one machine adds the same
chunks one after the other, which rounds the sums of float64 in another order.) No row passes through this process
unless it comes from here; moments come back merged, a group of parts at a time, and a checkpoint can be written after
each group.

Merging has priority over summing, the parts of a worker are summed in order, and the moments of a part are released
when they are merged: a worker holds those it adds to, and at most one that waits for its neighbour at each level of the
tree.

Any worker may die. Its sums are computed again elsewhere; data that this process had sent, and that no worker has any
more, are sent again. If the scheduler is lost, the pass ends with an error that names it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError
from itertools import islice
from typing import TYPE_CHECKING

from chimap._messages import Message
from chimap._pieces import Held, RowPieces
from chimap._progress import Progress
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data import RowsInChunks
from chimap.engines.dask_pieces import HeldOnWorkers, PiecesOnWorkers
from chimap.engines.dask_tasks import added, added_array, merged
from chimap.engines.dask_workers import MOST_KEPT, Workers
from chimap.engines.local import Engine, Reached, Work
from chimap.moments.moments import Accumulator

if TYPE_CHECKING:
    from distributed import Client, Future


_PART_CHUNKS = 4  # chunks of a part when there are many rows, so that summing outweighs merging
# Number of parts to aim for: with fewer rows, parts shrink down to a chunk, so that all workers end together.
_SHARED_PARTS = 64
_MOST_PARTS = 2**16  # beyond this number parts grow: a scheduler assigns some thousands of tasks per second
_GROUP = 64  # least number of parts whose moments come back as one
_MOST_GROUPS = 64  # beyond this number groups grow: a single process receives what comes back


class DaskEngine(Engine):
    """The workers of a ``dask.distributed`` cluster, reached through a client."""

    can_keep = False
    # One for each level of the tree of 64 parts, and one that is read while they merge. Beyond 4096 parts groups grow
    # up to 1024, with four levels more; but so many parts are for 16 threads or more, each of which has fewer levels.
    n_waiting = 7

    def __init__(self, client: Client):
        self.workers = Workers(client)
        self._sent: dict[int, tuple[RowsInChunks, Future]] = {}

    def run(
        self,
        work: Work,
        source: RowsInChunks,
        chunk_rows: int,
        progress: Progress,
        stage: str,
        first: int,
        reached: Reached,
    ) -> None:
        """See ``Engine``; ``reached`` is called after each group of parts."""
        if not source.can_seek:
            raise DataError(
                Message(
                    "{} can be read from its beginning only, but workers need to read parts of it. Write it as "
                    "Parquet, Zarr, HDF5 or .npy, or fit with {engine='local'}.",
                    source.name,
                )
            )
        progress.stage(stage, source.n_rows)
        progress.advance(first)
        groups = deque(_groups_of_parts(source, chunk_rows, first))
        unreported = {start: stop - start for group in groups for start, stop in group}
        n_lost = 0
        while groups:
            try:
                for moments in self._sums_of(list(groups), work, source, chunk_rows, unreported, progress):
                    work.moments.merge(moments)
                    reached(work, groups.popleft()[-1][1])
                    n_lost = 0
            except CancelledError:  # the last worker that held the sent data has died
                n_lost += 1
                self.workers.check_losses(
                    n_lost, Message("Give workers more memory, or write the rows to a file that they can read.")
                )
                self._sent.clear()
            except OSError:
                self.workers.check_scheduler()
                raise

    def hold(self) -> Held:
        """Return a place on the workers for the rows of an exact machine; see ``Engine``."""
        remedy = Message(
            "Each holds its share of the rows and the kernel matrix of a block: give workers more memory, or a smaller "
            "{memory}, for smaller blocks, or use {features='landmarks'}."
        )
        return HeldOnWorkers(self.workers, "multiplied and factorised blocks of rows", remedy)

    def pieces(self, rows: Rows, size: int) -> RowPieces:
        """Return pieces of rows on the workers; see ``Engine``."""
        return PiecesOnWorkers(self.workers, rows, size)

    def _sums_of(
        self,
        groups: list[list[tuple[int, int]]],
        work: Work,
        source: RowsInChunks,
        chunk_rows: int,
        unreported: dict[int, int],
        progress: Progress,
    ) -> Iterator[Accumulator]:
        """Yield the moments of each group, and report the rows of a part to ``progress`` when it has been summed."""
        template = self.workers.placed(work.fresh())
        submitted: deque[tuple[Future, list[Future]]] = deque()
        following = iter(groups)
        for group in groups:
            # Groups are submitted ahead, so that no worker waits for the last part of another worker's group.
            wanted = max(0, self._groups_under_way(len(group)) - len(submitted))
            for next_group in islice(following, wanted):
                submitted.append(self._submit_group(template, source, next_group, chunk_rows))
            merged, added = submitted.popleft()
            self._watch(added, [start for start, _ in group], unreported, progress)
            yield merged.result()

    def _groups_under_way(self, parts: int) -> int:
        """Return the number of groups of ``parts`` parts that keeps all workers busy, plus one."""
        return 1 + max(1, -(-2 * len(self.workers.of_threads()) // parts))

    def _submit_group(
        self, template: Future, source: RowsInChunks, group: list[tuple[int, int]], chunk_rows: int
    ) -> tuple[Future, list[Future]]:
        """Return the future of the moments of the whole group, and the futures of each part.

        Each worker is offered a run of neighbours, so that most merges find both moments on one worker.
        """
        threads = self.workers.of_threads()
        parts = [
            self._submit_part(template, source, *part, chunk_rows, threads[k * len(threads) // len(group)])
            for k, part in enumerate(group)
        ]
        return self._tree(parts), parts

    def _submit_part(
        self, template: Future, source: RowsInChunks, start: int, stop: int, chunk_rows: int, worker: str
    ) -> Future:
        """Submit the sums of rows start to stop; any worker may take them, ``worker`` is offered them first.

        Parts have falling priorities, so that a worker adds neighbours one after the other and they are soon merged.
        Tasks of one priority run in any order: moments of a third of the parts would wait for their neighbours.
        """
        # The scheduler knows the blocks of a Dask collection, and may have them in memory already.
        if (lazy := source.lazy(start, stop)) is not None:
            y = source.labels()
            X = self.workers.computed(lazy, -start)
            labels = None if y is None else y[start:stop]
            return self.workers.submit(added_array, -start, template, X, labels, start, chunk_rows, source.name)
        on_workers = self._on_workers(source)
        return self.workers.submit(added, -start, template, on_workers, start, stop, chunk_rows, offered_to=worker)

    def _tree(self, parts: list[Future]) -> Future:
        """Merge neighbours, then neighbours of the results, until one is left; merges run before new parts."""
        level = 0
        while len(parts) > 1:
            level += 1
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [self.workers.submit(merged, level, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return parts[0]

    def _on_workers(self, source: RowsInChunks) -> Future:
        """Return the source as a future, sent once for all passes."""
        if id(source) not in self._sent:
            # Rows in memory are scattered to all workers.
            is_small = source.from_files and 8 * source.n_rows < MOST_KEPT
            sent = self.workers.placed(source) if is_small else self.workers.scattered(source)
            self._sent[id(source)] = (source, sent)
        return self._sent[id(source)][1]

    def _watch(self, parts: list[Future], starts: list[int], unreported: dict[int, int], progress: Progress) -> None:
        """Report parts as they are summed and release them, so that merged parts leave the workers' memory."""
        from distributed import KilledWorker, as_completed

        start_of = {part.key: start for part, start in zip(parts, starts, strict=True)}
        waiting = as_completed(parts)
        parts.clear()
        for done in waiting:
            if done.status == "error":
                try:
                    done.result()  # raises the error of the worker, such as one that names a bad row
                except KilledWorker as error:
                    raise DataError(
                        Message(
                            "workers at {} died one after the other as they added up rows from {} on, most likely "
                            "because they ran out of memory. Give them more memory, or choose a smaller budget "
                            "{memory} or fewer {n_components}.",
                            self.workers.address,
                            start_of[done.key],
                        )
                    ) from error
            elif done.status == "finished":
                progress.advance(unreported.pop(start_of[done.key], 0))


def _groups_of_parts(source: RowsInChunks, chunk_rows: int, first: int) -> list[list[tuple[int, int]]]:
    """Return (start, stop) of the parts from row ``first`` on, in groups.

    Their sizes depend only on the source and the chunks. Parts are not much smaller than the rows that a file decodes
    at a time, and there are no more parts and groups than a scheduler, and the process that receives their moments, can
    handle.
    """
    chunks = -(-source.n_rows // chunk_rows)
    wanted = min(_PART_CHUNKS, max(1, chunks // _SHARED_PARTS))
    step = chunk_rows * max(wanted, -(-source.stored_rows // chunk_rows), -(-chunks // _MOST_PARTS))
    size = max(_GROUP, -(-source.n_rows // (step * _MOST_GROUPS)))
    parts = [(start, min(start + step, source.n_rows)) for start in range(first, source.n_rows, step)]
    return [parts[k : k + size] for k in range(0, len(parts), size)]
