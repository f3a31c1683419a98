"""Where the Dask workers of a fit come from: a client, the address of a scheduler, or new workers on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chimap import _threads
from chimap._errors import MissingPackageError
from chimap._messages import Message
from chimap._validation import DataError
from chimap.engines.dask import DaskEngine

if TYPE_CHECKING:
    from distributed import Client


_CONNECT_SECONDS = 20


@contextmanager
def dask_engine(where: str | Client = "dask") -> Iterator[DaskEngine]:
    """Return a context manager with the engine for a client, a scheduler's address, or ("dask") new local workers.

    There is a new worker for each core.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingPackageError(
            Message("{engine='dask'} needs dask.distributed: pip install 'chimap[dask]'.")
        ) from error

    if not isinstance(where, str):
        yield DaskEngine(where)
        return
    if where == "dask":
        n_workers = _threads.count()
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                silence_logs=50,
                dashboard_address="127.0.0.1:0",  # any free port: None would ask for 8787, and warn if it is taken
                scheduler_kwargs={"dashboard": False},
            ) as cluster,
            Client(cluster) as client,
        ):
            yield DaskEngine(client)
        return
    try:
        client = Client(where, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise DataError(
            f"no Dask scheduler answers at {where} ({error}). Start one with 'dask scheduler' and its workers with "
            "'dask worker ADDRESS', and pass that address."
        ) from error
    with _quiet("distributed.client"), client:
        yield DaskEngine(client)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a logger from writing tracebacks of errors that are raised with a clear message anyway."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
