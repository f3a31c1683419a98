"""Tables as text: CSV and TSV, plain or compressed."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING

import numpy as np

from chimap._messages import Message
from chimap._unicode import composed
from chimap._validation import DataError, check_choice
from chimap.data.io.files import (
    DataFile,
    decompressed,
    existing_file,
    needed,
    read_piece,
    uncompressed_name,
)
from chimap.data.label_kinds import TextLabels, is_number
from chimap.data.labels import Labels, labels_elsewhere
from chimap.data.remedies import readings_of
from chimap.data.rows import check_distinct
from chimap.data.source import BLOCK_BYTES, StreamSource
from chimap.data.table import (
    ColumnChoice,
    check_not_counting,
    counts,
    index_notes,
    naming_note,
    roles_of,
    unique_ids,
)

if TYPE_CHECKING:
    import pyarrow as pa

_PADDED = re.compile(r"0[0-9]+")


class Ids:
    """Texts of a column that may name the rows, collected while they are read."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._is_number = False

    def add(self, column: pa.ChunkedArray, *, only_text: bool = False) -> bool:
        """Add some rows and return True, or return False for a column of numbers if ``only_text``."""
        if self._is_number or (only_text and not self._parts and not is_text(column)):
            self._is_number = True
            return False
        self._parts.append(np.array([text or "" for text in column.to_pylist()]))
        return True

    def finish(self, n_rows: int) -> np.ndarray | None:
        """Return the texts of all rows, or None if they are fewer than ``n_rows``."""
        if sum(block.size for block in self._parts) != n_rows:
            return None
        return np.char.strip(np.concatenate(self._parts))


def is_text(column: pa.ChunkedArray) -> bool:
    """Return whether less than half of the first fields are numbers. If more are, the others count as mistakes.

    Whole numbers with zeros in front, such as 007, are names.
    """
    texts = [text for text in column.slice(0, 1000).to_pylist() if text]
    return 2 * sum(is_number(text) and not _PADDED.fullmatch(text.strip()) for text in texts) < len(texts)


def numbers_of(column: pa.ChunkedArray) -> np.ndarray | None:
    """Return the numbers of a column of text, with NaN for blanks; None where a field is not a number."""
    pyarrow, compute = needed("pyarrow", "CSV files"), needed("pyarrow.compute", "CSV files")
    try:
        return compute.utf8_trim_whitespace(column).cast("float64").to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        return None


def counts_on(column: pa.ChunkedArray, start: int) -> bool:
    """Return whether a column of text counts the rows one by one from ``start``."""
    values = numbers_of(column)
    return values is not None and counts(values, start)


def is_heading(fields: list[str], said: Iterable[object] = (), known: Iterable[str] | None = None) -> bool:
    """Return whether the first line of a table holds the names of its columns.

    It does if none of its fields is a number; if its numbers count the columns from 0, as in a data frame without
    names that was written with or without its index; or if it holds a word from ``said``, or most columns of a model.

    Parameters
    ----------
    fields : list of str
        Fields of the first line.
    said : iterable, default=()
        Names of columns that the caller gave, among other objects.
    known : iterable of str, default=None
        Columns of a model.

    Examples
    --------
    >>> is_heading(["a", "b"]), is_heading(["3", "b"]), is_heading(["3", "b"], said=["b"])
    (True, False, True)
    >>> is_heading(["", "0", "1"]), is_heading(["2", "1"]), is_heading(["2", "1"], known=["1", "2"])
    (True, False, True)
    """
    names = [field.strip() for field in fields]
    numbers = [(place, name) for place, name in enumerate(names) if is_number(name)]
    words = {word for word in said if isinstance(word, str) and not is_number(word)}
    if not numbers or not words.isdisjoint(names) or (known is not None and _most_are_in({*known}, names)):
        return True
    first = 0 if names[0] else 1  # the index of a data frame has no name
    return len(numbers) > 1 and all(name == str(place - first) for place, name in numbers)


def _most_are_in(known: set[str], names: list[str]) -> bool:
    """Return whether distinct names hold more than half of the known ones; missing ones are reported later, by name."""
    return len({*names}) == len(names) and 2 * len(known.intersection(names)) > len(known)


_QUOTE = b'"'
_MOST_LINES = 1000  # lines of a quoted field; beyond them a quote counts as a plain character, as in 5" disks
_SHOWN = 60  # most characters of a field in an error


def read_records(file: DataFile, stream: IO[bytes], size: int, place: str) -> bytes:
    """Return the next ``size`` bytes and the rest of their last record, whose quoted fields may have line breaks.

    See ``read_piece``.
    """
    lines = [read_piece(file, stream, size, place)]
    is_open = lines[0].count(_QUOTE) % 2 == 1
    while is_open and len(lines) <= _MOST_LINES:
        line = read_piece(file, stream, 0, place)
        if not line:
            break
        lines.append(line)
        is_open = line.count(_QUOTE) % 2 == 0
    return b"".join(lines)


def first_fault(
    file: IO[str], delimiter: str, names: Sequence[str], n_skip: int, numbers: Sequence[int]
) -> tuple[str, str] | None:
    """Return the place of the first fault in a table and what is wrong there; None where nothing is.

    Parameters
    ----------
    file : text file
        The table.
    delimiter : str
        The delimiter of its fields.
    names : sequence of str
        Names of the columns.
    n_skip : int
        Number of lines of the heading.
    numbers : sequence of int
        Positions of the columns that must hold numbers.
    """
    records = csv.reader(file, delimiter=delimiter)
    for record in records:
        if records.line_num <= n_skip or not record:
            continue
        line = f", line {records.line_num}"
        if len(record) != len(names):
            return line, f"{len(record)} fields, expected {len(names)} as in the first line. Mend the line."
        for place in numbers:
            if not is_number(record[place]):
                text, molecules = readings_of(names[place])
                return (
                    f"{line}, column {names[place]!r}",
                    Message(
                        "{!r}, expected a number. Mend it, name that column as the labels, set it aside with "
                        "{exclude=}, or read it as text with {} or as molecules with {}.",
                        _shortened(record[place]), names[place], text, molecules,
                    ),
                )  # fmt: skip
    return None


def _shortened(text: str) -> str:
    """Return a field as an error quotes it."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


_OTHER_DELIMITERS = ";\t|"


class CsvSource(StreamSource):
    """The rows of a table of numbers, one row per line, with or without a heading.

    The file is read once when the source is made, to count rows and read labels; each pass converts the numbers again,
    a few MiB at a time. Rows are float64. Blank lines are skipped. Fields may be quoted and then hold line breaks,
    except in the heading. A column without a name, or one that pandas writes for an index, is set aside as the ids,
    and so is a first column of text without repeats.

    Parameters
    ----------
    path : str or path
        The file, compressed if it ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst``; addresses work too.
    labels : str, int, array or file of labels, default=None
        Name or number of the column of labels (the first is 0, the last -1), or an array or file, see ``read_labels``.
        None takes the column ``y``, else ``label``, if a heading has it. All other columns are bins.
    header : bool or "auto", default="auto"
        Whether the first line holds names; for "auto" see ``is_heading``.
    delimiter : str, default=None
        None stands for a tab in ``.tsv`` files, else a comma; if the first line has no comma, the semicolon, tab or
        bar in it.
    choice : Choice, default=None
        Which columns are bins and ids.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ImportError
        Without pyarrow.
    DataError
        If the table cannot be read; the message names file, line and field.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.csv")
    ...     _ = path.write_text("a,b,species\\n0.5,0.5,cat\\n0,1,dog\\n")
    ...     source = CsvSource(path, labels="species")
    ...     next(source.chunks(2)).X, source.labels()
    (array([[0.5, 0.5],
           [0. , 1. ]]), array(['cat', 'dog'], dtype='<U3'))
    """

    is_sparse = False
    dtype = np.dtype(np.float64)
    held_bytes = 4.0 * BLOCK_BYTES

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Labels = None,
        *,
        header: bool | str = "auto",
        delimiter: str | None = None,
        choice: ColumnChoice | None = None,
    ) -> None:
        check_choice(header, "header", (True, False, "auto"))
        self._choice = choice or ColumnChoice()
        self.path = self._stored = existing_file(path)
        self.name = self.path.name
        self._read_heading(header, delimiter, labels)
        self._label = self._label_place(labels)
        roles = roles_of(self._names, self._label, self._choice, str(self.path), has_names=self._has_names)
        self._bins, self._id, self._id_is_index = roles.bins, roles.id, roles.is_index
        self._read_labels_and_ids(roles.is_explicit)
        id = None if self._id is None else self._names[self._id]
        self.notes = (*roles.notes(str(self.path), id), *self.notes)
        if self._label is None:
            self._y = labels_elsewhere(labels, self.n_rows, str(self.path), self._names)
        self.n_features = len(self._bins)
        used = {*self._bins, self._label, self._id}
        self.columns_aside = tuple(name for i, name in enumerate(self._names) if i not in used)
        if self._id is not None and np.unique(np.asarray(self.row_ids)).size < self.n_rows:
            self.columns_aside = (*self.columns_aside, self._names[self._id])
        if self._has_names:
            self.column_names = tuple(self._names[place] for place in self._bins)
        self.row_bytes = 8.0 * self.n_features
        self.held_bytes = 4.0 * BLOCK_BYTES + (0 if self.row_ids is None else self.row_ids.nbytes)

    def text_columns(self) -> list[str]:
        """Return the names of the columns among the bins whose first rows are text."""
        first = next(self._batches(self._bins, "string"))
        return [
            self._names[i] for i, column in zip(self._bins, first.columns, strict=True) if is_text(column)
        ]

    def _read_labels_and_ids(self, is_explicit: bool) -> None:
        """Count the rows, and read labels, ids and a possible index, in one pass."""
        where = f"{self.path}, column {self._names[self._label or 0]!r}"
        labels, ids = TextLabels(where, self._choice.missing), Ids()
        first = (
            next((i for i in range(len(self._names)) if i != self._label), 0) if self._id is None else None
        )
        may_be_index = not is_explicit and first is not None and first in self._bins
        self.n_rows = 0
        for batch in self._batches(
            [i for i in (self._label, self._id, first) if i is not None] or [0], "string"
        ):
            column = dict(
                zip((i for i in (self._label, self._id, first) if i is not None), batch.columns, strict=False)
            )
            if self._label is not None:
                coded = column[self._label].dictionary_encode()
                labels.add_coded(coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy())
            if self._id is not None:
                ids.add(column[self._id])
            elif first is not None and not ids.add(column[first], only_text=True):
                may_be_index = may_be_index and counts_on(column[first], self.n_rows)
                first = first if may_be_index and len(self._names) > 1 else None
            self.n_rows += batch.num_rows
        if self.n_rows == 0:
            raise DataError(f"{self.path}: no rows, only a heading or blank lines. Write it again.")
        self._y = None
        if self._label is not None:
            self._y = labels.finish()
        self._take_ids(ids, first, may_be_index and len(self._names) > 1)

    def _take_ids(self, ids: Ids, first: int | None, may_be_index: bool) -> None:
        ids_read = ids.finish(self.n_rows)
        if self._id is not None:
            assert ids_read is not None
            self.row_ids = ids_read if self._id_is_index else unique_ids(ids_read, str(self.path))
            self.notes = (*self.notes, *index_notes(self._names[self._id], ids_read, str(self.path)))
        elif ids_read is not None and np.unique(ids_read).size == ids_read.size:
            # A first column of text without repeats names the rows.
            self._id, self.row_ids = first, ids_read
            self.notes = (*self.notes, naming_note(self._names[first or 0], str(self.path)))
            self._bins = [place for place in self._bins if place != first]
            if not self._bins:
                text, molecules = readings_of(self._names[first or 0])
                raise DataError(
                    Message(
                        "{}: no columns beside labels and ids. Give rows of bins; to count the words of a column of "
                        "text use {}, for molecules {}.",
                        self.path, text, molecules,
                    )
                )  # fmt: skip
        elif ids_read is None and may_be_index and first is not None:
            check_not_counting(self._names[first] if self._has_names else "0", self.n_rows, str(self.path))

    def _blocks(self) -> Iterator[np.ndarray]:
        for batch in self._batches(self._bins, "float64"):
            columns = batch.columns
            if any(column.null_count for column in columns):
                raise self._fault("a field is blank", self._bins)
            out = np.empty((batch.num_rows, self.n_features))
            for place, column in enumerate(columns):
                out[:, place] = column.to_numpy()
            yield out

    def _batches(self, places: list[int], kind: str) -> Iterator[pa.RecordBatch]:
        """Yield the columns at these positions as record batches, all columns of one type."""
        pyarrow, reader = needed("pyarrow", "CSV files"), needed("pyarrow.csv", "CSV files")
        names = [str(place) for place in range(len(self._names))]
        names_read = [names[place] for place in places]
        types = dict.fromkeys(names_read, pyarrow.type_for_alias(kind))
        with decompressed(self.path) as file:
            try:
                for _ in range(self._skip):
                    read_piece(self.path, file, 0, "its heading")
                while piece := read_records(self.path, file, BLOCK_BYTES, "below its heading"):
                    if piece.isspace():
                        continue
                    # Not ``open_csv``: its thread may still hold the Python file when the interpreter exits, which
                    # aborts the process.
                    block = pyarrow.allocate_buffer(len(piece))
                    memoryview(block).cast("B")[:] = piece
                    yield from reader.read_csv(
                        pyarrow.BufferReader(block),
                        # One thread: more do not parse faster, and reading happens beside the computing thread.
                        reader.ReadOptions(column_names=names, block_size=len(piece), use_threads=False),
                        reader.ParseOptions(delimiter=self._delimiter),
                        reader.ConvertOptions(
                            column_types=types, include_columns=names_read, null_values=[""]
                        ),
                    ).to_batches()
            except (pyarrow.ArrowException, EOFError, OSError) as error:
                raise self._fault(str(error), () if kind == "string" else places) from error

    def _read_heading(self, header: bool | str, delimiter: str | None, labels: Labels) -> None:
        """Find the delimiter, the names of the columns, and the number of lines to skip."""
        number, line = 0, ""
        with decompressed(self.path) as file:
            while not line.strip():
                number += 1
                piece = read_piece(self.path, file, 0, f"line {number}")
                if not piece:
                    raise DataError(f"{self.path}: no rows, only blank lines. Write it again.")
                line = self._decoded(piece, number)
        self._delimiter = delimiter or self._usual_delimiter(line)
        if "\r" in line.strip("\r\n"):
            raise DataError(
                f"{self.path}, line {number}: a CR within the line. Lines that end in CR alone are not read; "
                "write them "
                "with LF, as tr '\\r' '\\n' does."
            )
        fields = next(csv.reader([line.removeprefix("\ufeff").strip("\r\n")], delimiter=self._delimiter))
        words = (labels, *self._choice.said())
        has_header = is_heading(fields, words, self._choice.names) if header == "auto" else bool(header)
        self._has_names = has_header
        self._names = (
            [composed(field.strip()) for field in fields]
            if has_header
            else [str(i) for i in range(len(fields))]
        )
        self._skip = number if has_header else 0
        check_distinct(self._names, str(self.path))

    def _usual_delimiter(self, line: str) -> str:
        if uncompressed_name(self.name).endswith(".tsv"):
            return "\t"
        return "," if "," in line else next((d for d in _OTHER_DELIMITERS if d in line), ",")

    def _label_place(self, labels: Labels) -> int | None:
        """Return the position of the column that ``labels`` names, or None where it names no column."""
        if labels is None:
            name = self._choice.usual_label(self._names, str(self.path)) if self._has_names else None
            return None if name is None else self._names.index(name)
        if isinstance(labels, str) and labels in self._names:
            return self._names.index(labels)
        if isinstance(labels, int) or (isinstance(labels, str) and labels.removeprefix("-").isdecimal()):
            place = int(labels)
            if -len(self._names) <= place < len(self._names):
                return place % len(self._names)
            raise DataError(
                f"{self.path}: no column {place}; there are {len(self._names)}, the first is 0, the last -1."
            )
        return None

    def _fault(self, reason: str, numbers: Sequence[int] = ()) -> DataError:
        """Return the error for the first line that is at fault, or with ``reason`` from the reader if none is found.

        ``numbers`` are the positions of the columns that were read as numbers.
        """
        with decompressed(self.path) as file:
            try:
                text = io.TextIOWrapper(file, "utf-8-sig", newline="")
                fault = first_fault(text, self._delimiter, self._names, self._skip, numbers)
            except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
                reason, fault = f"{error}", None
        place, fault_text = fault or (
            "",
            f"cannot be read ({reason}). Is it damaged, cut off or not text in UTF-8?",
        )
        return DataError(Message("{}{}: {}", self.path, place, fault_text))

    def _decoded(self, piece: bytes, line: int) -> str:
        try:
            return piece.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.path}, line {line}: not text in UTF-8 ({error}). Save it in UTF-8, or give the file the "
                "ending of its kind."
            ) from error
