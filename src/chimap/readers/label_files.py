"""Labels that users name: files of labels, members of archives, and the errors where there is no such name."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from chimap._messages import Message, shown
from chimap._validation import DataError
from chimap.data.label_kinds import is_number
from chimap.data.labels import IGNORE_LABELS, Labels, clean_labels, given_labels, numbers_or_text
from chimap.data.source import Source
from chimap.data.table import NoColumnError, instead, is_path
from chimap.readers.io.encodings import as_utf8, encoding_of, first_fault
from chimap.readers.io.files import DataFile, existing_file, is_folder, split_member, uncompressed_name
from chimap.readers.io.numpy_files import Archive, fill, read_header
from chimap.readers.remedies import remedy_after

_MISSING: ContextVar[object] = ContextVar("what marks a missing label in files of labels", default=None)


@contextmanager
def missing_in_files(missing: object) -> Iterator[None]:
    """Read the files of labels that are opened in the block with further texts that mark a missing label.

    A file must be read with them in mind, because it decides whether the labels are numbers.
    """
    token = _MISSING.set(missing)
    try:
        yield
    finally:
        _MISSING.reset(token)


def read_labels(labels: Labels, n_rows: int) -> np.ndarray | None:
    """Return labels from an array or a file, of shape (n_rows,) or (n_rows, t), masked where some are missing.

    A text file holds numbers if each of its words prints back from its number: int64 if all are whole, else float64.
    Otherwise it holds text.

    Parameters
    ----------
    labels : array, str, path or None
        An array of labels, or a file. A ``.npy`` file holds an array. ``file.npz::member`` names an array of an
        archive, ``::member`` one of the data file itself, and no member stands for ``y``. A trailing ``[2]`` takes that
        column of a matrix. A ``.csv`` or ``.tsv`` file has a single column, with or without a heading. Any other ending
        is text with one label per line. Text may be compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``). None
        stays None.
    n_rows : int
        Number of rows.
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
    if not is_path(labels):
        return given_labels(labels, n_rows)
    address, member = split_member(labels)
    if address == "":
        raise DataError(f"labels {labels!r} name a member of the data, but the data are not an .npz file.")
    column = None
    if member is None and not os.path.isfile(address):
        address, column = split_column(address)
    path = existing_file(address)
    where = f"labels in {path}"
    if path.suffix == ".npz":
        member, column = split_column(member or "y")
        where = f"{where}::{member}"
        return clean_labels(one_column(Archive(path).read(member), column, where), n_rows, where)
    if member is not None:
        raise DataError(
            Message(
                "{}: only .npz files have members, and only tables (.csv, .tsv, .txt, .parquet, .feather) have "
                "columns of labels, so leave '::{}' out, or write it as one of these{}.",
                path,
                member,
                remedy_after(path.address),
            )
        )
    if path.suffix == ".npy":
        return clean_labels(one_column(read_npy(path), column, str(labels)), n_rows, where)
    texts = _texts_in(path)
    if _delimiter(path.name) is None:
        while len(texts) > n_rows and not texts[-1]:
            texts.pop()
    elif len(texts) == n_rows + 1:
        texts = texts[1:]  # below a heading
    return clean_labels(numbers_or_text(texts, where, _MISSING.get()), n_rows, where)


def _delimiter(name: str) -> str | None:
    """Return what stands between the fields of a table; None for other text, a label a line."""
    return {".csv": ",", ".tsv": "\t"}.get(uncompressed_name(name)[-4:])


def _texts_in(path: DataFile) -> list[str]:
    """Return the lines of a text file, or the fields of a table with its heading, without surrounding blanks.

    Raises DataError, naming the line, where there are several columns.
    """
    text, delimiter = _read_text(path), _delimiter(path.name)
    if delimiter is None:
        records = [line.strip().split("\t") for line in text.splitlines()]
    else:
        records = list(csv.reader(text.rstrip("\r\n").splitlines(), delimiter=delimiter))
    for line, record in enumerate(records, 1):
        if len(record) > 1:
            raise DataError(
                f"labels in {path}, line {line}: {len(record)} columns; expected a single one. Name the column as "
                f"{path}::COLUMN, which joins its rows by their ids, or keep only the column of labels."
            )
    return ["".join(record).strip() for record in records]


def tells_of_heading(labels: Labels, n_rows: int) -> bool:
    """Return whether a file of labels says that the first of so many rows of numbers is a heading.

    It does with one label less than there are rows, and with a heading of its own: a word that is no label of any other
    row, above labels that all occur twice or more, or that are numbers.
    """
    if not is_path(labels):
        return False
    address, member = split_member(labels)
    if member is not None or _delimiter(str(address)) is None or not os.path.isfile(address):
        return False
    texts = _texts_in(existing_file(address))
    first, others = texts[:1], Counter(texts[1:])
    if len(texts) != n_rows:
        return len(texts) == n_rows - 1
    is_word = first[0] not in others and not is_number(first[0])
    return is_word and (min(others.values(), default=1) > 1 or all(map(is_number, others)))


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


def _read_text(path: DataFile) -> str:
    try:
        encoding = encoding_of(path)
        with as_utf8(path, encoding) as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise first_fault(path, encoding) or error from error
    except (EOFError, OSError) as error:
        raise DataError(
            f"labels in {path}: cannot be read ({error}). The file is damaged or cut off; copy it again."
        ) from error


def labels_elsewhere(labels: Labels, n_rows: int, where: str, columns: Sequence[str]) -> np.ndarray | None:
    """Return labels from an array or a file, see ``read_labels``; refuse a name that is neither a file nor a column."""
    if isinstance(labels, str):
        try:
            existing_file(split_member(labels)[0])
        except FileNotFoundError as error:
            remedy = (
                f"columns are {shown(columns)}. Name one of them, or a file with one value per row."
                if columns
                else "it holds only counts. If another table gives labels by the ids of the rows, name that table "
                f"and its column: metadata.tsv::{labels}."
            )
            there = instead(labels, columns, remedy)
            raise NoColumnError(f"{where}: no column and no file {labels!r}{there}") from error
    return read_labels(labels, n_rows)


def with_label_hints(
    read: Callable[[Labels], Source], labels: Labels, data: object, has_arrays: Callable[[str], bool]
) -> Source:
    """Return the source that ``read(labels)`` makes of the data.

    ``has_arrays(path)`` says whether a file holds arrays by name. Raises DataError, which lists what there is, if a
    word is neither a file of labels nor anything in the file of the rows, and FileNotFoundError without that file.
    """
    try:
        return read(labels)
    except FileNotFoundError as error:
        if not is_path(data) or not isinstance(labels, str) or os.sep in labels or "." in labels:
            raise
        path = split_member(str(data))[0]
        if not is_folder(path):
            existing_file(path)
        raise _not_there(read, path, labels, has_arrays(path)) from error


def _not_there(read: Callable[[Labels], Source], path: str, name: str, has_arrays: bool) -> NoColumnError:
    prefix = f"{path}: no file {name!r} with labels"
    if has_arrays:
        try:
            read(f"::{name}")
        except DataError as error:
            return NoColumnError(f"{prefix}. {error} Name one of its arrays with '::' before it, or a file of labels.")
        return NoColumnError(f"{prefix}. It holds an array of that name: '::{name}'.")
    if read(IGNORE_LABELS).row_ids is not None:
        return NoColumnError(
            f"{prefix}. If a table gives labels by the ids of the rows, name it and its column: metadata.tsv::{name}."
        )
    return NoColumnError(f"{prefix}. Name a file with one value per row: text, .npy or .npz.")
