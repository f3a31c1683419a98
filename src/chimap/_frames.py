"""Data frames of any library, told by their type alone, and the columns that they wrote for their index."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

_LIBRARIES = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
INDEX = re.compile(r"(Unnamed: \d+)?|__index_level_\d+__")  # how pandas writes the index of a data frame


def is_frame(X: object) -> bool:
    """Whether X is a table of columns with names; no library is imported to tell."""
    return type(X).__name__ in _LIBRARIES.get(type(X).__module__.split(".")[0], ())


def names_of(table: Any) -> Sequence[Hashable]:
    """The names of the columns."""
    return (
        table.column_names
        if hasattr(table, "column_names")
        else table.schema.names
        if hasattr(table, "num_rows")
        else table.columns
    )


def without_index(X: Any, fitted: object = None) -> Any:
    """A data frame less the columns that hold its index, unless ``fitted`` was fitted on them; any other X as it is."""
    if not is_frame(X):
        return X
    known = {*getattr(fitted, "feature_names_in_", ())}
    names = [name for name in names_of(X) if isinstance(name, str)]
    aside = [
        name
        for place, name in enumerate(names)
        if name not in known and INDEX.fullmatch(name) and (name or not place)
    ]
    if not aside:
        return X
    return X.drop(columns=aside) if hasattr(X, "iloc") else X.drop(aside)
