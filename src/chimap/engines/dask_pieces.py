"""Pieces that Dask workers hold, and functions of them that are computed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._pieces import Held, Piece, Result, RowPieces, Shared, pieces_of
from chimap._types import Rows
from chimap._validation import DataError
from chimap.engines.dask_tasks import computed, computed_alone, summed
from chimap.engines.dask_workers import Placed, Workers

if TYPE_CHECKING:
    from distributed import Future

Value = TypeVar("Value")


class HeldOnWorkers(Held):
    """Values that are sent to one worker each, to all in turn; see ``_pieces.Held``.

    What a worker that dies held is sent or computed again.

    Parameters
    ----------
    workers : Workers
        The workers.
    doing : str
        What they compute, for the message if they die of it: "chose landmarks".
    remedy : Message
        What to do then.

    Attributes
    ----------
    n_losses : int
        How often workers have died with values that were held nowhere else.
    """

    def __init__(self, workers: Workers, doing: str, remedy: Message):
        self.workers, self._doing, self._remedy = workers, doing, remedy
        self.n_losses = 0

    @property
    def n_holders(self) -> int:
        return len(self.workers.threads())

    @property
    def n_threads(self) -> int:
        return len(self.workers.of_threads())

    def put(self, makers: Sequence[Callable[[], object]], first: int = 0) -> list[PieceOnWorkers]:
        sent = Again(self, lambda: self.workers.dealt([make() for make in makers], first))
        self.repeated(sent)

        def piece(k: int) -> PieceOnWorkers:
            return PieceOnWorkers(self, lambda: sent()[k])

        return [piece(k) for k in range(len(makers))]

    def map(self, function: Callable[..., Result], pieces: Sequence[PieceOnWorkers], shared: object) -> list[Result]:
        """Return function(piece, shared) of pieces, in order, each by one thread."""

        def mapped() -> list[Result]:
            whole = self.workers.placed(shared)
            places = [piece.placed() for piece in pieces]
            futures = [
                self.workers.submit(computed, 0, function, place.future, whole, offered_to=place.worker)
                for place in places
            ]
            return [future.result() for future in futures]

        return self.repeated(mapped)

    def summed(
        self,
        function: Callable[..., np.ndarray],
        pieces: Sequence[PieceOnWorkers],
        shared: PieceOnWorkers,
        each: Sequence[object],
    ) -> np.ndarray:
        """See ``Held``. A thread adds up its share of the pieces that its worker holds, so that few results come."""

        def sums() -> np.ndarray:
            whole = shared.placed().future
            of_threads: dict[tuple[str, int], list[tuple[Future, object]]] = {}
            n_held: Counter[str] = Counter()
            for piece, own in zip(pieces, each, strict=True):
                future, worker, n_threads = piece.placed()
                of_threads.setdefault((worker, n_held[worker] % n_threads), []).append((future, own))
                n_held[worker] += 1
            futures = []
            for (worker, _), some in of_threads.items():
                held, own = zip(*some, strict=True)
                argument = self.workers.argument(own)
                futures.append(self.workers.submit(summed, 0, function, whole, held, argument, offered_to=worker))
            return np.asarray(sum(future.result() for future in futures))

        return self.repeated(sums)

    def repeated(self, function: Callable[[], Value]) -> Value:
        """Return what a function of the workers returns, which is called again if a worker dies with what it held."""
        from distributed import KilledWorker

        n_lost = 0
        while True:
            try:
                self.workers.check_scheduler()  # sending would wait for a lost one
                return function()
            except (CancelledError, OSError) as error:  # a worker has died, with values or as they were sent to it
                error.__traceback__ = None  # futures keep the error, whose frames keep values on the workers
                n_lost += 1
                self.workers.check_losses(n_lost, self._remedy)
                self.n_losses += 1
            except KilledWorker as error:
                raise DataError(
                    Message(
                        "workers at {} died one after the other as they {}, most likely because they ran out of "
                        "memory. {}",
                        self.workers.address,
                        self._doing,
                        self._remedy,
                    )
                ) from error


class Again(Generic[Value]):
    """What a function returns, which is called when it is needed, and again when workers have died with values."""

    def __init__(self, held: HeldOnWorkers, function: Callable[[], Value]):
        self._held, self._function = held, function
        self._latest: tuple[int, Value] | None = None

    def __call__(self) -> Value:
        """Return the latest result, unless there was a loss after it."""
        if self._latest is None or self._latest[0] != self._held.n_losses:
            self._latest = None  # lets go of what is left of it
            self._latest = self._held.n_losses, self._function()
        return self._latest[1]


class PieceOnWorkers(Piece):
    """A value that a worker holds; see ``_pieces.Piece``.

    ``placed`` returns it, and has it sent or computed if it is not there.
    """

    def __init__(self, held: HeldOnWorkers, placed: Callable[[], Placed]):
        self._held, self.placed = held, placed

    def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        result: Result = self._held.repeated(lambda: self._submitted(function, arguments).future.result())
        return result

    def made(self, function: Callable[..., object], *arguments: object) -> PieceOnWorkers:
        made = PieceOnWorkers(self._held, Again(self._held, partial(self._submitted, function, arguments)))
        self._held.repeated(made.placed)
        return made

    def _submitted(self, function: Callable[..., object], arguments: tuple[object, ...]) -> Placed:
        place, workers = self.placed(), self._held.workers
        more = workers.argument(arguments)
        future = workers.submit(computed_alone, 0, function, place.future, more, offered_to=place.worker)
        return place._replace(future=future)


class PiecesOnWorkers(RowPieces):
    """Pieces of at most ``size`` rows, each sent to one worker; see ``RowPieces``."""

    def __init__(self, workers: Workers, rows: Rows, size: int):
        remedy = Message("Give workers more memory, or choose fewer {n_components}.")
        self._held = HeldOnWorkers(workers, "chose landmarks", remedy)
        self._pieces = self._held.put([partial(_arrays.take_rows, rows, part) for part in pieces_of(rows, size)])

    def map(self, function: Callable[[Rows, Shared], Result], shared: Shared) -> list[Result]:
        return self._held.map(function, self._pieces, shared)
