"""Counts that are missing: blanks of a table, and words such as NA, taken as zero or as a reason to leave a row out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap.data.source import Chunk, Source
from chimap.data.views import View

MISSING_COUNTS = ("refuse", "zero", "drop-row")
"""What to do about missing counts."""

_KEPT: ContextVar[bool] = ContextVar("whether missing counts are kept as NaN", default=False)
_ROWS = 1024  # that are searched at once


@contextmanager
def gaps_kept(missing_counts: str | None) -> Iterator[None]:
    """Let the readers that open a table in the block give NaN for missing counts, unless these are refused."""
    token = _KEPT.set(missing_counts not in (None, "refuse"))
    try:
        yield
    finally:
        _KEPT.reset(token)


def are_gaps_kept() -> bool:
    """Return whether the reader that asks, as it opens a table, is to give NaN for missing counts."""
    return _KEPT.get()


class WithoutGaps(View):
    """The rows of a source with zeros for missing counts; ``unread`` names rows that are to be left out for theirs."""

    def fingerprint(self) -> JSON:
        """Return plain values as ``Source`` does."""
        return {"missing counts": sorted(map(int, self.unread)), "of": self.whole.fingerprint()}

    def take(self, rows: np.ndarray) -> Rows:
        return _filled(self.whole.take(rows))

    def _changed(self, chunk: Chunk) -> Chunk:
        return Chunk(_filled(chunk.X), chunk.y, chunk.start)


def without_gaps(source: Source, missing_counts: str | None) -> Source:
    """Return a source whose missing counts are zeros or, by "drop-row", are why rows are left out; a note says so."""
    if missing_counts in (None, "refuse"):
        return source
    numbers: list[np.ndarray] = []
    n_gaps = 0
    for chunk in source.chunks(_ROWS):
        gaps = np.isnan(_arrays.stored_values(chunk.X))
        if gaps.any():
            n_gaps += int(gaps.sum())
            numbers.append(chunk.start + np.flatnonzero(np.isnan(_arrays.to_dense(chunk.X)).any(axis=1)))
    if not n_gaps:
        return source
    view, rows = WithoutGaps(source), np.concatenate(numbers)
    if missing_counts == "drop-row":
        view.unread = {**source.unread, **{int(row): "a count is missing" for row in rows}}
        return view
    note = f"{source.name}: missing counts are taken as zero: {n_gaps:,} in {rows.size:,} of {source.n_rows:,} rows."
    view.notes = (*source.notes, note)
    return view


def _filled(rows: Rows) -> Rows:
    return _arrays.map_values(rows, lambda values: np.where(np.isnan(values), 0, values).astype(values.dtype))
