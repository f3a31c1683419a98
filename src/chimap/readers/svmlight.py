"""Text in the svmlight / libsvm layout, plain or compressed, read in blocks of lines."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator

import numpy as np

from chimap._types import CSR, Rows
from chimap._validation import DataError, check_choice, check_positive
from chimap.data.label_kinds import is_finite_number, is_number, masked, whole_numbers
from chimap.data.labels import IGNORE_LABELS, Labels
from chimap.data.rows import LARGEST_WIDTH, check_exact, csr_row_bytes, csr_rows
from chimap.data.source import StreamSource
from chimap.readers.io.files import DataFile, decompressed, existing_file, read_piece
from chimap.readers.label_files import read_labels

BLOCK_BYTES = 2**20
LARGEST_COLUMN = np.iinfo(np.int32).max
_LABEL = re.compile(rb"^[^\s:#]+(?=\s|$)", re.MULTILINE)  # the first word of a line, if it is no column:value


class SvmlightSource(StreamSource):
    """The rows of a text file ``label column:value column:value ...``, one row per line.

    The file is read once when the source is made, to count rows, find the widest and check every line. Chunks read it
    again block by block, so that only a block of lines and a chunk are in memory. Comments (``#``) and ``qid`` are
    skipped. Labels in the file come as int64 if all are whole, else as float64.

    Parameters
    ----------
    path : str or path
        The file, compressed if it ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst``.
    labels : array or file of labels, default=None
        Labels that replace those in the file, see ``read_labels``.
    n_features : int, default=None
        Number of columns; None takes the largest in the file.
    zero_based : bool or "auto", default="auto"
        Whether the first column is 0 (True) or 1 (False); "auto" takes 0 if the file has a column 0.
    least_features : int, default=1
        The least number of columns without ``n_features``: a file may have no entry in the last ones.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        If a line cannot be read; the message names file, line and token.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.svm")
    ...     _ = path.write_text("1 1:0.5 3:0.5\\n-1 2:1\\n")
    ...     source = SvmlightSource(path)
    ...     next(source.chunks(2)).X.toarray(), source.labels()
    (array([[0.5, 0. , 0.5],
           [0. , 1. , 0. ]]), array([ 1, -1]))
    """

    is_sparse = True
    first_column: int
    dtype = np.dtype(np.float64)

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Labels = None,
        *,
        n_features: int | None = None,
        zero_based: bool | str = "auto",
        least_features: int = 1,
    ) -> None:
        check_choice(zero_based, "zero_based", (True, False, "auto"))
        if n_features is not None:
            check_positive(n_features, "n_features", integer=True)
        self.path = self._stored = existing_file(path)
        self.name, self._reads_labels = self.path.name, labels is not IGNORE_LABELS
        scan = _LineStatistics(str(self.path), lowest=1 if zero_based is False else 0)
        for first_line, block in self._blocks_of_lines():
            scan.read(first_line, block)
        if scan.n_rows == 0:
            raise DataError(f"{self.path}: no rows, only blank lines or comments. Write it again.")
        self.first_column = min(1, scan.smallest) if zero_based == "auto" else int(not zero_based)
        widest = scan.largest - self.first_column + 1
        self.n_features = max(least_features, widest) if n_features is None else int(n_features)
        if widest > self.n_features:
            raise DataError(
                f"{self.path}, line {scan.widest_line}: column {scan.largest}, but n_features={n_features} "
                f"(columns count from {self.first_column}). Set n_features to {widest} or more."
            )
        self.n_rows = scan.n_rows
        if widest > LARGEST_WIDTH:
            raise DataError(
                f"{self.path}, line {scan.widest_line}: column {scan.largest:,} makes rows of {widest:,} columns; at "
                f"most {LARGEST_WIDTH:,} can be read. Is the number right? Correct the line, or hash the columns into "
                "fewer."
            )
        self.row_bytes = csr_row_bytes(scan.n_values, self.n_rows, self.dtype)
        self._y = read_labels(labels, self.n_rows)
        if self._y is None and self._reads_labels:
            y = np.concatenate(scan.labels)
            missing = np.isnan(y)
            check_exact(y[~missing], f"{self.path}: the label")
            self._y = masked(whole_numbers(y, missing), missing)

    def _blocks(self) -> Iterator[Rows]:
        for first_line, block in self._blocks_of_lines():
            if block.isspace():  # the parser would take a microsecond for each blank line
                continue
            X, _ = _parse(block, str(self.path), first_line, self.first_column)
            columns = X.indices - self.first_column
            if columns.max(initial=0) >= self.n_features:
                raise DataError(f"{self.path}: wider than when it was opened: the file has changed. Open it again.")
            yield csr_rows(X.data, columns, X.indptr, self.n_features, self.dtype)

    def _blocks_of_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of whole lines with the number of the first; labels that are not read may be any word."""
        for first_line, block in _blocks(self.path):
            yield first_line, block if self._reads_labels else _LABEL.sub(b"0", block)


class _LineStatistics:
    """Labels, sizes and column range of the file, gathered in one pass that also checks each block."""

    def __init__(self, where: str, lowest: int) -> None:
        self.where, self.lowest = where, lowest
        self.n_rows = self.n_values = 0
        self.smallest, self.largest, self.widest_line = LARGEST_COLUMN, -1, 0
        self.labels: list[np.ndarray] = []
        self._blank_line = 0

    def read(self, first_line: int, block: bytes) -> None:
        """Read a block of whole lines, the first of which has the number ``first_line``."""
        if block.isspace():  # a block of blank lines needs no check of each line
            self._blank_line = self._blank_line or first_line
            return
        X, y = _parse(block, self.where, first_line, self.lowest)
        if self._blank_line and y.size:
            self._refuse_blank()
        lines = _lines(block)
        if y.size < len(lines):
            self._find_blank(first_line, lines)
        self.n_rows += y.size
        self.n_values += X.nnz
        self.labels.append(y)
        if X.nnz:
            self.smallest = min(self.smallest, int(X.indices.min()))
            largest = int(X.indices.max())
            if largest > self.largest:
                self.largest = largest
                self.widest_line = first_line + block.count(b"\n", 0, max(0, block.find(b"%d:" % largest)))

    def _find_blank(self, first_line: int, lines: list[bytes]) -> None:
        for number, line in enumerate(lines, first_line):
            if not line.strip():
                self._blank_line = self._blank_line or number
            elif self._blank_line and _tokens(line):
                self._refuse_blank()

    def _refuse_blank(self) -> None:
        raise DataError(
            f"{self.where}, line {self._blank_line}: blank. A row without columns still needs its label; "
            "delete the line or put the label there."
        )


def _blocks(path: DataFile) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line."""
    first_line = 1
    with decompressed(path) as file:
        while block := read_piece(path, file, BLOCK_BYTES, f"after line {first_line}"):
            if b"\0" in block:
                raise DataError(f"{path}, after line {first_line}: not text. Give lines 'label column:value'.")
            yield first_line, block
            first_line += block.count(b"\n")


def _parse(block: bytes, where: str, first_line: int, lowest: int) -> tuple[CSR, np.ndarray]:
    """Return CSR rows with columns as written, and labels. Raises DataError for the first line that is at fault."""
    if b"_" in block:  # Python and scikit-learn read 1_000 as 1000; comments may contain it
        _refuse_faults(block, where, first_line, lowest, among=b"_")
    try:
        from sklearn.datasets import load_svmlight_file  # slow to import, and other files do not need it

        X, y = load_svmlight_file(io.BytesIO(block), zero_based=True)
        if not np.isinf(y).any() and (lowest == 0 or X.nnz == 0 or X.indices.min() >= lowest):
            return X, y
        reason = "an infinite label, or a column below the first"
    except (ValueError, OverflowError) as error:
        reason = str(error)
    _refuse_faults(block, where, first_line, lowest)
    raise DataError(f"{where}, line {first_line} or one of the next: {reason}. Give 'label column:value ...'.")


def _refuse_faults(block: bytes, where: str, first_line: int, lowest: int, among: bytes = b"") -> None:
    """Raise DataError for the first line that is at fault, of those that hold the bytes ``among``."""
    for number, line in enumerate(_lines(block), first_line):
        if among in line and (fault := _fault(line, lowest)) is not None:
            raise DataError(f"{where}, line {number}: {fault}")


def _lines(block: bytes) -> list[bytes]:
    """Return the lines of a block; only ``\\n`` ends a line, as in scikit-learn."""
    return block.removesuffix(b"\n").split(b"\n")


def _fault(line: bytes, lowest: int) -> str | None:
    """Return what is wrong with a line as text, or None."""
    tokens = _tokens(line)
    if not tokens:
        return None
    label, entries = tokens[0], tokens[1:]
    if ":" in label:
        return f"the label is missing, the line starts with {label!r}. Put the label first."
    if not (is_finite_number(label) or label.lower() == "nan"):
        return f"label {label!r}, expected one finite number. Correct or delete the line."
    if entries and entries[0].startswith("qid:"):
        entries = entries[1:]
    previous = -1
    for entry in entries:
        column, colon, value = entry.partition(":")
        if not colon:
            return f"{entry!r}, expected column:value. Correct or delete the line."
        if not column.lstrip("+").isdecimal() or int(column) > LARGEST_COLUMN:
            return f"column {column!r} in {entry!r}, expected a whole number >= 0. Correct the line."
        if int(column) < lowest:
            return f"column {column}, but columns count from {lowest}. Is the file zero_based=True?"
        if int(column) <= previous:
            return f"column {column} after column {previous}; columns must increase. Sort them, merge repeats."
        if not is_number(value):
            return f"value {value!r} of column {column}, expected a number. Correct or delete the line."
        previous = int(column)
    return None


def _tokens(line: bytes) -> list[str]:
    return line.split(b"#", 1)[0].decode("utf-8", "replace").split()
