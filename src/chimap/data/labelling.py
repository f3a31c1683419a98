"""Labelled rows: rows without a label are left out, and labels of another table are joined to rows by their ids."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chimap._frames import is_frame, names_of
from chimap._messages import Message
from chimap._types import Columns
from chimap._validation import DataError
from chimap.data.catalogue import TEXT_TABLES, opener_of
from chimap.data.formats.arrow_files import IPC, PARQUET, find_parts, may_be_classes
from chimap.data.formats.batches import stream_columns
from chimap.data.formats.csv import CsvSource, TextTable
from chimap.data.formats.fields import Reading
from chimap.data.formats.mothur import is_shared
from chimap.data.formats.qiime import QiimeMetadata, artifact_metadata, is_qiime_metadata
from chimap.data.formats.records import (
    LINES,
    ArrowRecords,
    Records,
    TextRecords,
    has_records,
    records_of,
    refuse_undecoded,
)
from chimap.data.formats.transposed import is_transposed
from chimap.data.io.files import base_name, existing_file, is_address, split_member, uncompressed_name
from chimap.data.label_kinds import (
    TextLabels,
    as_number,
    as_targets,
    is_finite_number,
    is_text,
    marks_of,
    same_value,
    stands_for_missing,
    texts_of,
    why_text,
)
from chimap.data.labels import UNREAD, Labels, clean_labels, task_column
from chimap.data.remedies import file_remedy
from chimap.data.rows import check_distinct
from chimap.data.source import Source
from chimap.data.table import ColumnChoice, checked_ids, is_path, place_of, places_of, unique_ids
from chimap.data.views import ChosenRows, Labelled

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


class NoLabelsError(DataError):
    """No row has a label."""


class NoSharedIdsError(DataError):
    """No row has an id that a table of labels has."""


def labelled(source: Source, missing: object = None) -> Source:
    """Return the source with only the rows that have a label, or unchanged where all have one or none needs one.

    Rows whose record could not be read are left out too, with a note that names the first of them.

    Whole labels that contain a single negative value, -1 beside 0 and 1, get a note: -1 often marks a missing label,
    but may be a class.

    Parameters
    ----------
    source : Source
        The rows.
    missing : object, default=None
        A value that marks a missing label, besides None, NaN and empty text.

    Raises
    ------
    DataError
        If no label is left, or most records could not be read.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> source = labelled(ArraySource(np.eye(3), [0, -1, 1]), missing=-1)
    >>> source.labels(), source.n_left_out
    (array([0, 1]), 1)
    """
    y = source.labels()
    if y is None:
        return source
    if source.unread:
        return labelled(_readable(source, y), missing)
    if y.ndim == 2:
        return _with_entries(source, y, missing)
    is_missing = np.ma.getmaskarray(y) | _marked(y, missing)
    values = np.ma.getdata(y)
    if not is_missing.any():
        source.notes = (*source.notes, *(note for note in _doubts(source, values) if note not in source.notes))
        return source
    rows = np.flatnonzero(~is_missing)
    if rows.size == 0:
        raise NoLabelsError(
            Message("{}: every label is missing. Name another column or file with {labels}.", source.name)
        )
    labels = _narrowed(values[rows])
    kept = ChosenRows(source, rows, labels)
    kept.unlabelled = ChosenRows(source, np.flatnonzero(is_missing), None)
    kept.notes = (
        *source.notes,
        f"{source.name}: {source.n_rows - rows.size:,} of {source.n_rows:,} rows have no label and are left out.",
        *_doubts(source, labels),
    )
    return kept


_MOST_SHARE_UNREAD = 0.5  # beyond it, the column or the encoding is more likely at fault than the records


def _readable(source: Source, y: np.ndarray) -> Source:
    """Return the rows whose record could be read. Raises DataError where that is less than half of them."""
    rows = np.setdiff1d(np.arange(source.n_rows), [*source.unread])
    if len(source.unread) > _MOST_SHARE_UNREAD * source.n_rows:
        raise DataError(f"{note_on_unread(source)}. Is this the column, and the encoding of the file, that you mean?")
    kept = ChosenRows(source, rows, y[rows])
    kept.notes = (*source.notes, f"{note_on_unread(source)}. They are left out.")
    return kept


def note_on_unread(source: Source) -> str:
    """Return how many records could not be read, and the first of them, for messages."""
    places = source.places_in_file()
    first = [
        f"{f'record {places[row]}' if source.row_ids is None else repr(str(source.row_ids[row]))} ({reason})"
        for row, reason in [*source.unread.items()][:_MOST_UNREAD_LISTED]
    ]
    more = ", ..." if len(source.unread) > len(first) else ""
    n_unread = f"{len(source.unread):,} of {source.n_rows:,} records"
    return f"{source.name}: {n_unread} cannot be read: {', '.join(first)}{more}"


_MOST_UNREAD_LISTED = 3


def with_numbers(source: Source) -> Source:
    """Return the source with text labels as the numbers that a regression needs.

    Raises DataError, naming the row, for a label that is no number.

    >>> from chimap.data import ArraySource
    >>> with_numbers(ArraySource(np.eye(2), ["007", "1.50"])).labels()
    array([7. , 1.5])
    """
    y = source.labels()
    if y is None or not is_text(y):
        return source
    return Labelled(source, as_targets(y, source.name, source.places_in_file()))


def _with_entries(source: Source, y: np.ndarray, missing: object) -> Source:
    """Return the rows that have a label in at least one task. Raises DataError where there is none."""
    numbers = [number for number in map(as_number, marks_of(missing)) if number is not None]
    y = np.where(np.isin(y, numbers), np.nan, y) if numbers else y
    is_missing = np.isnan(y)
    rows = np.flatnonzero(~is_missing.all(axis=1))
    if rows.size == 0:
        raise NoLabelsError(
            Message("{}: every label is missing. Name other columns or another file with {labels}.", source.name)
        )
    if not numbers and rows.size == y.shape[0]:
        return source
    kept = ChosenRows(source, rows, y[rows])
    kept.notes = source.notes
    if rows.size < y.shape[0]:
        kept.unlabelled = ChosenRows(source, np.flatnonzero(is_missing.all(axis=1)), None)
        kept.notes = (
            *source.notes,
            f"{source.name}: {y.shape[0] - rows.size:,} of {y.shape[0]:,} rows have no label in any task and are left "
            "out.",
        )
    return kept


def _marked(y: np.ndarray, missing: object) -> np.ndarray:
    """Return which labels, of shape (n,), are one of the values ``missing``."""
    values, marks = np.ma.getdata(y), marks_of(missing)
    if not marks:
        return np.zeros(values.size, dtype=bool)
    if is_text(values):
        distinct, place = np.unique(values.astype(object), return_inverse=True)
        marked = [any(same_value(str(word).strip(), mark) for mark in marks) for word in distinct]
        return np.array(marked, dtype=bool)[place]
    numbers = [number for number in map(as_number, marks) if number is not None]
    return np.isin(values, numbers)  # a mark that is text was applied already, when the text was read


def _narrowed(y: np.ndarray) -> np.ndarray:
    """Return text no wider than its longest word; other labels unchanged."""
    if y.dtype.kind == "U":
        return y.astype(f"<U{max(1, int(np.char.str_len(y).max()))}")
    return y


_MOST_WORDS_LISTED = 8  # most words for missing values that a note lists


def _doubts(source: Source, y: np.ndarray) -> Iterator[str]:
    """Yield notes on labels that may not be what they seem.

    They are words that often stand for a missing value, text beside numbers, and -1 beside 0, 1, ....
    """
    if is_text(y):
        values, counts = np.unique(y, return_counts=True)
        rows = dict(zip(values.tolist(), counts.tolist(), strict=True))
        yield from _doubted_words(source.name, rows)
        yield from _text_among_numbers(source, y, [*rows])
        return
    if y.dtype.kind != "i" or y.size == 0 or y.min() != -1:
        return
    values = np.unique(y)
    if values.size >= 3 and np.array_equal(values, np.arange(-1, values.size - 1)):
        yield Message(
            "{}: the label -1, in {:,} rows, stands beside 0 to {} and is taken for a class. If it marks rows without "
            "a label, say {missing=-1}.",
            source.name,
            np.count_nonzero(y == -1),
            values[-1],
        )


def _doubted_words(name: str, rows: dict[str, int]) -> Iterator[str]:
    """Yield a note on the labels that often stand for a missing value; ``rows`` counts the rows of each label."""
    words = sorted(word for word in rows if stands_for_missing(word))
    if not words or len(words) == len(rows):
        return
    if len(words) == 1:
        yield Message(
            "{}: the label {!r}, in {:,} rows, is taken for a class. If it marks rows without a label, say {missing=}.",
            name,
            words[0],
            rows[words[0]],
            words[0],
        )
        return
    listed = ", ".join(f"{word!r} ({rows[word]:,} rows)" for word in words[:_MOST_WORDS_LISTED])
    more = "" if len(words) <= _MOST_WORDS_LISTED else f" and {len(words) - _MOST_WORDS_LISTED} more"
    yield Message(
        "{}: the labels {}{} are taken for classes. If they mark rows without a label, say {missing=}.",
        name,
        listed,
        more,
        ",".join(words),
    )


def _text_among_numbers(source: Source, y: np.ndarray, words: list[str]) -> Iterator[str]:
    """Yield a note where labels are text although some of them are numbers."""
    why = why_text(words)
    if why is None or not any(map(is_finite_number, words)):
        return
    row = source.places_in_file()[np.flatnonzero(y == why[0])[0]]
    yield f"{source.name}: the labels are text, as {why[0]!r} in row {row} {why[1]}."


_WHOLE_FLOAT = re.compile(r"-?[0-9]+\.0")
_JOINED_TEXT = (".csv", ".tsv", ".txt", ".tab", ".design", ".metadata")  # the last two are those of mothur
_ARROW_TABLES = PARQUET + IPC


def is_join(labels: Labels) -> bool:
    """Return whether labels name a column of a table in another file, such as ``meta.tsv::body_site``."""
    if not isinstance(labels, str):
        return False
    address, member = split_member(labels)
    name = uncompressed_name(base_name(address))
    return bool(member) and name.endswith((*_JOINED_TEXT, *_ARROW_TABLES, ".qza"))


def table_of(address: str) -> Records:
    """Return the records of a table whose columns are joined to rows by their ids; ``.txt`` is text too.

    A ``.qza`` is an artifact of metadata. Raises DataError for an Arrow table that is compressed as a whole.
    """
    file = existing_file(address)
    if uncompressed_name(file.name).endswith(_JOINED_TEXT):
        return QiimeMetadata(address) if is_qiime_metadata(file) else TextRecords(address)
    if file.suffix == ".qza":
        return artifact_metadata(address)
    if file.suffix not in _ARROW_TABLES:
        raise DataError(f"{address}: not read while it is compressed as a whole. Unpack it: {file_remedy(address)}.")
    return ArrowRecords(address)


def joined(source: Source, labels: str, id: str | int | None = None, missing: object = None) -> Source:
    """Return the rows of a source whose id is in a table, with the labels from that table.

    ``labels`` is ``TABLE::COLUMN``, a column of a CSV, TSV, Parquet or Feather file, or of a ``.txt`` file as a TSV or
    CSV. Several columns, ``TABLE::a,b`` or ``TABLE::task_*``, are the labels of several tasks. The table uses the name
    ``id`` for its ids if it has it, else its first column; ``missing`` marks a missing label in text. Raises DataError
    if the source has no ids, an id comes twice, or no id is in both.
    """
    address, words = split_member(labels)
    tasks = joined_names(address, str(words))
    matches = [_matches(source, f"{address}::{name}", id, missing) for name in tasks]
    table_rows, y = matches[0]
    if len(tasks) > 1:
        columns = [task_column(y, f"{address}, column {name!r}") for name, (_, y) in zip(tasks, matches, strict=True)]
        y = np.column_stack(columns)
    rows = np.flatnonzero(table_rows >= 0)
    note = (
        f"{rows.size:,} of {source.n_rows:,} rows of {source.name} have a label in {address}; "
        f"{source.n_rows - rows.size:,} are left out, and {len(y) - rows.size:,} of its rows match none."
    )
    view = ChosenRows(source, rows, y[table_rows[rows]])
    view.notes = (*source.notes, note)
    view.task_names = tuple(tasks) if len(tasks) > 1 else None
    return view


def values_by_id(source: Source, column: str, id: str | int | None = None, missing: object = None) -> np.ma.MaskedArray:
    """Return the values (n_rows,) of ``TABLE::COLUMN`` for the rows of a source.

    They are masked where the id is unknown, and where text is ``missing``.
    """
    table_rows, values = _matches(source, column, id, missing)
    joined = np.ma.MaskedArray(np.ma.getdata(values)[np.maximum(table_rows, 0)])
    joined.mask = (table_rows < 0) | np.ma.getmaskarray(values)[np.maximum(table_rows, 0)]
    return joined


def _matches(source: Source, labels: str, id: str | int | None, missing: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the table row with the id of each row of a source, -1 for none, and the values of the table."""
    address, column = split_member(labels)
    if source.row_ids is None:
        _check_first_column(source)
        raise NoSharedIdsError(
            Message(
                "{}: its rows have no ids, so {} cannot be joined to them. Name the column of ids with {id}, or give "
                "the labels in the order of the rows, in a file that holds nothing else.",
                source.name,
                labels,
            )
        )
    ids, y = _id_and_label(address, str(column), id, missing)
    place = {name: i for i, name in enumerate(unique_ids(whole_ids(ids), address).tolist())}
    row_ids = unique_ids(whole_ids(source.row_ids), source.name)
    table_rows = np.array([place.get(name, -1) for name in row_ids.tolist()])
    if (table_rows < 0).all():
        raise NoSharedIdsError(
            Message(
                "{}: none of its {:,} ids, such as {!r}, is an id of {}, such as {!r}. Are these the columns of ids? "
                "Give them the same name, or name one with {id}.",
                address,
                ids.size,
                str(ids[0]),
                source.name,
                str(row_ids[0]),
            )
        )
    return table_rows, y


def whole_ids(ids: np.ndarray) -> np.ndarray:
    """Return ids as text, without the ".0" of a column of whole numbers that was written as floats.

    >>> whole_ids(np.array(["12.0", "7.0"])).tolist(), whole_ids(np.array(["0012", "1.0", "a"])).tolist()
    (['12', '7'], ['0012', '1.0', 'a'])
    """
    texts = texts_of(ids)
    are_floats = all(_WHOLE_FLOAT.fullmatch(text) for text in texts.tolist())
    return np.char.partition(texts, ".")[:, 0] if are_floats else texts


def _check_first_column(source: Source) -> None:
    """Refuse a first column of text that would name the rows, were its values not repeated."""
    if source.column_names and source.reading is None:
        first = source.column_names[0]
        values = source.column(first)
        if is_text(values):
            unique_ids(texts_of(values), f"{source.name}, column {first!r}")


def _id_and_label(address: str, column: str, id: str | int | None, missing: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids, as text, and the labels of all rows of a table."""
    table, where = table_of(address), f"{address}::{column}"
    places = _places(table.columns, column, id, address)
    names = [table.columns[place] for place in places]
    check_distinct([name for name in table.columns if name in names], address)
    ids: list[object] = []
    labels: list[object] = []
    texts = TextLabels(where, missing)
    for batch in table.batches(names):
        batch_ids, batch_labels = ([record[place] for record in batch] for place in (0, 1))
        refuse_undecoded(batch_ids, len(ids), f"{address}, column {names[0]!r}")
        refuse_undecoded(batch_labels, len(ids), where)
        ids += batch_ids
        (labels.extend if table.has_types else texts.add)(batch_labels)
    if not ids:
        raise DataError(f"{address}: no rows, only a heading. Write it again.")
    if not table.has_types:
        return np.char.strip(np.array(ids, dtype=str)), texts.finish()
    checked = checked_ids(np.array(ids, dtype=object), f"{address}, column {names[0]!r}")
    return checked, clean_labels(np.array(labels, dtype=object), len(ids), where)


def _places(names: list[str], column: str, id: str | int | None, address: str) -> tuple[int, int]:
    """Return the positions of the column of ids and of the column of labels."""
    label_place = place_of(names, column, address, "labels")
    id_place = names.index(id) if isinstance(id, str) and id in names else int(label_place == 0)
    if id_place >= len(names) or id_place == label_place:
        raise DataError(f"{address}: no column of ids besides {column!r}. Add one with the ids of the rows.")
    return id_place, label_place


def joined_names(address: str, words: str) -> list[str]:
    """Return the columns of a table that words mean: several by a glob or by commas between names, else one.

    Raises DataError if a word names no column.
    """
    if not any(mark in words for mark in "*?,"):
        return [words]
    names = table_of(address).columns
    return [words] if words in names else [names[i] for i in places_of(names, words, address, "labels")]


def task_words(data: object, labels: object) -> str | list[str] | None:
    """Return the names or the glob by which ``labels`` means several columns of a table, or None for any other labels.

    Several columns are a glob, or names with commas between them; in a data frame also a list of names.

    >>> task_words("rows.csv", "task_*"), task_words("rows.csv", "species"), task_words("rows.csv", "b.csv::c")
    ('task_*', None, None)
    """
    if is_frame(data) and isinstance(labels, list | tuple) and labels:
        names = {str(name) for name in names_of(data)}
        return list(labels) if all(isinstance(word, str) and word in names for word in labels) else None
    if not isinstance(labels, str) or "::" in labels or not any(mark in labels for mark in "*?,"):
        return None
    has_columns = is_path(data) or is_frame(data) or opener_of(data) is not None
    return labels if has_columns and not os.path.exists(labels) else None


@dataclass(frozen=True)
class _Candidates:
    """The columns that labels may name, and whether they would be bins otherwise."""

    names: Sequence[str]
    are_bins: bool
    where: str


def with_tasks(
    read: Callable[[Labels, ColumnChoice], Source],
    data: object,
    words: Columns,
    choice: ColumnChoice,
    reading: Reading | None,
) -> Source:
    """Return the rows of a table with several of its columns as labels, one column a task.

    ``read(labels, choice)`` returns the source of the data, and ``words`` name the columns of labels, see
    ``task_words``. Raises DataError if the data have no named columns, or a word names none of them.
    """
    found = _candidates(read, data, choice, reading)
    names = [found.names[i] for i in places_of(found.names, words, found.where, "labels")]
    if len(names) == 1:
        return read(names[0], choice)

    def labelled_by(name: str) -> Source:
        others = tuple(other for other in names if other != name) if found.are_bins else ()
        return read(name, replace(choice, aside=(*choice.aside, *others)))

    # The labels are given by name. Otherwise a column called y or label would be taken for them instead of a bin.
    source = labelled_by(names[0])
    columns = []
    for name in names:
        values = (source if name == names[0] else labelled_by(name)).labels()
        assert values is not None  # the labels are named
        columns.append(task_column(values, f"{found.where}, column {name!r}"))
    return Labelled(source, np.column_stack(columns), tuple(names))


def _candidates(
    read: Callable[[Labels, ColumnChoice], Source], data: object, choice: ColumnChoice, reading: Reading | None
) -> _Candidates:
    """Return the columns that labels may name. They are read without any row where the kind of data allows it."""
    columns = [str(name) for name in names_of(data)] if is_frame(data) else stream_columns(data)
    if columns is not None:
        return _Candidates(columns, True, type(data).__name__)
    address = os.fspath(data) if isinstance(data, str | os.PathLike) else ""
    if uncompressed_name(address).endswith(LINES) or (reading is not None and has_records(address)):
        return _Candidates(records_of(address).columns, False, address)
    if uncompressed_name(address).endswith(PARQUET + IPC):
        return _Candidates(records_of(address).columns, True, address)
    opened = read(UNREAD, replace(choice, names=None, columns=None, exclude=None))
    if opened.metadata:
        return _Candidates(opened.metadata, False, opened.name)
    if opened.column_names is None:
        raise DataError(
            f"{opened.name}: its columns have no names, so none of them can be named as labels. Give the labels as a "
            "matrix."
        )
    return _Candidates(opened.column_names, True, opened.name)


def text_columns(path: str) -> list[str]:
    """Return the names of the text columns of a CSV, TSV, Parquet or Feather file, without a column of ids.

    The list is empty for other kinds of files, for tables of samples as columns, and for folders and addresses. Raises
    DataError for a file that cannot be read.
    """
    if is_address(path) or not os.path.isfile(path):
        return []
    name = uncompressed_name(path)
    if name.endswith(TEXT_TABLES):
        table = TextTable(existing_file(path))
        is_upright = not is_shared(table) and not is_transposed(table, None, ColumnChoice())
        return CsvSource(path, table=table).text_columns() if is_upright else []
    if not path.lower().endswith(PARQUET + IPC):
        return []
    return [field.name for field in find_parts(path)[0].schema if may_be_classes(field.type)]


def labels_of(source: Source, model: BaseEstimator | None = None) -> np.ndarray:
    """Return the labels of a source. Raise DataError, which says how to name them, if it has none."""
    return present(source.labels(), source.name, model)


def present(y: np.ndarray | None, name: str, model: BaseEstimator | None = None) -> np.ndarray:
    """Return labels. Raise DataError if there are none, with the labels that ``model``, if given, was fitted with."""
    if y is not None:
        return y
    fitted_with = (getattr(model, "training_", None) or {}).get("labels")
    if fitted_with is not None:
        raise DataError(
            Message(
                "{} has no labels. Name them; the model was fitted with {labels=!s}.", name, shlex.quote(fitted_with)
            )
        )
    raise DataError(
        Message(
            "{} has no labels. Name them with {labels}: a file (.npy, .csv, or text with one label per line), a column "
            "of a table, TABLE::COLUMN of another table with the ids of the rows, or ::MEMBER of an .npz, .h5 or .zarr "
            "file. An array or column called y is found without {labels}.",
            name,
        )
    )
