"""Data frames of any library, recognised by their type alone, and the index columns they have written to files."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from chimap._types import MatrixLike

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_LIBRARIES = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
INDEX = re.compile(r"(Unnamed: \d+)?|__index_level_\d+__")  # names that pandas gives to a written index


def is_frame(X: object) -> bool:
    """Return whether X is a table of named columns. No library is imported to find out."""
    return type(X).__name__ in _LIBRARIES.get(type(X).__module__.split(".")[0], ())


def names_of(table: Any) -> Sequence[Hashable]:
    """Return the names of the columns."""
    return (
        table.column_names
        if hasattr(table, "column_names")
        else table.schema.names
        if hasattr(table, "num_rows")
        else table.columns
    )


def renamed(table: pd.DataFrame | pl.DataFrame | pa.Table, names: list[str]) -> MatrixLike:
    """Return a table with other names of its columns."""
    if hasattr(table, "iloc"):
        return table.set_axis(names, axis=1)
    if hasattr(table, "with_columns"):
        return table.rename(dict(zip(table.columns, names, strict=True)))
    return table.rename_columns(names)


def is_collection(X: object) -> bool:
    """Return whether X is a Dask array or data frame, without importing Dask."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def without_index(X: Any, fitted: object = None) -> Any:
    """Return a data frame without its index columns, unless ``fitted`` was fitted on them, and any other X as it is."""
    if not is_frame(X):
        return X
    known = {*getattr(fitted, "feature_names_in_", ())}
    names = [name for name in names_of(X) if isinstance(name, str)]
    index_columns = [
        name for place, name in enumerate(names) if name not in known and INDEX.fullmatch(name) and (name or not place)
    ]
    if not index_columns:
        return X
    return X.drop(columns=index_columns) if hasattr(X, "iloc") else X.drop(index_columns)
