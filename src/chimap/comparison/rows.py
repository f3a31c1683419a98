"""The rows of a comparison: some to learn from, others to measure on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._validation import DataError, MemoryBudgetError, check_histograms, format_bytes
from chimap.data import Source, split_source
from chimap.data.source import choose_rows

_LEAST = 10  # rows of either part


@dataclass(frozen=True)
class Rows:
    """Rows of bins in one precision, dense or CSR, checked; labels or targets of each part, or None."""

    train: Any
    test: Any
    y_train: np.ndarray | None
    y_test: np.ndarray | None


def draw_rows(
    source: Source, test_fraction: float, n_train: int, n_test: int, seed: int, dtype: np.dtype, memory: int
) -> Rows:
    """At most so many rows of either part of the split that ``chimap fit`` with this fraction and seed makes.

    Raises DataError for bad bins (by the row of the part) and for too few rows, MemoryBudgetError where the rows alone
    fill half of ``memory`` bytes.
    """
    parts = split_source(source, test_fraction, seed)
    needed = (
        3 * source.row_bytes * sum(min(p.n_rows, n) for p, n in zip(parts, (n_train, n_test), strict=True))
    )
    if needed > memory / 2:
        raise MemoryBudgetError(
            f"memory={format_bytes(memory)} is too small: the rows to compare on need {format_bytes(needed)}, and as "
            f"much must stay for features. Lower n_rows, or give memory='{-(-int(2 * needed) // 2**20)}MiB'."
        )
    (train, y_train), (test, y_test) = (
        _some(part, n, seed, dtype) for part, n in zip(parts, (n_train, n_test), strict=True)
    )
    for which, rows in (("to learn from", train), ("to measure on", test)):
        if rows.shape[0] < _LEAST:
            raise DataError(
                f"{source.name}: {rows.shape[0]} rows {which}, and a comparison needs {_LEAST} of them at least. "
                "Give a file of more rows, or another test_fraction."
            )
    return Rows(train, test, y_train, y_test)


def _some(part: Source, n: int, seed: int, dtype: np.dtype) -> tuple[Any, np.ndarray | None]:
    chosen = choose_rows(part.n_rows, n, seed)
    rows = _arrays.as_rows(part.take(chosen), dtype)
    check_histograms(rows, name=part.name, first_row=chosen)
    y = part.labels()
    return rows, None if y is None else y[chosen]
