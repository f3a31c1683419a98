"""Engines: where chunks run, within a memory budget and with progress."""

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
    """The engine of a name: "local"; "dask", workers on this machine that end with the block; the address of a
    scheduler; of a client of ``dask.distributed``; or an ``Engine``, itself.

    Raises ValueError for other names, ImportError where Dask is wanted and not installed, DataError for a
    scheduler that does not answer.
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
    """The current client of ``dask.distributed``, or "local" where there is none."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return "local"
