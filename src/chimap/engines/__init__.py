"""Engines run the chunks of a pass over the rows, within a memory budget and with progress."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, cast

from chimap._catalogue import Catalogue
from chimap._progress import Progress, Stopwatch
from chimap._validation import ParameterError
from chimap.engines.local import Engine, LocalEngine
from chimap.engines.memory import Job, chunk_rows_within

if TYPE_CHECKING:
    from distributed import Client


__all__ = [
    "ENGINES",
    "Engine",
    "Job",
    "LocalEngine",
    "Progress",
    "Stopwatch",
    "can_keep",
    "chunk_rows_within",
    "current_engine",
    "engine_of",
]


def can_keep(engine: str | Client | Engine) -> bool:
    """Whether features pass through this process on an engine, and can be kept for further passes."""
    return engine == "local" or (isinstance(engine, Engine) and engine.can_keep)


ENGINES = Catalogue[Callable[[], AbstractContextManager[Engine]]](
    {"local": lambda: nullcontext(LocalEngine()), "dask": "chimap.engines.dask_cluster:dask_engine"}
)
"""Functions by the value of ``engine`` and ``--engine``; the engine that one returns runs within a ``with`` block."""


def engine_of(engine: str | Engine | Client) -> AbstractContextManager[Engine]:
    """Return a context manager that gives the engine for a name or an object.

    A name is one of ``ENGINES``: "local" is this process, and "dask" starts workers on this machine, which end with the
    block. The address of a scheduler connects to it. A client of ``dask.distributed`` is used as it is, and so is an
    ``Engine``.

    Raises ValueError for other names, ImportError if Dask is needed but not installed, and DataError if a scheduler
    does not answer.
    """
    if isinstance(engine, Engine):
        return nullcontext(engine)
    if isinstance(engine, str) and "://" not in engine:
        if engine not in ENGINES:
            names = ", ".join(map(repr, ENGINES))
            wanted = f"{names}, the address of a Dask scheduler such as 'tcp://host:8786', or a client"
            raise ParameterError("engine", engine, wanted)
        return ENGINES[engine]()
    return cast(Callable[..., AbstractContextManager[Engine]], ENGINES["dask"])(engine)


def current_engine() -> str | Client:
    """Return the current client of ``dask.distributed``, or "local" if there is none."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return "local"
