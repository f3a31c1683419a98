"""Imported by the process that workers of Dask are forked from (``dask_workers``): what they would load one by one."""

from __future__ import annotations

import distributed.nanny  # noqa: F401
import numpy as np

from chimap import HistogramClassifier
from chimap._threads import one_thread
from chimap.engines import dask_pieces, dask_tasks  # noqa: F401

X, y = np.random.default_rng(0).random((200, 32), np.float32), np.arange(200) % 2
with one_thread():  # a process that forks should have no threads
    for features in ("exact", "landmarks", "fourier"):
        HistogramClassifier("exp-chi2", features=features, n_components=16, alpha=1.0, random_state=0).fit(X, y)
