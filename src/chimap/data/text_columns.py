"""Columns of text in a table, which can be labels or ids but not bins."""

from __future__ import annotations

import os
from pathlib import Path

from chimap.data.formats.csv import CsvSource
from chimap.data.io.compressed import uncompressed_name
from chimap.data.io.files import is_address, needed

_PARQUET, _IPC = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")


def text_columns(path: str) -> list[str]:
    """Return the names of the text columns of a CSV, TSV, Parquet or Feather file, without a column of ids.

    The list is empty for other kinds of files, and for folders and addresses. Raises DataError for a file that cannot
    be read.
    """
    if is_address(path) or not os.path.isfile(path):
        return []
    name = uncompressed_name(path).lower()
    if name.endswith((".csv", ".tsv")):
        return CsvSource(path).text_columns()
    ending = Path(path).suffix.lower()
    if ending not in _PARQUET + _IPC:
        return []
    dataset, types = (
        needed("pyarrow.dataset", "Parquet and Arrow files"),
        needed("pyarrow", "Arrow files").types,
    )
    schema = dataset.dataset(path, format="parquet" if ending in _PARQUET else "ipc").schema
    is_text = (types.is_string, types.is_large_string, types.is_dictionary, types.is_boolean)
    return [field.name for field in schema if any(test(field.type) for test in is_text)]
