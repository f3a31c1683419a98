"""Pieces of rows on Dask workers, which compute functions of them."""

from __future__ import annotations

from collections.abc import Callable
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


_REMEDY = Message("Give workers more memory, or choose fewer {n_components}.")


class PiecesOnWorkers:
    """Pieces of at most ``size`` rows, each sent to one worker; see ``RowPieces``.

    What a worker that dies held is sent again.
    """

    def __init__(self, workers: Workers, rows: Rows, size: int):
        self._workers, self._rows, self._size = workers, rows, size
        self._sent: list[Future] = []

    def map(self, function: Callable[[Rows, Shared], Result], shared: Shared) -> list[Result]:
        """See ``RowPieces``."""
        n_lost = 0
        while True:
            try:
                return self._mapped(function, shared)
            except CancelledError:  # the worker that held a piece has died
                n_lost += 1
                self._workers.check_losses(n_lost, _REMEDY)
                self._sent = []
            except OSError:
                self._workers.check_scheduler()
                raise

    def _mapped(self, function: Callable[[Rows, Shared], Result], shared: Shared) -> list[Result]:
        from distributed import KilledWorker

        self._workers.check_scheduler()  # sending would wait for a lost one
        self._sent = self._sent or self._workers.dealt(list(pieces_of(self._rows, self._size)))
        placed = self._workers.placed(shared)
        results: list[Future] = [
            self._workers.submit(computed, 0, function, piece, placed) for piece in self._sent
        ]
        try:
            return [result.result() for result in results]
        except KilledWorker as error:
            raise DataError(
                Message(
                    "workers at {} died one after the other as they chose landmarks, most likely because they ran "
                    "out of memory. {}",
                    self._workers.address,
                    _REMEDY,
                )
            ) from error
