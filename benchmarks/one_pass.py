"""One pass over rows in memory, as a fit without folds runs it; the benchmarks that time passes share it."""

from __future__ import annotations

import numpy as np

from chimap._types import Rows
from chimap.backends.base import Sums
from chimap.data import ArraySource
from chimap.engines import LocalEngine, Progress, Stopwatch
from chimap.engines.local import Pass
from chimap.moments import DealtFolds, OneVersusAll


def one_pass(sums: Sums, X: Rows, y: np.ndarray, n_classes: int, chunk_rows: int) -> dict[str, float]:
    """Add the features and classes of all rows to ``sums``, and return the seconds of each stage."""
    work = Pass(lambda rows, *_: rows, lambda y: OneVersusAll(y, n_classes), sums, DealtFolds(1, 0), Stopwatch())
    LocalEngine().run(work, ArraySource(X, y), chunk_rows, Progress(), "pass", 0, lambda *_: None)
    work.finish()
    return work.clock.seconds
