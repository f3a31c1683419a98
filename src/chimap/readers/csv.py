"""Tables as text: CSV and TSV, plain or compressed."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from chimap._messages import Message
from chimap._types import JSON
from chimap._unicode import composed
from chimap._validation import DataError, check_choice
from chimap.data.gaps import are_gaps_kept
from chimap.data.label_kinds import as_number, is_number, is_text, stands_for_missing, words_for_missing
from chimap.data.labels import Labels, numbers_or_text
from chimap.data.source import BLOCK_BYTES, StreamSource
from chimap.data.table import ColumnChoice, readings_of
from chimap.readers.columns import BATCH, DataTable, TableColumns, Values, text_or_undecoded
from chimap.readers.decimals import COMMA, POINT, Marks, MarksInUse
from chimap.readers.io.encodings import as_utf8, encoding_of, first_fault, no_text, why_no_text
from chimap.readers.io.files import COMPRESSIONS, DataFile, existing_file, is_folder, read_piece, uncompressed_name
from chimap.readers.label_files import labels_elsewhere, tells_of_heading
from chimap.readers.row_file import BlockFile

if TYPE_CHECKING:
    import pyarrow as pa


_OTHER_DELIMITERS = ";\t|"
_SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)  # with which spreadsheets name the delimiter
_QUOTED_NAMES = re.compile(r'"[^"]*"( "[^"]*")+')  # as R's write.table writes them
_LOOK_LINES, _LOOK_BYTES, _FEWEST_LOOK_LINES = 100, 2**18, 3  # lines below the first that are looked at
_FEWEST_NUMBERS_OF_HEADING, _FEWEST_ABOVE_FRACTIONS = 8, 3
_MOST_DISTINCT_OF_ROW = 0.5  # share of different numbers in rows that have repeats
_QUOTE = b'"'
_MOST_LINES = 1000  # lines of a quoted field; beyond them a quote counts as a plain character, as in 5" disks
_MOST_CHARACTERS_SHOWN = 60  # of a field in an error
_LONGEST_FIELD = 2**31 - 1
_PADDED_NUMBER = re.compile(r"0[0-9]+")


class TextTable(DataTable):
    """A table as text: its delimiter, the names of its columns, and its records.

    Parameters
    ----------
    file : DataFile
        The file, compressed if its ending says so.
    header : bool or "auto", default="auto"
        Whether the first line that is not blank holds names; for "auto" see ``is_heading``.
    delimiter : str, default=None
        None stands for what a first line ``sep=;`` says, for a tab in ``.tsv`` files and in others with tabs in the
        first line that are not ``.csv``, else for a comma; if the first line has no comma, the semicolon, tab or bar
        in it, or the blank between quoted names.
    said, known : iterable, default=()
        Words of the caller and columns of a model, which tell a heading from a row.

    Attributes
    ----------
    heading : list of str
        The fields of the first line.
    names : list of str
        Names of the columns; their positions where the table has none. The first is "" where rows have one field more
        than the heading, as R's ``write.table`` writes the names of rows.
    width : int
        Fields of a record. Where each line ends in a delimiter, it is one more than there are names.
    has_names : bool
        Whether the first line holds names.
    has_commas : bool
        Whether numbers may have decimal commas: beside semicolons, and where first lines between tabs, bars or blanks
        have a number that only a comma explains, as 0,5 and unlike 1,234.
    comments : list of str
        The lines of ``#`` above the heading.
    look : list of list of str
        The first records below the first line.
    notes : tuple of str
        Sentences for the user about how the first lines were read.

    Raises
    ------
    DataError
        For a file without lines, or not in its encoding; see ``encodings``.
    """

    def __init__(
        self,
        file: DataFile,
        *,
        header: bool | str = "auto",
        delimiter: str | None = None,
        said: Iterable[object] = (),
        known: Iterable[str] | None = None,
    ) -> None:
        self.file = self.stored = file
        self.address, self.has_types = file.address, False
        self.notes: tuple[str, ...] = ()
        self.comments: list[str] = []
        self._encoding, self.keeps_gaps = encoding_of(file), are_gaps_kept()
        with self._stream() as stream:
            head = _FirstLines(file, stream)
            number, self.delimiter = self._first_line(head, delimiter)
            self.heading, n_lines = self._first_record(head, number)
            last = number + n_lines - 1
            self.look = self._first_records(head, last)
        self.has_commas = self.delimiter == ";" or (
            self.delimiter != ","
            and any("," in field and COMMA.reads(field) and not POINT.reads(field) for field in chain(*self.look))
        )
        first = [COMMA.plain(field) for field in self.heading] if self.has_commas else self.heading
        is_program = columns_of_program(self.heading) is not None
        self.has_names = bool(header) if header != "auto" else is_program or is_heading(first, said, known)
        if header == "auto" and not self.has_names and _names_columns(self.heading, self.look):
            self.has_names = True
            self.notes = (f"{file}: the numbers of the first line are taken for names of the columns.",)
        self._n_skipped = last if self.has_names else number - 1
        self.width, fields = len(self.heading), self.heading
        if _all_end_blank(self.look) and all(len(record) == self.width + 1 for record in self.look):
            self.width += 1
        elif self.has_names and _have_row_names(self.look, self.width):
            self.width, fields = self.width + 1, ["", *fields]
        elif len(fields) > 1 and not fields[-1].strip() and _all_end_blank(self.look):
            fields = fields[:-1]
        self.names = (
            [composed(field.strip()) for field in fields]
            if self.has_names
            else [str(place) for place in range(len(fields))]
        )

    def marks(self, places: Sequence[int]) -> tuple[Marks, str] | None:
        """Return how numbers of these columns are written, with an example; None as programs write them."""
        if not self.has_commas:
            return None
        found = MarksInUse()
        for batch in self.read(places, "string"):
            for column in batch.columns:
                found.add(column)
        return None if found.marks is None else (found.marks, found.example)

    def batches(self, columns: list[str], n_rows: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield columns of text as ``DataTable`` does, a few MiB at a time."""
        import pyarrow

        for batch in self.read([*map(self._place, columns)], "string"):
            yield pyarrow.record_batch(batch.columns, names=columns)

    def values(self, columns: list[str]) -> Iterator[Values]:
        """Yield fields as ``DataTable`` does, as text, or ``Undecoded`` where bytes are not text in UTF-8."""
        places = {name: self._place(name) for name in columns}
        with self._opened(strict=True) as records:
            while batch := [*islice(records, BATCH)]:
                for line, record in batch:
                    if len(record) != self.width:
                        raise self.misfit(line, record)
                fields = {
                    name: [text_or_undecoded(record[place]) for _, record in batch] for name, place in places.items()
                }
                yield Values(fields, len(batch))

    @cached_property
    def _place(self) -> Callable[[str], int]:
        """A function that returns the position of the first column of a name."""
        return {name: place for place, name in reversed([*enumerate(self.names)])}.__getitem__

    def read(self, places: Sequence[int], kind: str) -> Iterator[pa.RecordBatch]:
        """Yield the columns at these positions, all as one type of Arrow: "string" or "float64".

        Raises DataError for the first line at fault.
        """
        import pyarrow
        from pyarrow import csv as reader

        names = [str(place) for place in range(self.width)]
        names_read = [names[place] for place in places]
        types = dict.fromkeys(names_read, pyarrow.type_for_alias(kind))
        blanks = ["", *words_for_missing()] if self.keeps_gaps and kind == "float64" else [""]
        with self._stream() as file:
            try:
                for _ in range(self._n_skipped):
                    read_piece(self.file, file, 0, "its heading")
                while piece := _read_records(self.file, file, BLOCK_BYTES, "below its heading", self.delimiter):
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
                        reader.ParseOptions(delimiter=self.delimiter),
                        reader.ConvertOptions(column_types=types, include_columns=names_read, null_values=blanks),
                    ).to_batches()
            except (pyarrow.ArrowException, EOFError, OSError) as error:
                raise self.fault(str(error), places if kind == "float64" else ()) from error

    def ids(self, column: pa.Array, name: str) -> np.ndarray:
        """Return fields without the blanks around them."""
        return np.char.strip(np.array([composed(text or "") for text in column.to_pylist()]))

    def may_be_ids(self, column: pa.Array, name: str, *, is_text: bool | None) -> np.ndarray:
        """Return fields as text or as numbers, NaN where one is none; the first ones decide which they are."""
        is_text = looks_like_text(column.slice(0, 1000).to_pylist(), self.has_commas) if is_text is None else is_text
        return self.ids(column, name) if is_text else _numbers(column)

    def numbered_records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the last line of each record, and its fields, however many there are.

        Raise DataError where the file ends within a quoted field.
        """
        lines: list[str] = []
        latest = ""
        with self._opened(lines) as records:
            for numbered in records:
                latest = "".join(lines)
                lines.clear()
                yield numbered
            if latest.count('"') % 2:
                _check_closed(self.file, latest, self.delimiter)

    def misfit(self, line: int, record: list[str]) -> DataError:
        """Return the error for a record with another number of fields."""
        return DataError(
            f"{self.file}, line {line}: {len(record)} fields, expected {self.width} as in the first line. Mend the "
            f"line: it is cut off, or a field with {self.delimiter!r} or a quote in it is not quoted."
        )

    def fault(self, reason: str, numbers: Sequence[int] = (), marks: tuple[Marks, str] | None = None) -> DataError:
        """Return the error for the first line that is at fault, or with ``reason`` from the reader if none is found.

        ``numbers`` are the positions of the columns that were read as numbers, and ``marks`` how these are written.
        """
        reads = is_number if marks is None else marks[0].reads
        try:
            with self._opened() as records:
                for line, record in records:
                    if len(record) != self.width:
                        return self.misfit(line, record)
                    for place in numbers:
                        if reads(record[place]):
                            continue
                        if marks is not None and any(other.reads(record[place]) for other in (COMMA, POINT)):
                            return self._other_marks(line, place, record[place], marks)
                        return self._no_number(line, place, record[place])
        except DataError as error:
            return error
        return DataError(f"{self.file}: cannot be read ({reason}). Is it damaged or cut off?")

    @contextmanager
    def _opened(
        self, seen: list[str] | None = None, *, strict: bool = False
    ) -> Iterator[Iterator[tuple[int, list[str]]]]:
        """Open the records below the heading that are not blank, each with the number of its last line.

        seen: gets the lines that are read. ``strict``: bytes that are not text come as lone surrogates, and quotes must
        be closed.
        """
        csv.field_size_limit(_LONGEST_FIELD)
        with self._stream() as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape" if strict else "strict", newline="")
            records = csv.reader(
                lines if seen is None else _noted(lines, seen), delimiter=self.delimiter, strict=strict
            )
            try:
                yield (
                    (records.line_num, record) for record in records if record and records.line_num > self._n_skipped
                )
            except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
                raise first_fault(self.file, self._encoding) or DataError(
                    f"{self.file}: cannot be read ({error}). It is cut off or damaged; copy it again."
                ) from error
            finally:
                lines.detach()

    def _other_marks(self, line: int, place: int, field: str, marks: tuple[Marks, str]) -> DataError:
        what = "commas" if marks[0] == COMMA else "points"
        return DataError(
            f"{self.file}, line {line}, column {self.names[place]!r}: {field!r}, but other numbers, such as "
            f"{marks[1]!r}, have decimal {what}. Write all numbers in one way."
        )

    def _no_number(self, line: int, place: int, field: str) -> DataError:
        name = self.names[place]
        text, molecules = readings_of(name)
        shown = field
        if not field.strip() or stands_for_missing(field.strip()):
            return DataError(
                Message(
                    "{}, line {}, column {!r}: {!r}, expected a number. Fill it, take missing counts as zero with "
                    "{missing_counts='zero'} or leave their rows out with {missing_counts='drop-row'}; or name that "
                    "column as the labels, or set it aside with {exclude=}.",
                    self.file,
                    line,
                    name,
                    field,
                    name,
                )
            )
        if len(field) > _MOST_CHARACTERS_SHOWN:
            shown = field[: _MOST_CHARACTERS_SHOWN - 3] + "..."
        return DataError(
            Message(
                "{}, line {}, column {!r}: {!r}, expected a number. Mend it, name that column as the labels, set it "
                "aside with {exclude=}, or read it as text with {} or as molecules with {}.",
                self.file,
                line,
                name,
                shown,
                name,
                text,
                molecules,
            )
        )

    def _stream(self) -> AbstractContextManager[IO[bytes]]:
        return as_utf8(self.file, self._encoding)

    def _first_line(self, head: _FirstLines, delimiter: str | None) -> tuple[int, str]:
        """Return the number of the line that begins the table, and its delimiter.

        It is the first line that is neither blank, nor ``sep=;``, nor a comment. Lines that begin with ``#`` are
        comments, but for the last of them where it has as many fields, of two or more, as the line below.
        """
        marked: list[tuple[int, str]] = []
        for number, line in head.below(0):
            if not line.strip():
                continue
            if delimiter is None and not marked and (found := _SEPARATOR_LINE.fullmatch(line.strip())):
                delimiter = found[1]
            elif line.startswith("#"):
                marked.append((number, line))
            else:
                delimiter = delimiter or self._usual_delimiter(line)
                size = len(_fields(line, delimiter))
                if marked and size == 1:  # a single column, whose name may begin with the mark
                    return marked[0][0], delimiter
                is_heading = bool(marked) and size == len(_fields(marked[-1][1], delimiter))
                self.comments = [text for _, text in (marked[:-1] if is_heading else marked)]
                return marked[-1][0] if is_heading else number, delimiter
        if not marked:
            raise DataError(f"{self.file}: no rows, only blank lines. Write it again.")
        number, line = next((mark for mark in reversed(marked) if "\t" in mark[1]), marked[0])
        return number, delimiter or self._usual_delimiter(line)

    def _first_record(self, head: _FirstLines, number: int) -> tuple[list[str], int]:
        """Return the fields of the record that begins with a line, and how many lines it has."""
        lines: list[str] = []
        for _, line in islice(head.below(number - 1), _MOST_LINES):
            lines.append(line.strip("\r\n") + "\n")
            try:
                return next(csv.reader(lines, delimiter=self.delimiter, strict=True)), len(lines)
            except csv.Error:  # a quoted field may have line breaks
                continue
        return _fields(lines[0], self.delimiter), 1

    def _first_records(self, head: _FirstLines, n_skipped: int) -> list[list[str]]:
        """Return the records on some lines below the first ones, as far as these can be read."""
        lines: list[str] = []
        size = 0
        try:
            for _, line in islice(head.below(n_skipped), _LOOK_LINES):
                lines.append(line)
                size += len(line)
                if size >= _LOOK_BYTES and len(lines) >= _FEWEST_LOOK_LINES:
                    break
        except DataError:
            pass  # whoever reads the rows will say so
        return [record for record in csv.reader(lines, delimiter=self.delimiter) if record]

    def _usual_delimiter(self, line: str) -> str:
        name = uncompressed_name(self.file.name)
        if name.endswith(".tsv") or (not name.endswith(".csv") and "\t" in line):
            return "\t"
        if _QUOTED_NAMES.fullmatch(line.strip()):
            return " "
        if ";" in line and all("," not in field or COMMA.reads(field) for field in line.split(";")):
            return ";"  # each comma is that of a number, as in wavelengths
        return "," if "," in line else next((d for d in _OTHER_DELIMITERS if d in line), ",")


class _FirstLines:
    """The first lines of a text, which are read once, as far as they are asked for."""

    def __init__(self, file: DataFile, stream: IO[bytes]) -> None:
        self._file, self._stream = file, stream
        self._lines: list[str] = []

    def below(self, n_skipped: int) -> Iterator[tuple[int, str]]:
        """Yield the lines below the first ones with their numbers. Raises DataError for a line that is no text."""
        number = n_skipped
        while number < len(self._lines) or self._read(number + 1):
            number += 1
            yield number, self._lines[number - 1]

    def _read(self, n: int) -> bool:
        """Read up to a line; return whether there is one of that number."""
        while len(self._lines) < n:
            number = len(self._lines) + 1
            piece = read_piece(self._file, self._stream, 0, f"line {number}")
            if not piece:
                return False
            try:
                line = piece.decode("utf-8").removeprefix("\ufeff")
            except UnicodeDecodeError as error:
                raise no_text(self._file, number, str(why_no_text(piece))) from error
            if "\r" in line.strip("\r\n"):
                raise DataError(
                    f"{self._file}, line {number}: a CR within the line. Lines that end in CR alone are not read; "
                    "write them with LF, as tr '\\r' '\\n' does."
                )
            self._lines.append(line)
        return True


class CsvSource(StreamSource):
    """The rows of a table of numbers, one row per line, with or without a heading.

    The file is read twice: when the source is made, to count rows and read labels and ids, and by the first whole pass,
    which converts the numbers a few MiB at a time and keeps them on a temporary file for all passes behind it. Where
    numbers may have decimal commas, it is read once more to find that out. Where ``TMPDIR`` has too little room for the
    temporary file, or in another process, each pass reads the file. Rows are float64. Blank lines are skipped. Fields
    may be quoted and then hold line breaks. A column without a name, or one that pandas writes for an index, is set
    aside as the ids, and so is a first column of text without repeats.

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
    choice : ColumnChoice, default=None
        Which columns are bins and ids.
    table : TextTable, default=None
        The table, where its first lines have been read already.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
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
    _kept: BlockFile | None = None  # the rows, once a pass has read all of them

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Labels = None,
        *,
        header: bool | str = "auto",
        delimiter: str | None = None,
        choice: ColumnChoice | None = None,
        table: TextTable | None = None,
    ) -> None:
        check_choice(header, "header", (True, False, "auto"))
        choice = choice or ColumnChoice()
        said = (labels, *choice.said())
        self._table = table = table or TextTable(
            existing_file(path), header=header, delimiter=delimiter, said=said, known=choice.names
        )
        self.path = self._stored = table.file
        self.name, where = self.path.name, str(self.path)
        names = table.names
        columns = TableColumns(table, labels, choice)
        columns.read()
        self.n_rows, label, roles = columns.n_rows, columns.label, columns.roles
        if self.n_rows == 0:
            raise DataError(f"{self.path}: no rows, only a heading or blank lines. Write it again.")
        self._y = None if columns.y is None else self._labels(columns.y, choice.missing)
        self.row_ids, self._bins = columns.ids, roles.bins
        self.notes = (*self.notes, *table.notes, *columns.notes)
        may_be_heading = header == "auto" and not table.has_names and len({*table.heading}) == len(table.heading)
        if label is None and may_be_heading and tells_of_heading(labels, self.n_rows):
            self.notes = ()
            self.__init__(path, labels, header=True, delimiter=delimiter, choice=choice)  # type: ignore[misc]
            note = f"{where}: the first line is taken for names of the columns: there is a label less than lines."
            self.notes = (*self.notes, note)
            return
        if label is None:
            self._y = labels_elsewhere(labels, self.n_rows, where, names)
        self.n_features = len(self._bins)
        self._marks = table.marks(self._bins)
        if self._marks is not None:
            what = "commas" if self._marks[0] == COMMA else "points, and marks between thousands"
            self.notes = (*self.notes, f"{where}: numbers, such as {self._marks[1]!r}, have decimal {what}.")
        self.columns_aside = roles.aside(names)
        if roles.id is not None and np.unique(np.asarray(self.row_ids)).size < self.n_rows:
            self.columns_aside = (*self.columns_aside, names[roles.id])
        if table.has_names:
            self.column_names = tuple(names[place] for place in self._bins)
        self.row_bytes = 8.0 * self.n_features
        self.held_bytes = 4.0 * BLOCK_BYTES + (0 if self.row_ids is None else self.row_ids.nbytes)

    def text_columns(self) -> list[str]:
        """Return the names of the columns among the bins whose first rows are text."""
        first = next(self._table.read(self._bins, "string"))
        columns = zip(self._bins, first.columns, strict=True)
        return [
            self._table.names[place] for place, column in columns if looks_like_text(column.slice(0, 1000).to_pylist())
        ]

    def _labels(self, y: np.ndarray, missing: object) -> np.ndarray:
        """Return labels as they are, or as numbers where each word is one with a decimal comma."""
        if not self._table.has_commas or not is_text(y):
            return y
        words = [*np.unique(np.ma.compressed(np.ma.asarray(y)))]
        if not words or not all(COMMA.reads(word) for word in words):
            return y
        example = next((word for word in words if COMMA.decimal in word), words[0])
        self.notes = (f"{self.path}: the labels, such as {str(example)!r}, are numbers with decimal commas.",)
        plain = [None if word is np.ma.masked else COMMA.plain(word) for word in np.ma.asarray(y)]
        return numbers_or_text(plain, f"{self.path}, labels", missing)

    def __getstate__(self) -> JSON:
        # A copy in another process reads the original file: the temporary file cannot be sent.
        return {**self.__dict__, "_kept": None}

    def _blocks(self) -> Iterator[np.ndarray]:
        if self._kept is not None:
            yield from self._kept.blocks(self.dtype)
            return
        kept: BlockFile | None = BlockFile()
        n_rows = 0
        for block in self._parsed():
            n_rows += block.shape[0]
            kept = kept if kept is not None and kept.add(block) else None
            # Before the last block is given away: who looks at some rows may not come back for more.
            self._kept = kept if n_rows == self.n_rows else None
            yield block

    def _parsed(self) -> Iterator[np.ndarray]:
        """Yield the rows as the file has them."""
        kind = "float64" if self._marks is None else "string"
        for batch in self._table.read(self._bins, kind):
            out = np.empty((batch.num_rows, self.n_features))
            for place, column in enumerate(batch.columns):
                numbers = self._numbers_of(column)
                if numbers is None:
                    raise self._table.fault("a field is blank", self._bins, self._marks)
                out[:, place] = numbers
            yield out

    def _numbers_of(self, column: pa.ChunkedArray) -> np.ndarray | None:
        """Return the numbers of a column, NaN for blanks where these are kept; None for blanks that are not."""
        if self._marks is not None:
            return self._marks[0].numbers(column)
        is_whole = self._table.keeps_gaps or not column.null_count
        return np.asarray(column.to_numpy(zero_copy_only=False)) if is_whole else None


# The columns besides names and counts of tables with samples as columns, by the first words of programs' headings.
_COLUMNS_OF_PROGRAMS = {
    "Geneid": ("Chr", "Start", "End", "Strand", "Length"),  # featureCounts
    "clade_name": ("NCBI_tax_id", "clade_taxid", "additional_species"),  # MetaPhlAn
    "Representative_Sequence": ("total",),  # count tables of mothur
    **dict.fromkeys(
        ("#OTU ID", "#OTUID", "#ASV ID", "#ASVID", "#Feature ID", "#FeatureID"), ()
    ),  # BIOM, QIIME, USEARCH
}


def columns_of_program(heading: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns that are no samples in the tables of the program that writes such a heading, None for others.

    >>> columns_of_program(["Representative_Sequence", "total", "F3D0"]), columns_of_program(["id", "a"])
    (('total',), None)
    """
    first = heading[0].strip()
    return _COLUMNS_OF_PROGRAMS.get(first, _COLUMNS_OF_PROGRAMS.get(first.lstrip("# ")))


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
    bins = {*(known or ())}
    if not numbers or not words.isdisjoint(names):
        return True
    if len({*names}) == len(names) and 2 * len(bins.intersection(names)) > len(bins):  # others are reported later
        return True
    first = 0 if names[0] else 1  # the index of a data frame has no name
    return len(numbers) > 1 and all(name == str(place - first) for place, name in numbers)


_SVMLIGHT_ENTRY = re.compile(r"(\d+|qid):\S+")
_TEXT_ENDINGS = tuple(text + packed for text in (".txt", ".dat") for packed in COMPRESSIONS)


def is_text_table(address: str) -> bool:
    """Return whether a file that may be svmlight text (``.txt``, ``.dat``) is a table with a delimiter.

    Its first line that is neither blank nor a comment then has several fields, and no ``index:value`` for the second.
    """
    if not address.lower().endswith(_TEXT_ENDINGS) or is_folder(address):
        return False
    file = existing_file(address)
    with as_utf8(file, encoding_of(file)) as stream:
        piece = read_piece(file, stream, 0, "line 1")
        while piece and (piece.isspace() or piece.startswith(b"#")):
            piece = read_piece(file, stream, 0, "its first lines")
    line = piece.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    words = line.split()
    if len(words) > 1 and _SVMLIGHT_ENTRY.fullmatch(words[1]):
        return False
    return any(mark in line for mark in ("\t", ",", *_OTHER_DELIMITERS)) or bool(_QUOTED_NAMES.fullmatch(line))


def _names_columns(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a first line with numbers names the columns of rows that look different.

    It does if a field of it is text where the rows have numbers; or if its numbers, at least eight, all differ, and
    either rise or fall as wavelengths do, which no row does, or are whole, while every row repeats half of its own.
    From three numbers on it does if they are whole and rise or fall, while all those of rows are fractions or 0.

    >>> rows = [["0.2", "0.1", "1"], ["0.3", "0.1", "0"], ["0.1", "0.1", "1"]]
    >>> _names_columns(["400", "402", "y"], rows), _names_columns(["400", "402", "1"], rows)
    (True, False)
    >>> _names_columns([*"34567890"], [[*"10020000"], [*"00000007"], [*"01000000"]])
    True
    """
    rows = [row for row in rows if len(row) - len(first) in (0, 1)]
    if len(rows) < _FEWEST_LOOK_LINES:
        return False
    for place, field in enumerate(first):
        is_word = field.strip()[:1].isalpha() and not stands_for_missing(field) and not is_number(field)
        if is_word and all(is_number(row[place]) for row in rows):
            return True
    places = [place for place, field in enumerate(first) if is_number(field)]
    names = [as_number(first[place]) for place in places]
    values = [[as_number(row[place]) for place in places] for row in rows]
    if len({*names}) < len(names) or any(None in row for row in values):
        return False
    are_whole = all(isinstance(name, int) for name in names)
    if len(names) < _FEWEST_NUMBERS_OF_HEADING:
        may_be_axis = len(names) >= _FEWEST_ABOVE_FRACTIONS and are_whole and _is_monotone(names)
        return may_be_axis and all(any(row) and all(not value or value % 1 for value in row) for row in values)
    if _is_monotone(names):
        return not any(map(_is_monotone, values))
    return are_whole and all(len({*row}) <= _MOST_DISTINCT_OF_ROW * len(row) for row in values)


def _is_monotone(values: Sequence[Any]) -> bool:
    signs = {(b > a) - (b < a) for a, b in pairwise(values)}
    return signs in ({1}, {-1})


def _have_row_names(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether most rows have one field more than the heading, a name of the row in front.

    A single row tells only if that name is text; else it may be a row at fault.
    """
    n_more = sum(len(row) == width + 1 for row in rows)
    return 2 * n_more > len(rows) and (len(rows) > 1 or not is_number(rows[0][0]))


def _all_end_blank(rows: Sequence[Sequence[str]]) -> bool:
    return bool(rows) and all(not row[-1].strip() for row in rows)


def _fields(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line.strip("\r\n")], delimiter=delimiter))


def _read_records(file: DataFile, stream: IO[bytes], size: int, place: str, delimiter: str) -> bytes:
    """Return the next ``size`` bytes and the rest of their last record, whose quoted fields may have line breaks.

    See ``read_piece``. Raise DataError where the file ends within a quoted field: what is missing may be digits.
    """
    lines = [read_piece(file, stream, size, place)]
    is_open = lines[0].count(_QUOTE) % 2 == 1
    while is_open and len(lines) <= _MOST_LINES:
        line = read_piece(file, stream, 0, place)
        if not line:
            _check_closed(file, b"".join(lines).decode("utf-8", "surrogateescape"), delimiter)
            break
        lines.append(line)
        is_open = line.count(_QUOTE) % 2 == 0
    return b"".join(lines)


def _noted(lines: Iterable[str], seen: list[str]) -> Iterator[str]:
    """Yield lines, each of which is added to those seen."""
    for line in lines:
        seen.append(line)
        yield line


def _check_closed(file: DataFile, records: str, delimiter: str) -> None:
    """Raise DataError if the last of these records ends within a quoted field; a quote in any other is a character."""
    lines = io.StringIO(records, newline="")
    try:
        for _ in csv.reader(lines, delimiter=delimiter, strict=True):
            pass
    except csv.Error as error:
        if not lines.read(1):  # other faults, in lines before, are told by the reader of numbers
            raise DataError(f"{file}: cannot be read ({error}). It is cut off or damaged; copy it again.") from error


def looks_like_text(fields: Sequence[str], has_commas: bool = False) -> bool:
    """Return whether less than half of the first fields are numbers. If more are, the others count as mistakes.

    Whole numbers with zeros in front, such as 007, are names. has_commas: whether numbers may have decimal commas.
    """
    texts = [text for text in fields[:1000] if text]
    texts = [COMMA.plain(POINT.plain(text)) for text in texts] if has_commas else texts
    return 2 * sum(is_number(text) and not _PADDED_NUMBER.fullmatch(text.strip()) for text in texts) < len(texts)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Return the numbers of a column of text, NaN for blanks; all NaN where a field is not a number."""
    import pyarrow
    from pyarrow import compute

    try:
        return np.asarray(compute.utf8_trim_whitespace(column).cast("float64").to_numpy(zero_copy_only=False))
    except pyarrow.ArrowInvalid:
        return np.full(len(column), np.nan)
