"""Data frames of any library, recognised by their type alone, and the index columns they have written to files."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

from chimap._validation import DataError

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


def check_counted(names: Sequence[Hashable], where: str) -> None:
    """Raise DataError if the names are 0, 1, ... in another order: a model without names takes columns by place."""
    order = [str(name) for name in names]
    counted = [str(place) for place in range(len(order))]
    if order != counted and {*order} == {*counted}:
        raise DataError(
            f"{where}: its columns are the numbers 0 to {len(order) - 1} in another order, "
            f"{', '.join(order[:4])}, ..., and the model was fitted on columns without names, which are taken by "
            "place. Sort them: X[sorted(X.columns)]."
        )


def is_collection(X: object) -> bool:
    """Return whether X is a Dask array or data frame, without importing Dask."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def with_text_names(X: Any, fitted: object) -> Any:
    """Return a frame of pandas or Dask, in memory, with names of columns that are text; any other X as it is.

    scikit-learn keeps and compares names only where all are text. Numbers that count the columns are no names, unless
    ``fitted`` was fitted on names. Raises DataError if they count the columns in another order than those of
    ``fitted``, which has no names.
    """
    if is_collection(X) and hasattr(X, "columns"):
        X = X.compute()
    if not is_frame(X) or not hasattr(X, "iloc") or all(isinstance(name, str) for name in X.columns):
        return X
    if not hasattr(fitted, "feature_names_in_"):
        if hasattr(fitted, "n_features_in_"):
            check_counted(X.columns, type(X).__name__)
        if [*X.columns] == [*range(X.shape[1])]:
            return X
    return X.set_axis([str(name) for name in X.columns], axis=1)


def without_index(X: Any, fitted: object = None) -> Any:
    """Return a data frame without its index columns, unless ``fitted`` was fitted on them, and any other X as it is."""
    if not is_frame(X):
        return X
    known = {*getattr(fitted, "feature_names_in_", ())}
    names = [name for name in names_of(X) if isinstance(name, str)]
    index_columns = [
        name
        for place, name in enumerate(names)
        if name not in known and INDEX.fullmatch(name) and (name or not place)
    ]
    if not index_columns:
        return X
    return X.drop(columns=index_columns) if hasattr(X, "iloc") else X.drop(index_columns)
