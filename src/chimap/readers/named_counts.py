"""JSON records with counts by name, or with lists of bins."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap import _sparse as sp
from chimap._unicode import composed
from chimap._validation import DataError
from chimap.data.labels import Labels
from chimap.data.reading import Fields
from chimap.data.table import is_path
from chimap.readers.fields import FieldReading, FieldSource
from chimap.readers.io.files import uncompressed_name
from chimap.readers.records import LINES, JsonRecords, records_in


@dataclass(frozen=True)
class NamedCounts(FieldReading):
    """Counts of a record: ``{"name": count}``, where a missing name counts 0, or a list of all bins.

    Parameters
    ----------
    column : str, default="counts"
        Name of the field.
    bins : tuple of str, default=()
        Names of the bins. () learns them: all names that occur, in alphabetical order, or the positions in lists.
    is_list : bool, default=False
        Whether fields are lists, which are dense rows.

    Raises
    ------
    DataError
        For a field that is neither, a count that is not a number, and lists of different lengths; the message names the
        record.

    Examples
    --------
    >>> source = NamedCounts().source([{"red": 3, "fox": 1}, {"hen": 2}])
    >>> source.column_names, next(source.chunks(2)).X.toarray().tolist()
    (('fox', 'hen', 'red'), [[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]])
    """

    column: str = "counts"
    bins: tuple[str, ...] = ()
    is_list: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", tuple(map(str, self.bins)))

    @property
    def names(self) -> tuple[str, ...]:
        return self.bins

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """float64, because counts may be any numbers."""
        return np.dtype(np.float64)

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        """Whether rows are CSR, as for counts by name."""
        return not self.is_list

    def takes(self, data: Any) -> bool:
        """Return whether the data are JSON lines, a table with the field, or a sequence of counts."""
        if is_path(data):
            return uncompressed_name(os.fspath(data)).endswith(LINES)
        records = records_in(data, self.column)
        return records is not None and self.column in records.names

    def learned(self, fields: Iterator[Fields], where: str) -> NamedCounts:
        """Return the reading with the names of all records."""
        names: set[str] = set()
        width, is_list, first = 0, False, 0
        for batch in fields:
            if first == 0 and batch:
                is_list = isinstance(batch[0], list)
                width = len(batch[0]) if is_list else 0
            for row, field in enumerate(batch):
                self._check(field, is_list, first + row, where)
                if not is_list:
                    names.update(map(composed, field))
            first += len(batch)
        bins = [str(place) for place in range(width)] if is_list else sorted(names)
        if not bins:
            raise DataError(f"{where}: no counts in {self.column!r} of any record. Give at least one name.")
        return replace(self, bins=tuple(bins), is_list=is_list)

    def rows(self, fields: Fields, first: int, where: str) -> tuple[sp.csr_matrix, dict[int, str]]:
        """Return the counts of known names; others are skipped. Fields of another kind are an error."""
        place = {name: bin_place for bin_place, name in enumerate(map(composed, self.bins))}
        counts, columns, borders = [], [], [0]
        for row, field in enumerate(fields):
            self._check(field, self.is_list, first + row, where)
            pairs = zip(self.bins, field, strict=False) if self.is_list else field.items()
            if self.is_list and len(field) != len(self.bins):
                raise DataError(
                    f"{where}, record {first + row}: a list of {len(field)} counts, expected {len(self.bins)} as in "
                    "the first."
                )
            for name, count in pairs:
                if isinstance(count, bool) or not isinstance(count, int | float) or not math.isfinite(count):
                    raise DataError(
                        f"{where}, record {first + row}: {name!r} counts {count!r}, expected a finite number."
                    )
                if count and (bin_place := place.get(composed(name))) is not None:
                    columns.append(bin_place)
                    counts.append(count)
            borders.append(len(counts))
        csr = (np.array(counts, self.dtype), np.array(columns, np.int32), np.array(borders, np.int32))
        return sp.csr_matrix(csr, shape=(len(fields), len(self.bins))), {}

    def _check(self, field: object, is_list: bool, record: int, where: str) -> None:
        expected, example = (list, "[2, 0, 1]") if is_list else (dict, '{"name": 2}')
        if not isinstance(field, expected):
            raise DataError(
                f"{where}, record {record}: {self.column!r} is {'missing' if field is None else repr(field)[:60]}; "
                f"expected {example}, as in the other records."
            )


def jsonl_source(path: str, labels: Labels = None, *, id: str | int | None = None) -> FieldSource:
    """Return a source for ``.jsonl``: records with ``counts``, by name or as a list, and optional ``id`` and ``label``.

    {"id": ..., "counts": {"name": n}, "label": ...}
    """
    records = JsonRecords(path)
    reading = NamedCounts()
    if reading.column not in records.names:
        raise DataError(
            f"{path}: no record has {reading.column!r}; there are {', '.join(records.names)}. Write "
            '{"id": "a", "counts": {"name": 2}, "label": "b"}, or name a column of text or SMILES.'
        )
    return FieldSource(records, reading, labels, id)
