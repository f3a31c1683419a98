"""The workers of a Dask cluster: tasks are submitted to them, and values are sent that all of them need."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, NamedTuple

from chimap._messages import Message
from chimap._validation import DataError
from chimap.engines.dask_tasks import unpacked

if TYPE_CHECKING:
    from distributed import Client, Future


_RETRIES = 3  # for a task that fails, and for sending lost data
_RECONNECT_SECONDS = 5  # time to wait for a scheduler whose connection was lost
MOST_KEPT = 2**27  # largest number of bytes of a value that the scheduler keeps
_MESSAGE = 2**22  # bytes of such a value in a message


class Placed(NamedTuple):
    """A value on a worker, with its address, an empty one for any worker, and the number of its threads."""

    future: Future
    worker: str
    n_threads: int


class Workers:
    """The workers that a client of ``dask.distributed`` reaches."""

    def __init__(self, client: Client):
        self.client = client
        self.address = client.scheduler.address

    def threads(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address; those of an empty one if there are no workers."""
        self.check_scheduler()  # nthreads would wait for a lost scheduler
        return dict(sorted(self.client.nthreads().items())) or {"": 1}

    def of_threads(self) -> list[str]:
        """Return the address of the worker of each thread in the cluster; an empty one if there are no workers."""
        return [worker for worker, n_threads in self.threads().items() for _ in range(n_threads)]

    def submit(self, task: Callable[..., object], priority: int, *arguments: object, offered_to: str = "") -> Future:
        """Return the future of a task. Those of higher priority run first.

        The worker at the address ``offered_to`` is offered the task first, but any may take it.
        """
        return self.client.submit(
            task,
            *arguments,
            pure=False,
            retries=_RETRIES,
            priority=priority,
            workers=offered_to or None,
            allow_other_workers=bool(offered_to),
        )

    def computed(self, collection: object, priority: int) -> Future:
        """Return the future of a collection of Dask."""
        return self.client.compute(collection, retries=_RETRIES, priority=priority)

    def placed(self, value: object) -> Future:
        """Return a future of a value that all workers need.

        It is the result of a task, so it is computed again if all workers that hold it die. A value too large for the
        scheduler to keep is scattered to the current workers instead.
        """
        from distributed.protocol import pickle

        data = pickle.dumps(value)
        if len(data) > MOST_KEPT:
            return self.scattered(value)
        messages = [data[k : k + _MESSAGE] for k in range(0, len(data), _MESSAGE)]
        return self.submit(unpacked, 1, *[self.submit(bytes, 1, part) for part in messages])

    def argument(self, value: object) -> object:
        """Return a value as an argument of one task: as it is, or a future of it if it is large."""
        from distributed.protocol import pickle

        return value if len(pickle.dumps(value)) <= _MESSAGE else self.placed(value)

    def scattered(self, value: object) -> Future:
        """Return a future of a value that is sent to all current workers."""
        return self._sent({None: [value]})[None][0]

    def dealt(self, values: Sequence[object], first: int) -> list[Placed]:
        """Return values that are sent to one worker each, to all workers in turn from number ``first`` on."""
        threads = self.threads()
        workers = [*threads]
        own = [workers[(first + k) % len(workers)] for k in range(len(values))]
        futures = self._sent(
            {worker: [v for v, w in zip(values, own, strict=True) if w == worker] for worker in {*own}}
        )
        return [Placed(futures[worker].pop(0), worker, threads[worker]) for worker in own]

    def _sent(self, values: dict[str | None, list[object]]) -> dict[str | None, list[Future]]:
        """Return futures of values that are sent to workers by their addresses; to all for None."""

        async def sent() -> list[list[Future]]:
            each = [
                self.client.scatter(
                    own, workers=worker or None, broadcast=worker is None, hash=False, asynchronous=True
                )
                for worker, own in values.items()
            ]
            return await asyncio.gather(*each)

        try:
            return dict(zip(values, self.client.sync(sent), strict=True))
        except KeyError as error:  # which the scheduler raises for a worker that has just left
            raise CancelledError(f"the worker at {error} has left") from error
        except TimeoutError as error:
            raise DataError(
                f"no Dask worker is connected to the scheduler at {self.address}, or one takes no rows because its "
                "memory is nearly full. Start some with 'dask worker ADDRESS', or give them more memory."
            ) from error

    def check_scheduler(self) -> None:
        """Raise DataError if the scheduler is lost and does not come back within a few seconds."""
        end = time.monotonic() + _RECONNECT_SECONDS
        while self.client.status == "connecting" and time.monotonic() < end:
            time.sleep(0.05)
        if self.client.status != "running":
            raise DataError(
                f"the Dask scheduler at {self.address} was lost in the middle of the fit. Start it and its workers "
                "again, and run the fit again; a fit with a checkpoint resumes from there."
            )

    def check_losses(self, n_lost: int, remedy: Message) -> None:
        """Raise DataError if sent rows were lost too often, or with the scheduler; else they can be sent again."""
        self.check_scheduler()
        if n_lost > _RETRIES:
            raise DataError(
                Message(
                    "the rows sent to the Dask workers at {} were lost {} times with all workers that held them. {}",
                    self.address,
                    n_lost,
                    remedy,
                )
            ) from None
