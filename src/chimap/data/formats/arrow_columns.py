"""Which columns of an Arrow table are bins or labels, and how they become rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._validation import DataError
from chimap.data.formats.arrow_parts import ArrowPart
from chimap.data.io.files import needed
from chimap.data.labels import Labels
from chimap.data.rows import check_distinct, chunk_dtype
from chimap.data.table import ColumnChoice

if TYPE_CHECKING:
    import pyarrow as pa


_INDEX = re.compile(r"__index_level_\d+__")  # the column in which pandas stores the index of a data frame


class FeatureColumns:
    """The bins of a table: a single column of lists, or numeric columns.

    Parameters
    ----------
    part : ArrowPart
        The first part; all other parts must have its columns.
    features : str, list of str or None
        Name of a column of lists, or names of numeric columns. None takes the column of lists if there is exactly one,
        else all columns except ``label``.
    label : str or None
        Name of the column of labels.
    beside : tuple of str, default=None
        Names of columns that are set aside while all others are bins; None if the bins were chosen.

    Attributes
    ----------
    names : list of str
        Names of the columns to read.
    width : int or None
        Bins per row, None while the length of the lists is not known.
    dtype : dtype
        Type of the rows.

    Raises
    ------
    DataError
        For columns that are missing or hold no numbers.
    """

    def __init__(
        self,
        part: ArrowPart,
        features: str | list[str] | None,
        label: str | None,
        beside: tuple[str, ...] | None = None,
    ) -> None:
        types = _types(part)
        names = [features] if isinstance(features, str) else features
        self.names = _default_columns(types, label, part) if names is None else list(names)
        self._types = {name: _type_of(types, name, part) for name in self.names}
        lists = [name for name in self.names if _is_list(self._types[name])]
        self.is_list = bool(lists)
        self._takes_all = not lists and (names is None or beside is not None)
        self._label, self._beside = label, beside or ()
        if not self.names or (self.is_list and len(self.names) > 1):
            raise DataError(
                f"{part.file}: {len(lists)} columns of lists among the features {self.names}. Name as "
                "features one column of lists, or one or more numeric columns."
            )
        for name, kind in self._types.items():
            if not _is_number(kind.value_type if self.is_list else kind):
                raise DataError(
                    f"{part.file}: column {name!r} is {kind}, expected numbers. Encode it as numbers, name it as the "
                    "labels, or name the columns that are features."
                )
        stored = [kind.value_type if self.is_list else kind for kind in self._types.values()]
        self.dtype = np.result_type(*(chunk_dtype(kind.to_pandas_dtype(), str(part.file)) for kind in stored))
        self.width: int | None = len(self.names)
        if self.is_list:
            self.width = getattr(self._types[self.names[0]], "list_size", None)

    def check(self, part: ArrowPart, first: ArrowPart) -> None:
        """Refuse a part that lacks a column, has one of another type than the first part, or has further columns."""
        types = _types(part)
        for name, expected in self._types.items():
            actual = types.get(name)
            if actual is None or not _same_type(actual, expected):
                came = "there is none" if actual is None else f"it is {actual}"
                raise DataError(
                    f"{part.file}: column {name!r} must be {expected} as in {first.file.name}, but {came}. "
                    "Write the part again with the columns of the others, or take it out."
                )
        extra = (
            [
                name
                for name in _default_columns(types, self._label, part)
                if name not in {*self.names, *self._beside}
            ]
            if self._takes_all
            else []
        )
        if extra:
            raise DataError(
                f"{part.file}: column {extra[0]!r} is not in {first.file.name}, whose {len(self.names)} columns are "
                "the bins. Write the part again with the columns of the others, or take it out."
            )

    def rows(self, batch: pa.RecordBatch, where: str, first_row: int) -> np.ndarray:
        """Return the rows of a record batch, C-contiguous and of type ``dtype``.

        ``where``, the row group, and ``first_row``, the index of the first row within it, are for errors. Raises
        DataError for null values and for lists of other lengths.
        """
        for name in self.names:
            _check_no_nulls(batch.column(name), name, where, first_row)
        if self.is_list:
            return self._from_lists(batch.column(self.names[0]), where, first_row)
        out = np.empty((batch.num_rows, len(self.names)), self.dtype)
        for place, name in enumerate(self.names):
            out[:, place] = batch.column(name).to_numpy(zero_copy_only=False)
        return out

    def _from_lists(self, column: pa.ChunkedArray, where: str, first_row: int) -> np.ndarray:
        name, values = self.names[0], column.flatten()
        if not hasattr(column.type, "list_size"):
            lengths = np.diff(column.offsets.to_numpy())
            if self.width is None:
                self.width = int(lengths[0]) if lengths.size else None
            bad = np.flatnonzero(lengths != self.width)
            if bad.size:
                raise DataError(
                    f"{where}, row {first_row + bad[0]}: {lengths[bad[0]]} values in {name!r}, expected "
                    f"{self.width} as in the first row. Fill or remove the row; lists must have one length."
                )
        if values.null_count:
            place = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0]
            raise DataError(
                f"{where}, row {first_row + place // (self.width or 1)}: a null in the list of {name!r}. Every bin "
                "must be a finite number; fill it or remove the row."
            )
        flat = values.to_numpy(zero_copy_only=False)
        return _arrays.as_rows(flat.reshape(len(column), -1), self.dtype)


def find_label(part: ArrowPart, labels: Labels, choice: ColumnChoice, where: str) -> str | None:
    """Return the column or partition key that ``labels`` names, for None one of the usual names, else None."""
    names = [*part.schema.names, *part.keys]
    if labels is None:
        return choice.usual_label(names, where)
    return labels if isinstance(labels, str) and labels in names else None


def check_label(part: ArrowPart, first: ArrowPart, label: str) -> None:
    """Refuse a part that lacks the column of labels, or has it in another type than the first part."""
    if label in part.keys and label in first.keys:
        return
    actual, expected = _types(part).get(label), _types(first).get(label)
    if actual is None or expected is None or not _same_type(actual, expected):
        came = "there is none" if actual is None else f"it is {actual}"
        raise DataError(
            f"{part.file}: the labels {label!r} must be {expected or 'in the name of its folder'} as in "
            f"{first.file.name}, but {came}. Write the part again with the columns of the others, or take it out."
        )


def as_values(column: pa.ChunkedArray) -> np.ndarray:
    """Return the values of a column that is neither bins nor labels."""
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def is_text(part: ArrowPart, name: str) -> bool:
    """Return whether a column holds text, plain or dictionary-encoded."""
    types = needed("pyarrow", "Arrow files").types
    kind = _types(part)[name]
    kind = getattr(kind, "value_type", kind) if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def checked_codes(column: pa.ChunkedArray, where: str) -> np.ndarray:
    """Return the codes of a dictionary-encoded column, -1 where a value is missing; refuse codes it does not hold."""
    codes = column.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    if codes.size and (codes.min() < -1 or codes.max() >= len(column.dictionary)):
        raise DataError(f"{where}: a code outside its dictionary. The file is damaged; write it again.")
    return codes


def _default_columns(types: dict[str, pa.DataType], label: str | None, part: ArrowPart) -> list[str]:
    others = [name for name in types if name != label and not _INDEX.fullmatch(name)]
    lists = [name for name in others if _is_list(types[name])]
    names = lists if len(lists) == 1 else others
    if not names:
        raise DataError(f"{part.file}: no columns of numbers beside the labels. Name another file.")
    return names


def _types(part: ArrowPart) -> dict[str, pa.DataType]:
    names = part.schema.names
    check_distinct(names, str(part.file))
    return dict(zip(names, part.schema.types, strict=True))


def _type_of(types: dict[str, pa.DataType], name: str, part: ArrowPart) -> pa.DataType:
    if name not in types:
        shown = ", ".join(list(types)[:10]) + (", ..." if len(types) > 10 else "")
        raise DataError(f"{part.file}: no column {name!r}; it holds {shown}.")
    return types[name]


def _is_list(kind: pa.DataType) -> bool:
    types = needed("pyarrow", "Arrow files").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: pa.DataType) -> bool:
    types = needed("pyarrow", "Arrow files").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _same_type(first: pa.DataType, second: pa.DataType) -> bool:
    """Return whether two types are equal, apart from the names of list items and the codes of a dictionary."""
    first, second = (
        getattr(kind, "value_type", kind) if not _is_list(kind) else kind for kind in (first, second)
    )
    if _is_list(first) and _is_list(second):
        sizes = [getattr(kind, "list_size", None) for kind in (first, second)]
        return first.id == second.id and sizes[0] == sizes[1] and first.value_type == second.value_type
    return bool(first == second)


def _check_no_nulls(column: pa.ChunkedArray, name: str, where: str, first_row: int) -> None:
    if column.null_count:
        place = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]
        raise DataError(
            f"{where}, row {first_row + place}: null in column {name!r}. Every row needs a value there; fill it or "
            "remove the row."
        )
