"""Engines run the chunks of a pass over the rows, within a memory budget and with progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from chimap._progress import Progress, RichProgress, Stopwatch
from chimap.engines.local import Engine, LocalEngine
from chimap.engines.memory import Job, chunk_rows_within

if TYPE_CHECKING:
    from distributed import Client


__all__ = [
    "Engine",
    "Job",
    "LocalEngine",
    "Progress",
    "RichProgress",
    "Stopwatch",
    "chunk_rows_within",
    "current_engine",
    "engine_of",
]


@contextmanager
def engine_of(engine: str | Engine | Client) -> Iterator[Engine]:
    """Return a context manager that gives the engine for a name or an object.

    "local" is this process. "dask" starts workers on this machine, which end with the block. The address of a scheduler
    connects to it. A client of ``dask.distributed`` is used as it is, and so is an ``Engine``.

    Raises ValueError for other names, ImportError if Dask is needed but not installed, and DataError if a scheduler
    does not answer.
    """
    if isinstance(engine, str) and engine == "local":
        yield LocalEngine()
        return
    if hasattr(engine, "can_keep"):
        yield cast("Engine", engine)
        return
    if isinstance(engine, str) and engine != "dask" and "://" not in engine:
        raise ValueError(
            f"engine must be 'local', 'dask', the address of a Dask scheduler such as 'tcp://host:8786', or a client; "
            f"got {engine!r}."
        )
    from chimap.engines.dask import dask_engine

    with dask_engine(engine) as running:
        yield running


def current_engine() -> str | Client:
    """Return the current client of ``dask.distributed``, or "local" if there is none."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return "local"
