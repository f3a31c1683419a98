"""Clusters of Dask for tests, whose workers are forked from one process that has libraries and loops loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context


@contextmanager
def workers(number: int, threads: int = 1) -> Iterator[Client]:
    """The client of a new cluster of so many processes, which start in a moment and not in seconds."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["tests.warm_worker"])
        options = {"n_workers": number, "threads_per_worker": threads, "dashboard_address": None, "silence_logs": 50}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            yield client
