"""Labels and targets: from arrays and files to one clean array, or an error that names the row."""

from __future__ import annotations

import csv
import numbers
import os
from typing import Any

import numpy as np

from chimap._validation import DataError
from chimap.data.formats.npy_format import fill, read_header
from chimap.data.io.archive import Archive
from chimap.data.io.files import DataFile, existing_file, split_member


def check_labels(y: Any, n_rows: int, where: str) -> np.ndarray:
    """Labels as one axis, (n_rows,): int64, float64, bool or text.

    A single column counts as one axis. Raises DataError, naming the row, for NaN, infinity, missing values
    and mixtures of text and numbers, and for a length other than ``n_rows``.

    >>> check_labels([[1], [0]], 2, "y")
    array([1, 0])
    """
    try:
        y = np.asarray(y)
    except ValueError as error:
        raise DataError(f"{where}: not a list of labels ({error}). Give one label a row.") from error
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.reshape(-1)
    if y.ndim != 1:
        raise DataError(f"{where}: expected one label a row, shape ({n_rows},), got shape {y.shape}.")
    if y.size != n_rows:
        raise DataError(
            f"{where}: {y.size} labels for {n_rows} rows. Give exactly one label a row, in their order."
        )
    return _clean(_from_objects(y, where) if y.dtype == object else y, where)


def read_labels(labels: Any, n_rows: int, data_path: DataFile | None = None) -> np.ndarray | None:
    """Labels from an array or from a file, (n_rows,); None stays None.

    Files: ``.npy``; ``file.npz::member`` (``::member``: in the data file itself; no member: ``y``);
    ``.csv`` with a single column, headed or not; any other ending: text, one label a line. Numbers in text
    become int64 if all are whole, else float64.
    Raises FileNotFoundError, and DataError naming file and row.
    """
    if labels is None:
        return None
    if not isinstance(labels, str | os.PathLike):
        return check_labels(labels, n_rows, "labels")
    address, member = split_member(labels)
    if address == "":
        if data_path is None:
            raise DataError(
                f"labels {labels!r} name a member of the data, but the data are not an .npz file."
            )
        address = data_path.address
    path = existing_file(address)
    ending = path.suffix
    if member is not None and ending != ".npz":
        raise DataError(f"{path}: only .npz files have members, so leave '::{member}' out.")
    if ending == ".npy":
        return check_labels(_read_npy(path), n_rows, f"labels in {path}")
    if ending == ".npz":
        member = member or "y"
        return check_labels(Archive(path).read(member), n_rows, f"labels in {path}::{member}")
    texts = _read_csv(path) if ending == ".csv" else _read_lines(path)
    if ending == ".csv" and len(texts) == n_rows + 1:
        texts = texts[1:]  # one line more than rows: a heading
    return check_labels(numbers_or_text(texts, f"labels in {path}"), n_rows, f"labels in {path}")


def whole_numbers(y: np.ndarray) -> np.ndarray:
    """float64 labels as int64 if all are whole, else as they are.

    >>> whole_numbers(np.array([1.0, -1.0]))
    array([ 1, -1])
    """
    whole = np.isfinite(y).all() and np.all(y == np.round(y)) and np.abs(y).max(initial=0.0) < 2**53
    return y.astype(np.int64) if whole else y


def numbers_or_text(texts: list[str], where: str) -> np.ndarray:
    """Labels from text: int64 if all are whole numbers, else float64 or text. DataError for a mixture, by row.

    >>> numbers_or_text(["1", "2"], "y")
    array([1, 2])
    """
    values = [_number(text) for text in texts]
    strange = [line for line, value in enumerate(values) if (value is None) != (values[0] is None)]
    if strange:
        raise DataError(
            f"{where}, row {strange[0]}: {texts[strange[0]]!r} after {texts[0]!r}. "
            "Labels must be all numbers or all text; mend that line."
        )
    if texts and values[0] is None:
        return np.array(texts)
    return whole_numbers(np.array(values, dtype=np.float64))


def is_number(text: str) -> bool:
    """Whether a text is a number, NaN and infinity among them."""
    return _number(text) is not None


def _clean(y: np.ndarray, where: str) -> np.ndarray:
    if y.dtype.kind in "bU":
        return y
    if y.dtype.kind in "iu":
        return y.astype(np.int64)  # arithmetic on labels must not wrap around in 8 bits
    if y.dtype.kind == "S":
        return np.char.decode(y, "utf-8")
    if y.dtype.kind != "f":
        raise DataError(f"{where}: expected numbers or text, got dtype {y.dtype}.")
    bad = np.flatnonzero(~np.isfinite(y))
    if bad.size:
        raise DataError(
            f"{where}, row {bad[0]}: {y[bad[0]]}. Every label must be finite; remove the rows without one."
        )
    return y.astype(np.float64)


def _from_objects(y: np.ndarray, where: str) -> np.ndarray:
    kind = str if y.size and isinstance(y[0], str) else numbers.Real
    for row, value in enumerate(y):
        if not isinstance(value, kind):
            raise DataError(
                f"{where}, row {row}: {value!r}. Labels must be all text or all numbers, none missing; "
                "remove or fill that row."
            )
    return np.array(y.tolist())


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _read_npy(path: DataFile) -> np.ndarray:
    with path.open() as file:
        header = read_header(file, f"labels in {path}")
        values = np.empty(header.shape, header.dtype)
        try:
            fill(file, values)
        except EOFError as error:
            raise DataError(f"labels in {path}: cut off, {error}. Copy or write it again.") from error
    return values


def _read_lines(path: DataFile) -> list[str]:
    lines = [line.strip() for line in _read_text(path).rstrip().splitlines()]
    if "" in lines:
        raise DataError(f"labels in {path}, line {lines.index('') + 1}: blank. Give one label a line.")
    return lines


def _read_csv(path: DataFile) -> list[str]:
    records = list(csv.reader(_read_text(path).rstrip().splitlines()))
    for line, record in enumerate(records, 1):
        if len(record) != 1 or not record[0].strip():
            raise DataError(
                f"labels in {path}, line {line}: {len(record)} columns; expected a single one, not blank. "
                "Keep only the column of labels."
            )
    return [record[0].strip() for record in records]


def _read_text(path: DataFile) -> str:
    try:
        with path.open() as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"labels in {path}: not text in UTF-8 ({error}). Use text, .npy or .npz.") from error
