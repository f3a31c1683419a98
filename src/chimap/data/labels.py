"""Labels and targets: turn arrays, columns and files into one clean array, or raise an error that names the row."""

from __future__ import annotations

import csv
import numbers
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import ArrayLike
from chimap._unicode import composed_texts
from chimap._validation import DataError
from chimap.data.io.files import (
    DataFile,
    decompressed,
    existing_file,
    is_address,
    is_folder,
    split_member,
    uncompressed_name,
)
from chimap.data.io.numpy_files import Archive, fill, read_header
from chimap.data.label_kinds import (
    WIDE_BYTES,
    TextLabels,
    as_number,
    is_missing,
    is_text,
    masked,
    texts_of,
    whole_numbers,
)
from chimap.data.remedies import remedy_after
from chimap.data.table import NoColumnError, is_path

if TYPE_CHECKING:
    import numpy.typing as npt

    from chimap.data.source import Source


def check_labels(y: ArrayLike, n_rows: int, where: str) -> np.ndarray:
    """Return labels as one array of shape (n_rows,): int64, float64, bool or text, with none missing.

    A single column counts as one axis; a matrix of several columns holds several tasks and comes back as float64
    (n_rows, t).

    Parameters
    ----------
    y : array of shape (n_rows,) or (n_rows, t)
        The labels.
    n_rows : int
        Number of rows.
    where : str
        Name of the labels, for errors.

    Raises
    ------
    DataError
        For NaN, infinity, missing values and mixtures of text and numbers, naming the row, and for a length other than
        ``n_rows``. In a matrix, NaN marks a missing entry and is allowed.

    Examples
    --------
    >>> check_labels([[1], [0]], 2, "y")
    array([1, 0])
    """
    labels = clean_labels(y, n_rows, where)
    if np.ma.is_masked(labels):
        raise DataError(
            f"{where}, row {np.flatnonzero(np.ma.getmaskarray(labels))[0]}: no label. Every row needs one: fill it, or "
            "remove the rows without a label."
        )
    return labels


def clean_labels(y: ArrayLike, n_rows: int, where: str) -> np.ndarray:
    """Return labels as ``check_labels`` does, but masked where they are missing: None, NaN, masked, or empty text.

    A matrix of shape (n_rows, t) holds the labels of several tasks, see ``clean_targets``: its missing entries are NaN.
    """
    y = y.toarray() if _arrays.is_sparse(y) else y
    try:
        values = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: not a list of labels ({error}). Give one label per row.") from error
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.reshape(-1)
    if values.ndim not in (1, 2):
        raise DataError(
            f"{where}: expected one label per row, shape ({n_rows},), or one per row and task, "
            f"got shape {values.shape}."
        )
    if values.shape[0] != n_rows:
        raise DataError(
            f"{where}: {values.shape[0]} labels for {n_rows} rows. Give exactly one label per row, in their order."
        )
    if values.ndim == 2:
        return clean_targets(values, values.shape[1], where)
    mask, data = np.ma.getmaskarray(values), np.ma.getdata(values)
    read = _from_objects if data.dtype.kind in "OT" else _clean
    data, missing = read(data, mask, where)
    return masked(data, missing)


def read_labels(labels: Labels | MarkedLabels, n_rows: int, data_path: DataFile | None = None) -> np.ndarray | None:
    """Return labels from an array or a file, of shape (n_rows,) or (n_rows, t), masked where some are missing.

    A text file holds numbers if each of its words prints back from its number: int64 if all are whole, else float64.
    Otherwise it holds text.

    Parameters
    ----------
    labels : array, str, path, MarkedLabels or None
        An array of labels, or a file. A ``.npy`` file holds an array. ``file.npz::member`` names an array of an
        archive, ``::member`` one of the data file itself, and no member stands for ``y``. A trailing ``[2]`` takes that
        column of a matrix. A ``.csv`` or ``.tsv`` file has a single column, with or without a heading. Any other ending
        is text with one label per line. Text may be compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``).
        ``MarkedLabels`` also gives the value that marks missing labels. None stays None.
    n_rows : int
        Number of rows.
    data_path : DataFile, default=None
        The data file, for ``::member``.

    Returns
    -------
    ndarray or masked array, or None

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        If the labels cannot be read or do not fit; the message names the file and, where it can, the row.

    Examples
    --------
    >>> read_labels(["a", "b", "a"], n_rows=3).tolist()
    ['a', 'b', 'a']
    """
    if labels is None or labels is UNREAD:
        return None
    missing = None
    if isinstance(labels, MarkedLabels):
        missing, labels = labels.missing, labels.labels
    if not isinstance(labels, str | os.PathLike):
        return clean_labels(labels, n_rows, "labels")
    address, member = split_member(labels)
    if address == "":
        if data_path is None:
            raise DataError(f"labels {labels!r} name a member of the data, but the data are not an .npz file.")
        address = data_path.address
    column = None
    if member is None:
        address, column = split_column(address)
    path = existing_file(address)
    ending = path.suffix
    if member is not None and ending != ".npz":
        raise DataError(
            Message(
                "{}: only .npz files have members, and only tables (.csv, .tsv, .txt, .parquet, .feather) have "
                "columns of labels, so leave '::{}' out, or write it as one of these{}.",
                path,
                member,
                remedy_after(path.address),
            )
        )
    if ending == ".npy":
        return clean_labels(one_column(read_npy(path), column, str(labels)), n_rows, f"labels in {path}")
    if ending == ".npz":
        member, column = split_column(member or "y")
        y = one_column(Archive(path).read(member), column, f"labels in {path}::{member}")
        return clean_labels(y, n_rows, f"labels in {path}::{member}")
    delimiter = {".csv": ",", ".tsv": "\t"}.get(uncompressed_name(path.name)[-4:])
    texts = read_lines(path) if delimiter is None else read_table(path, delimiter)
    while delimiter is None and len(texts) > n_rows and not texts[-1]:
        texts.pop()  # blank lines at the end, more than there are rows
    if delimiter is not None and len(texts) == n_rows + 1:
        texts = texts[1:]  # one line more than rows: a heading
    return clean_labels(numbers_or_text(texts, f"labels in {path}", missing), n_rows, f"labels in {path}")


class Unread(Enum):
    """Labels that nobody needs, as in rows to predict: they may be anything, so they are not even looked at."""

    UNREAD = "unread"


UNREAD = Unread.UNREAD

Labels: TypeAlias = "str | int | os.PathLike[str] | npt.ArrayLike | MarkedLabels | Unread | None"
"""Labels as users give them: one label per row, or the column or file that holds them; None looks for them."""


@dataclass(frozen=True)
class MarkedLabels:
    """Labels as ``read_labels`` takes them, and the value that marks missing ones.

    Parameters
    ----------
    labels : str or path
        The labels.
    missing : object
        The value that marks a missing label.
    """

    labels: str | os.PathLike[str]
    missing: object


def split_column(name: str) -> tuple[str, int | None]:
    """Split ``NAME[2]`` into the name of a matrix and the number of a column; the number is None without brackets.

    >>> split_column("Y[2]"), split_column("Y")
    (('Y', 2), ('Y', None))
    """
    match = re.fullmatch(r"(.+)\[(-?\d+)\]", name)
    return (match[1], int(match[2])) if match else (name, None)


def one_column(y: np.ndarray, column: int | None, where: str) -> np.ndarray:
    """Return column ``column``, of shape (n,), of a matrix of labels; all of y if ``column`` is None."""
    if column is None:
        return y
    if y.ndim != 2 or not -y.shape[1] <= column < y.shape[1]:
        raise DataError(f"{where}: no column {column} in labels of shape {y.shape}; the first is 0.")
    return y[:, column]


def numbers_or_text(
    texts: Sequence[str | None], where: str, missing: object = None, *, as_text: bool = False
) -> np.ndarray:
    """Return labels from text, see ``TextLabels``: numbers if each word prints back from its number, else text.

    >>> numbers_or_text(["1", "2"], "y"), numbers_or_text(["1", "02"], "y")
    (array([1, 2]), array(['1', '02'], dtype='<U2'))
    """
    labels = TextLabels(where, missing, as_text=as_text)
    labels.add(texts)
    return labels.finish()


def _clean(y: np.ndarray, missing: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return labels in a plain type, and a mask of the missing ones."""
    if y.dtype.kind == "b":
        return y, missing
    if y.dtype.kind == "S":
        try:
            y = np.char.decode(y, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: labels that are not text in UTF-8 ({error}). Write them again.") from error
    if y.dtype.kind == "U":
        return composed_texts(y), missing | (np.char.strip(y) == "")
    if y.dtype.kind in "iu":
        if y.dtype.kind == "u" and y.size and y.max() > np.iinfo(np.int64).max:
            row = int(np.argmax(y))
            raise DataError(f"{where}, row {row}: {y[row]} does not fit in 64 bits. Use text.")
        return y.astype(np.int64), missing  # arithmetic on labels must not wrap around in 8 bits
    if y.dtype.kind != "f":
        raise DataError(f"{where}: expected numbers or text, got dtype {y.dtype}.")
    missing = missing | np.isnan(y)
    bad = np.flatnonzero(~np.isfinite(y) & ~missing)
    if bad.size:
        raise DataError(f"{where}, row {bad[0]}: {y[bad[0]]}. Every label must be finite; remove the rows without one.")
    y = y.astype(np.float64)
    return (whole_numbers(y, missing) if missing.any() else y), missing


def _from_objects(y: np.ndarray, missing: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of Python objects, all text or all numbers, in a plain type, and a mask of the missing ones."""
    y = y.astype(object)
    missing = missing | np.array([is_missing(value) for value in y], dtype=bool)
    present = np.flatnonzero(~missing)
    label_type = str if present.size and isinstance(y[present[0]], str) else numbers.Real
    for row in present:
        if not isinstance(y[row], label_type):
            raise DataError(
                f"{where}, row {row}: {y[row]!r}. Labels must be all text or all numbers; mend that row or, if it "
                "marks a missing label, say so with missing=."
            )
    if label_type is str:
        return _narrow(composed_texts(np.where(missing, "", y))), missing
    try:
        values = np.array(y[present].tolist())
        if values.dtype == object:
            raise OverflowError("a whole number that exceeds 64 bits")
    except (OverflowError, ValueError) as error:
        raise DataError(f"{where}: {error}. Labels that exceed 64 bits must be text.") from error
    clean, _ = _clean(values, np.zeros(values.size, dtype=bool), where)
    full = np.zeros(y.size, dtype=clean.dtype)
    full[present] = clean
    return full, missing


def _narrow(words: np.ndarray) -> np.ndarray:
    """Return words as an array of text, or unchanged where a long word would make that array large."""
    width = max((len(word) for word in words), default=1)
    return words if 4 * width * words.size > WIDE_BYTES else words.astype(str)


def read_npy(path: DataFile) -> np.ndarray:
    """Return the array of a ``.npy`` file of labels."""
    with path.open() as file:
        header = read_header(file, f"labels in {path}")
        values = np.empty(header.shape, header.dtype)
        try:
            fill(file, values)
        except EOFError as error:
            raise DataError(f"labels in {path}: cut off, {error}. Copy or write it again.") from error
    return values


def read_lines(path: DataFile) -> list[str]:
    """Return the lines of a text file without surrounding blanks; a blank line is a missing label."""
    return [line.strip() for line in _read_text(path).splitlines()]


def read_table(path: DataFile, delimiter: str) -> list[str]:
    """Return the fields of a text table with a single column."""
    records = list(csv.reader(_read_text(path).rstrip("\r\n").splitlines(), delimiter=delimiter))
    for line, record in enumerate(records, 1):
        if len(record) > 1:
            raise DataError(
                f"labels in {path}, line {line}: {len(record)} columns; expected a single one. Name the column as "
                f"{path}::COLUMN, which joins its rows by their ids, or keep only the column of labels."
            )
    return ["".join(record).strip() for record in records]


def _read_text(path: DataFile) -> str:
    try:
        with decompressed(path) as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"labels in {path}: not text in UTF-8 ({error}). Use text, plain or compressed, or .npy or .npz."
        ) from error
    except (EOFError, OSError) as error:
        raise DataError(
            f"labels in {path}: cannot be read ({error}). The file is damaged or cut off; copy it again."
        ) from error


def clean_targets(Y: ArrayLike, n_tasks: int, where: str) -> np.ndarray:
    """Return labels of several tasks as float64 of shape (n, t), with NaN for missing entries.

    Missing entries are None, NaN, pandas' NA, empty text, or masked.

    Parameters
    ----------
    Y : array, masked array, data frame, list or sparse matrix of shape (n, t)
        The labels.
    n_tasks : int
        Number of tasks, t.
    where : str
        Name of the labels, for errors.

    Raises
    ------
    DataError
        For text and infinity, naming row and task, and for another number of tasks.

    Examples
    --------
    >>> clean_targets([[1, None], [0, 1]], 2, "y")
    array([[ 1., nan],
           [ 0.,  1.]])
    """
    Y = Y.toarray() if _arrays.is_sparse(Y) else Y
    values = Y if isinstance(Y, np.ma.MaskedArray) else np.asarray(Y)
    if values.ndim != 2 or values.shape[1] != n_tasks:
        raise DataError(f"{where}: expected labels of {n_tasks} tasks, (rows, {n_tasks}), got shape {values.shape}.")
    mask, values = np.ma.getmaskarray(values), np.ma.getdata(values)
    if is_text(values):
        values = _numbers(values, where)
    if values.dtype.kind not in "fiub":
        raise DataError(f"{where}: expected numbers, got dtype {values.dtype}.")
    targets = np.where(mask, np.nan, values.astype(np.float64))
    bad = np.isinf(targets)
    if bad.any():
        row, task = np.argwhere(bad)[0]
        raise DataError(
            f"{where}, row {row}, task {task}: {targets[row, task]}. Labels must be finite, or NaN if missing."
        )
    return targets


def task_column(values: np.ndarray, where: str) -> np.ndarray:
    """Return the labels (n,) of one task as numbers, NaN where one is missing. Raises DataError for text."""
    return clean_targets(np.ma.MaskedArray(values)[:, None], 1, where)[:, 0]


def _numbers(values: np.ndarray, where: str) -> np.ndarray:
    """Return Python objects as numbers, with NaN for missing ones."""
    numbers = np.full(values.shape, np.nan)
    for (row, task), value in np.ndenumerate(texts_of(values) if values.dtype.kind == "S" else values):
        is_blank = isinstance(value, str) and not value.strip()
        if value is None or type(value).__name__ in ("NAType", "NaTType") or is_blank:
            continue
        number = as_number(value) if isinstance(value, str) else value
        if not isinstance(number, Real):
            raise DataError(
                f"{where}, row {row}, task {task}: {str(value)!r}. Labels of several tasks must be numbers, or NaN if "
                "missing; give text labels of a single task as a single column."
            )
        numbers[row, task] = number
    return numbers


def plain_labels(y: Any, X: object) -> ArrayLike:
    """Return the labels of a pandas series with an extension dtype as an array of numbers, booleans or objects.

    Other labels are returned unchanged. Raises DataError, naming the row, for missing labels: None, NaN among objects,
    and empty text; and for text that would name a column of the rows X.

    >>> import pandas as pd
    >>> X = np.eye(2)
    >>> plain_labels(pd.Series([2, 1], dtype="Int64"), X), plain_labels(pd.Series(["a", "b"], dtype="string"), X)
    (array([2, 1]), array(['a', 'b'], dtype=object))
    """
    if isinstance(y, str):
        raise DataError(
            f"y={y!r} names a column of a data frame; X is {type(X).__name__}. Give the labels as an array (n,)."
        )
    dtype = getattr(y, "dtype", None)
    if not hasattr(dtype, "na_value") or not hasattr(y, "isna"):
        if isinstance(y, list | tuple):
            _check_none_missing(np.array(y, dtype=object))  # objects, because NaN converted to text would be a class
        elif isinstance(y, np.ndarray) or getattr(dtype, "kind", "") == "O":
            _check_none_missing(np.asarray(y))
        return y.astype(object) if getattr(dtype, "kind", "") == "T" else y
    _refuse_missing(np.asarray(y.isna()))
    plain = getattr(dtype, "numpy_dtype", np.dtype(object))
    return np.asarray(y.to_numpy(dtype=plain if plain.kind in "iufb" else object))


def _check_none_missing(y: np.ndarray) -> None:
    """Refuse text and objects, of shape (n,), in which a label is missing: None, NaN and empty text."""
    if y.ndim == 1 and is_text(y):
        _refuse_missing(np.array([is_missing(value) for value in y], dtype=bool))


def _refuse_missing(is_missing: np.ndarray) -> None:
    missing = np.flatnonzero(is_missing)
    if missing.size:
        raise DataError(
            f"y, row {missing[0]}: no label ({missing.size:,} of {is_missing.size:,} are missing). Leave these rows "
            "out, as open_source(X, y) and fit_source do."
        )


_MOST_NAMES_SHOWN = 20


def shown(names: Sequence[str], most: int = _MOST_NAMES_SHOWN) -> str:
    """Return names as a list for a message.

    >>> shown(["a", "b", "c"], most=2), shown([])
    ('a, b, ...', 'none')
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") or "none"


def labels_elsewhere(labels: Labels, n_rows: int, where: str, columns: Sequence[str]) -> np.ndarray | None:
    """Return labels from an array or a file, see ``read_labels``; refuse a name that is neither a file nor a column."""
    name = labels.labels if isinstance(labels, MarkedLabels) else labels
    if isinstance(name, str):
        try:
            existing_file(split_member(name)[0])
        except FileNotFoundError as error:
            remedy = (
                f"columns are {shown(columns)}. Name one of them, or a file with one value per row."
                if columns
                else "it holds only counts. If another table gives labels by the ids of the rows, name that table "
                f"and its column: metadata.tsv::{name}."
            )
            raise NoColumnError(f"{where}: no column and no file {name!r}; {remedy}") from error
    return read_labels(labels, n_rows)


def read_with(
    read: Callable[[Labels], Source], labels: Labels, data: object, has_arrays: Callable[[str], bool]
) -> Source:
    """Return the source that ``read(labels)`` makes of the data.

    ``has_arrays(path)`` says whether a file holds arrays by name. Raises DataError, which lists what there is, if a
    word is neither a file of labels nor anything in the file of the rows, and FileNotFoundError without that file.
    """
    try:
        return read(labels)
    except FileNotFoundError as error:
        name = labels.labels if isinstance(labels, MarkedLabels) else labels
        if not is_path(data) or not isinstance(name, str) or os.sep in name or "." in name:
            raise
        path = split_member(str(data))[0]
        if not is_folder(path):
            existing_file(path)
        raise _not_there(read, path, name, has_arrays(path)) from error


def _not_there(read: Callable[[Labels], Source], path: str, name: str, has_arrays: bool) -> NoColumnError:
    prefix = f"{path}: no file {name!r} with labels"
    if has_arrays:
        try:
            read(f"::{name}")
        except DataError as error:
            return NoColumnError(f"{prefix}. {error} Name one of its arrays with '::' before it, or a file of labels.")
        return NoColumnError(f"{prefix}. It holds an array of that name: '::{name}'.")
    if read(UNREAD).row_ids is not None:
        return NoColumnError(
            f"{prefix}. If a table gives labels by the ids of the rows, name it and its column: metadata.tsv::{name}."
        )
    return NoColumnError(f"{prefix}. Name a file with one value per row: text, .npy or .npz.")


def marked(labels: Labels, missing: object) -> Labels | MarkedLabels:
    """Return labels together with the value that marks missing ones, if they are in a text file.

    A text file must be read with that value in mind, because it decides whether the labels are numbers.
    """
    if missing is None or not isinstance(labels, str | os.PathLike):
        return labels
    text = os.fspath(labels)
    is_text = not text.lower().endswith((".npy", ".npz")) and (is_address(text) or os.path.isfile(text))
    return MarkedLabels(text, missing) if is_text else labels
