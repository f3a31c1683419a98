"""Pieces that Dask workers hold, and functions of them that are computed there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

from chimap._messages import Message
from chimap._pieces import Result, Shared, pieces_of
from chimap._types import Rows
from chimap._validation import DataError
from chimap.engines.dask_tasks import computed
from chimap.engines.dask_workers import Workers

if TYPE_CHECKING:
    from distributed import Future


class HeldOnWorkers:
    """Pieces that are sent to one worker each, to all in turn; see ``_pieces.Held``.

    What a worker that dies held is sent again.

    Parameters
    ----------
    workers : Workers
        The workers.
    doing : str
        What they compute, for the message if they die of it: "chose landmarks".
    remedy : Message
        What to do then.
    """

    def __init__(self, workers: Workers, doing: str, remedy: Message):
        self._workers, self._doing, self._remedy = workers, doing, remedy
        self._pieces: list[object] = []
        self._sent: list[Future] = []

    @property
    def n_holders(self) -> int:
        """See ``Held``."""
        return len(self._workers.of_threads())

    def add(self, pieces: Sequence[object]) -> None:
        """See ``Held``."""
        self._pieces += pieces

    def map(
        self, function: Callable[..., Result], shared: object, each: Sequence[object] | None = None
    ) -> list[Result]:
        """See ``Held``."""
        n_lost = 0
        while True:
            try:
                return self._mapped(function, shared, each)
            except CancelledError:  # the worker that held a piece has died
                n_lost += 1
                self._workers.check_losses(n_lost, self._remedy)
                self._sent = []
            except OSError:
                self._workers.check_scheduler()
                raise

    def _mapped(self, function: Callable[..., Result], shared: object, each: Sequence[object] | None) -> list[Result]:
        from distributed import KilledWorker

        self._workers.check_scheduler()  # sending would wait for a lost one
        if unsent := self._pieces[len(self._sent) :]:
            self._sent += self._workers.dealt(unsent)
        placed = self._workers.placed(shared)
        own: list[tuple[object, ...]] = [()] * len(self._sent) if each is None else [(one,) for one in each]
        results: list[Future] = [
            self._workers.submit(computed, 0, function, piece, placed, *arguments)
            for piece, arguments in zip(self._sent, own, strict=True)
        ]
        try:
            return [result.result() for result in results]
        except KilledWorker as error:
            raise DataError(
                Message(
                    "workers at {} died one after the other as they {}, most likely because they ran out of memory. {}",
                    self._workers.address,
                    self._doing,
                    self._remedy,
                )
            ) from error


class PiecesOnWorkers(HeldOnWorkers):
    """Pieces of at most ``size`` rows, each sent to one worker; see ``RowPieces``."""

    def __init__(self, workers: Workers, rows: Rows, size: int):
        remedy = Message("Give workers more memory, or choose fewer {n_components}.")
        super().__init__(workers, "chose landmarks", remedy)
        self.add(list(pieces_of(rows, size)))

    def map(
        self, function: Callable[..., Result], shared: Shared, each: Sequence[object] | None = None
    ) -> list[Result]:
        """See ``RowPieces``."""
        return super().map(function, shared, each)
