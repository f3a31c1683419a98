"""Data frames of pandas and polars, and Arrow tables, in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap import _arrays
from chimap._frames import is_frame, names_of, without_index
from chimap._messages import Message, shown
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data.arrays import ArraySource
from chimap.data.gaps import are_gaps_kept
from chimap.data.label_kinds import as_array, order_of, texts_of
from chimap.data.labels import Labels, clean_labels, plain_labels
from chimap.data.rows import check_distinct
from chimap.data.table import (
    ColumnChoice,
    NoColumnError,
    Roles,
    check_order,
    checked_ids,
    enumerates_rows,
    instead,
    named_rows,
    place_of,
    roles_of,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class FrameSource(ArraySource):
    """The rows of a data frame of pandas or polars, or of an Arrow table.

    An index of pandas names the rows, unless it only counts them. The numeric columns are copied once, into rows.

    Parameters
    ----------
    table : pandas or polars DataFrame, or pyarrow Table
        The frame.
    labels : str, int, array or file of labels, default=None
        Name or position of a column, or an array or file, see ``read_labels``. None takes the column ``y``, else
        ``label``.
    choice : ColumnChoice, default=None
        Which columns are bins and ids.

    Raises
    ------
    DataError
        For columns that are not numbers, for missing entries, and for a series of labels whose index has the same
        entries in another order.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0.5, 0.0], "b": [0.5, 1.0], "species": ["cat", "dog"]}, index=["s1", "s2"])
    >>> source = FrameSource(frame, "species")
    >>> source.column_names, source.row_ids.tolist(), source.labels().tolist()
    (('a', 'b'), ['s1', 's2'], ['cat', 'dog'])
    """

    def __init__(
        self, table: pd.DataFrame | pl.DataFrame | pa.Table, labels: Labels = None, choice: ColumnChoice | None = None
    ) -> None:
        choice = choice or ColumnChoice()
        name = type(table).__name__ if not hasattr(table, "iloc") else "data frame"
        names = checked_names_of(table, name)
        check_same_order(table, labels, name)
        roles, ids, notes = frame_roles(
            names, labels, choice, name, lambda place: column_of(table, place), naming_index(table)
        )
        y = (
            labels
            if roles.label is None
            else clean_labels(column_of(table, roles.label), table.shape[0], f"column {names[roles.label]!r}")
        )
        bins = roles.bins
        super().__init__(matrix_of(table, bins, names, name), y, name, tuple(names[place] for place in bins))
        self.row_ids, self.notes, self.columns_aside = ids, notes, roles.aside(names)
        if roles.label is not None:
            self.label_order = order_of(table[names[roles.label]])


def frame_roles(
    names: list[str],
    labels: Labels,
    choice: ColumnChoice,
    where: str,
    column: Callable[[int], np.ndarray],
    index: np.ndarray | None,
) -> tuple[Roles, np.ndarray | None, tuple[str, ...]]:
    """Return the roles of the columns of a data frame, the ids of its rows, and notes.

    ``column(place)`` returns the values of a column; ``index`` holds the ids that the frame itself gives its rows.
    Raises DataError for a first column that counts the rows.
    """
    roles = roles_of(names, _label_place(names, labels, choice), choice, where)
    first = roles.id_candidate(names, where, has_index=index is not None)
    if first is not None:
        first.add(column(first.place))
    ids = None if roles.id is None else checked_ids(column(roles.id), f"{where}, column {names[roles.id]!r}")
    roles, ids, notes = named_rows(roles, names, where, ids, first)
    return roles, index if ids is None else ids, notes


def frame_rows(X: Any, y: Labels, **weights: object) -> tuple[Any, Any]:
    """Return rows and labels as ``fit`` takes them; a data frame loses the columns that hold its index.

    Raises
    ------
    DataError
        For a series of labels, or of ``weights`` of the rows, in another order; for missing labels; for a first column
        that counts the rows; and for labels that name a column when the rows have no named columns.
    """
    if not _arrays.is_nameless(X):
        for argument, values in {"y": y, **weights}.items():
            check_same_order(X, values, argument=argument)
    X, y = without_index(X), plain_labels(y, X)
    if is_frame(X) and X.shape[0] and len(names := [str(name) for name in names_of(X)]) > 1:
        first = column_of(X, 0)
        if first.dtype.kind in "iu" and enumerates_rows(first):
            raise DataError(
                f"{type(X).__name__}: the first column, {names[0]!r}, counts the rows, as the index of a table does. "
                f"Leave it out, X.drop(columns={names[0]!r}); if it is a bin, give open_source(X, y, columns=...) to "
                "fit_source."
            )
    return X, y


def check_same_order(X: object, y: object, name: str = "X", argument: str = "y") -> None:
    """Refuse rows, and labels, weights or groups of them, of pandas if they have the same index in another order."""
    index, label_index = getattr(X, "index", None), getattr(y, "index", None)
    if index is None or label_index is None or callable(index) or callable(label_index):
        return
    if not index.equals(label_index):
        check_order(np.asarray(index, dtype=object), y, name, "X.index", argument)


def _label_place(names: list[str], labels: Labels, choice: ColumnChoice) -> int | None:
    if labels is None:
        usual = choice.usual_label(names, "data frame")
        return None if usual is None else names.index(usual)
    if isinstance(labels, str) and labels in names:
        return names.index(labels)
    if isinstance(labels, str) and "::" not in labels and "." not in labels:  # what has these may be a file
        there = instead(labels, names, f"there are {shown(names)}")
        raise NoColumnError(f"data frame: no column {labels!r} for labels{there}.")
    return place_of(names, labels, "data frame", "labels") if isinstance(labels, int) else None


def checked_names_of(table: pd.DataFrame | pl.DataFrame | pa.Table, name: str) -> list[str]:
    """Return the names of the columns as text. Raises DataError if one comes twice."""
    names = [*composed_names(names_of(table))]
    check_distinct(names, name)
    return names


def column_of(table: pd.DataFrame | pl.DataFrame | pa.Table, place: int) -> np.ndarray:
    """Return the values of a column of a data frame, of shape (n,)."""
    # Whole numbers with missing entries stay objects: as floats, 2**53 and 2**53 + 1 would be one label.
    if hasattr(table, "with_columns"):  # polars
        column = table[table.columns[place]]
        return as_array(column.to_list() if column.null_count() and column.dtype.is_integer() else column)
    # The to_numpy of an Arrow column supports neither text nor nulls.
    is_pandas = hasattr(table, "iloc")
    column = table.iloc[:, place] if is_pandas else table.column(place)
    if hasattr(getattr(column, "type", None), "index_type"):  # a dictionary, whose times would lose their zone
        column = column.cast(column.type.value_type)
    column = column if is_pandas else column.to_pandas(integer_object_nulls=True)
    has_gaps = column.dtype.kind in "iu" and bool(column.isna().any())
    return as_array(column.to_numpy(dtype=object) if has_gaps else column)


def matrix_of(
    table: pd.DataFrame | pl.DataFrame | pa.Table, bins: list[int], names: list[str], name: str
) -> np.ndarray:
    """Return the bins as one numeric array."""
    columns = []
    for place in bins:
        values = column_of(table, place)
        if values.dtype == object:
            values = _as_floats(values, names[place], name)
        check_number(values.dtype, names[place], name)
        columns.append(values)
    out = np.empty((table.shape[0], len(bins)), np.result_type(*columns))
    for place, values in enumerate(columns):
        out[:, place] = values
    return out


def check_number(dtype: np.dtype, column: str, where: str) -> None:
    """Raise DataError for the type of a column that holds no numbers."""
    if dtype.kind not in "fiub":
        raise DataError(
            f"{where}, column {column!r}: {dtype}, expected numbers. Encode it, name it as the labels or ids, or leave "
            "it out with exclude=."
        )


def _as_floats(values: np.ndarray, column: str, name: str) -> np.ndarray:
    missing = np.flatnonzero([value is None or type(value).__name__ == "NAType" for value in values])
    if missing.size and are_gaps_kept():
        values = values.copy()
        values[missing] = np.nan
    elif missing.size:
        raise DataError(
            Message(
                "{}, row {}, column {!r}: missing. Every bin must be a number: fill it, or give "
                "{missing_counts='zero'} or {missing_counts='drop-row'}.",
                name,
                missing[0],
                column,
            )
        )
    try:
        return values.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{name}, column {column!r}: {error}, expected numbers. Encode it, name it as the labels or ids, or leave "
            "it out with exclude=."
        ) from error


def naming_index(table: Any) -> np.ndarray | None:
    """Return the index of a data frame or series as ids of its rows; None if there is none, or it only counts them."""
    index = getattr(table, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    values = np.asarray(index)
    return None if values.dtype.kind in "iu" and enumerates_rows(values) else texts_of(values)
