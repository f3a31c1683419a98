"""Open data: choose the source for an array, a file, a folder or an object of another library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap._errors import InputError
from chimap._frames import is_frame, names_of
from chimap._messages import Message
from chimap._types import Columns, Parameters
from chimap._validation import DataError, check_choice
from chimap.data.arrays import ArraySource
from chimap.data.clade_sums import over_ranks
from chimap.data.clades import ALL_RANKS
from chimap.data.frames import FrameSource
from chimap.data.gaps import MISSING_COUNTS, gaps_kept, without_gaps
from chimap.data.label_kinds import is_real
from chimap.data.labelled import note_on_unread, without_unlabelled
from chimap.data.labels import IGNORE_LABELS, Labels, task_column
from chimap.data.overlap import MISSING_COLUMNS
from chimap.data.reading import Reading
from chimap.data.source import Source
from chimap.data.table import LABEL_NAMES, ColumnChoice, is_path, places_of, words_of
from chimap.data.totals import without_margins
from chimap.data.views import WithLabels, select_columns
from chimap.models.schema import RowSchema, schema_of
from chimap.readers.arrow_files import IPC, PARQUET, find_parts, may_be_classes
from chimap.readers.batches import BatchSource, stream_columns
from chimap.readers.catalogue import READERS, has_columns, reader_of, reader_of_path
from chimap.readers.csv import CsvSource, TextTable
from chimap.readers.io.encodings import text_in
from chimap.readers.io.files import existing_file, is_address, split_member, uncompressed_name
from chimap.readers.joins import NoSharedIdsError, is_join, joined, values_by_id
from chimap.readers.label_files import missing_in_files, with_label_hints
from chimap.readers.mothur import is_shared
from chimap.readers.records import LINES, has_records, records_of
from chimap.readers.text_tables import is_transposed, text_table
from chimap.readers.words import WordCounts


def open_source(
    path_or_array: object,
    labels: Labels = None,
    *,
    id: str | int | None = None,
    columns: Columns | None = None,
    exclude: Columns | None = None,
    missing: object = None,
    aside: Columns | None = None,
    transpose: bool | None = None,
    rank: str | None = None,
    encoding: str | None = None,
    missing_counts: str | None = None,
    like: object = None,
    missing_columns: str | None = None,
    with_labels: bool | None = None,
    reading: Reading | None = None,
    tokens: str | None = None,
    ngrams: tuple[int, int] | str | None = None,
    min_count: int | None = None,
) -> Source:
    """Return a source for an array, a file, a folder or a table.

    A ``Source`` comes back as it is.

    Parameters
    ----------
    path_or_array : object
        One of: a numpy array or scipy sparse matrix; a data frame of pandas or polars, or an Arrow table; a Dask array
        or data frame; the path or address (``s3://...``) of a file whose ending is in ``READERS``, of a folder of
        Parquet or Feather files, or of a Zarr store; a function that returns an iterator of batches, see
        ``BatchSource``. In a file that holds several arrays, ``file.npz::member`` names one of them, or the column of
        lists in a Parquet file.
    labels : array, str, int or path, default=None
        An array; the name of a column or array in the same file, where ``Y[2]`` is a column of a matrix; a file of
        labels (``.npy``, ``.npz::member``, ``.csv``, or text with one label a line); or ``TABLE::COLUMN``, a column of
        another table that is joined by the ids of the rows. A matrix of shape (n, t), or several columns,
        such as ``"task_*"``, ``"tox,heart"`` or ``"meta.tsv::tox,heart"``, hold the labels of several tasks; their
        missing entries are NaN. None takes the labels in the file, if there are any.
    id : str or int, default=None
        The column that names the rows, by name or position. None takes a column that a data frame wrote as its index,
        or a first column of text without repeats.
    columns, exclude : str, int, slice or sequence, default=None
        The columns that are bins, and those that are not: names, globs, positions and ranges, such as
        ``"otu_*,depth"`` or ``["0:300"]``; see ``chimap.data.table.places_of``.
    missing : object, default=None
        What marks a missing label, besides None, NaN and empty text: a value, a list of them, or a text with commas
        between words. Rows without a label are left out; ``notes`` and ``n_left_out`` of the source give their number.
    aside : str or sequence of str, default=None
        Columns that are neither bins, labels nor ids, such as groups of rows or parts of a split: a sequence of names,
        or one text with commas between them. The data need not have these columns. ``source.column(name)`` returns
        their values.
    transpose : bool, default=None
        For a Matrix Market file, whether its columns are the rows, as in tables of genes by cells; None is False. For a
        text table, whether samples are columns, and lines are bins or metadata, as in tables of MetaPhlAn,
        featureCounts and mothur; None finds out, and ``notes`` tell.
    rank : str, default=None
        For bins that are clades, such as ``k__Bacteria|p__Firmicutes``, the rank to keep: "s__", "s" or "species";
        "all" sums the bins over the clades of each rank, a block of columns for each (``data.clade_sums``). BIOM tables
        whose observations have a taxonomy are summed over the clades of the rank.
    encoding : str, default=None
        The encoding of text files, such as "cp1252": of the data, and of tables and files that hold labels. None is
        UTF-8, or UTF-16 where a file begins with its mark.
    missing_counts : {"refuse", "zero", "drop-row"}, default=None
        What to do about blank counts of a table, and words such as NA: refuse them with an error, which is the default,
        take them as zero, or leave their rows out.
    like : fitted model, default=None
        The source takes the columns that this model was fitted on, by name where both have names, and ignores all
        others. Text, molecules and named counts become rows in the same way as those that the model was fitted on, and
        svmlight text is read with the model's first column and width.
    missing_columns : {"zero", "refuse"}, default=None
        What to do about columns of ``like`` that the data lack: take them as zero where the others hold at least 80 %
        of the rows that it was fitted on, or refuse. None takes them as zero for a model of counts.
    with_labels : bool, default=None
        Whether labels are read and rows without a label left out. False keeps every row, whatever the column of labels
        holds, as a prediction needs. None is True, but False where ``like`` is given and ``labels`` is not.
    reading : Reading, default=None
        How to make rows from one column of a table, from a folder of texts or from a list: ``WordCounts("review")``,
        ``MoleculeBlocks("smiles")`` or ``NamedCounts("counts")``.
    tokens : {"words", "characters", "symbols"}, default=None
        What is counted in texts. This and the next two are settings of ``WordCounts``; they change those of
        ``reading``, and without it texts are read from the column ``text`` or from a list.
    ngrams : tuple of two int or "auto", default=None
        How many neighbours are counted together, at least and at most: (1, 2) counts words and pairs of them. "auto"
        leaves it to the fit whether pairs are counted.
    min_count : int, default=None
        In how many texts a word must be to be counted.

    Returns
    -------
    Source
        With ``column_names`` and ``row_ids`` where the data have them. Records that cannot be read, such as SMILES that
        RDKit refuses, are left out of rows with labels, with a note; among rows without labels they keep their place,
        with the reason in ``unread``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        If the file cannot be read or has an unknown ending, or if a named column does not exist.
    ValueError
        If labels are given together with a source, or ``transpose`` with data that are not Matrix Market.

    Examples
    --------
    >>> import numpy as np
    >>> open_source(np.eye(3), labels=["a", "b", "a"]).n_rows
    3
    """
    if missing_columns is not None:
        check_choice(missing_columns, "missing_columns", MISSING_COLUMNS)
    schema = schema_of(like)
    reading = _with_words(reading, schema, tokens=tokens, ngrams=ngrams, min_count=min_count)
    if isinstance(path_or_array, Source):
        if labels is not None:
            raise InputError("labels must be None for a Source, because a source brings its labels.")
        return path_or_array if schema is None else schema.matched(path_or_array, missing_columns)
    aside_names = () if aside is None else tuple(map(str, words_of(aside)))
    given = ColumnChoice(id, columns, exclude, missing, aside=aside_names, rank=rank)
    choice = replace(given, transpose=transpose, encoding=encoding)
    choice = choice if schema is None else schema.chosen(choice)
    if not (like is None or labels is not None if with_labels is None else with_labels):
        named = words_of(labels) if isinstance(labels, str | int) else []
        usual = (name for name in LABEL_NAMES if name not in (choice.names or ()))
        choice = replace(choice, aside=(*choice.aside, *map(str, named), *usual))
        labels = IGNORE_LABELS
    opening = _Opening(path_or_array, choice, reading or _reading_of(schema, path_or_array))
    words = task_words(path_or_array, labels)
    if missing_counts is not None:
        check_choice(missing_counts, "missing_counts", MISSING_COUNTS)
    with text_in(encoding), gaps_kept(missing_counts), missing_in_files(missing):
        source = opening.with_labels(labels) if words is None else opening.with_tasks(words)
    source = without_gaps(source, missing_counts)
    source = source if schema is None else schema.matched(source, missing_columns)
    source = without_margins(source, keeps_columns=columns is not None or schema is not None)
    if schema is None and rank is not None and (rank == ALL_RANKS or source.lineages is not None):
        source = over_ranks(source, rank)
    source = without_unlabelled(source, missing)
    if source.unread and labels is not IGNORE_LABELS:
        source.notes = (*source.notes, f"{note_on_unread(source)}. Their rows are empty.")
    if labels is None:
        _check_target(source)
    return source


def _reading_of(schema: RowSchema | None, data: object) -> Reading | None:
    """Return the reading of a model, where the data hold fields that it reads."""
    reading = None if schema is None else schema.reading
    return reading if reading is not None and reading.takes(data) else None


def _with_words(reading: Reading | None, schema: RowSchema | None, **settings: object) -> Reading | None:
    """Return the reading with settings of words that are not None. Raise ValueError where nothing counts words."""
    given: Parameters = {name: value for name, value in settings.items() if value is not None}
    if not given:
        return reading
    names = " and ".join(given)
    if schema is not None and schema.reading is not None:
        raise InputError(f"{names}: the model of like= keeps how it counts words. Leave them out.")
    if reading is not None and not isinstance(reading, WordCounts):
        raise InputError(f"{names}: for texts, but {type(reading).__name__} reads none. Leave them out.")
    return replace(reading or WordCounts(), **given)


def _check_target(source: Source) -> None:
    """Refuse labels that were found by their name and are one and the same fraction, such as the cutoff of a table."""
    y = source.labels()
    if y is not None and y.ndim == 1 and y.size > 1 and is_real(y) and (y == y[0]).all():
        raise DataError(
            Message(
                "{}: every label is {:g}, by the column or array that is called like labels, so there is nothing to "
                "predict. Name the labels with {labels}.",
                source.name,
                y[0],
            )
        )


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
    return labels if has_columns(data) and not os.path.exists(labels) else None


def text_columns(path: str) -> list[str]:
    """Return the names of the text columns of a CSV, TSV, Parquet or Feather file, without a column of ids.

    The list is empty for other kinds of files, for tables of samples as columns, and for folders and addresses. Raises
    DataError for a file that cannot be read.
    """
    if is_address(path) or not os.path.isfile(path):
        return []
    if path.lower().endswith(READERS["text"].endings):
        table = TextTable(existing_file(path))
        is_upright = not is_shared(table) and not is_transposed(table, None, ColumnChoice())
        return CsvSource(path, table=table).text_columns() if is_upright else []
    if not path.lower().endswith(PARQUET + IPC):
        return []
    return [field.name for field in find_parts(path)[0].schema if may_be_classes(field.type)]


@dataclass(frozen=True)
class _Opening:
    """Data and how they are opened; ``source`` may be asked again, with another column as the labels."""

    data: Any
    choice: ColumnChoice
    reading: Reading | None

    def with_labels(self, labels: Labels) -> Source:
        """Return all rows of the data, with labels of their own or joined by ids; None looks for labels in the data."""
        try:
            return self._with_labels(labels)
        except NoSharedIdsError:
            is_text = is_path(self.data) and reader_of_path(split_member(self.data)[0]).open is text_table
            if self.choice.transpose is None and is_text:  # perhaps its lines are no rows
                with suppress(DataError):
                    return replace(self, choice=replace(self.choice, transpose=True))._with_labels(labels)
            raise

    def _with_labels(self, labels: Labels) -> Source:
        join = labels if is_join(labels) else None
        inside = None if join else labels
        source = with_label_hints(self.source, inside, self.data, lambda path: reader_of_path(path).has_arrays)
        if has_columns(self.data):
            source.read_column = _ColumnReader(replace(self, reading=source.reading), labels)
        return source if join is None else joined(source, str(join), self.choice.id, self.choice.missing)

    def with_tasks(self, words: Columns) -> Source:
        """Return all rows of the data, with several columns as labels, one a task; ``words`` name them.

        Raises DataError if the data have no named columns, or a word names none of them.
        """
        columns, are_bins, where = self._candidates()
        names = [columns[i] for i in places_of(columns, words, where, "labels")]

        def labelled_by(name: str) -> Source:
            others = tuple(other for other in names if other != name) if are_bins else ()
            return self.source(name, replace(self.choice, aside=(*self.choice.aside, *others)))

        # The labels are given by name. Otherwise a column called y or label would be taken for them instead of a bin.
        source = labelled_by(names[0])
        if len(names) > 1:
            tasks = []
            for name in names:
                values = (source if name == names[0] else labelled_by(name)).labels()
                assert values is not None  # the labels are named
                tasks.append(task_column(values, f"{where}, column {name!r}"))
            source = WithLabels(source, np.column_stack(tasks), tuple(names))
        choice = replace(self.choice, aside=(*self.choice.aside, *(source.task_names or ())))
        source.read_column = _ColumnReader(replace(self, choice=choice, reading=source.reading), None)
        return source

    def _candidates(self) -> tuple[Sequence[str], bool, str]:
        """Return the columns that labels may name, whether they would be bins otherwise, and the name of the data.

        They are read without any row where the kind of data allows it.
        """
        data, reading = self.data, self.reading
        columns = [str(name) for name in names_of(data)] if is_frame(data) else stream_columns(data)
        if columns is not None:
            return columns, True, type(data).__name__
        address = os.fspath(data) if is_path(data) else ""
        is_arrow = uncompressed_name(address).endswith(PARQUET + IPC)
        if is_arrow or uncompressed_name(address).endswith(LINES) or (reading is not None and has_records(address)):
            return records_of(address).names, is_arrow, address
        opened = self.source(IGNORE_LABELS, replace(self.choice, names=None, columns=None, exclude=None))
        if opened.metadata:
            return opened.metadata, False, opened.name
        if opened.column_names is None:
            raise DataError(
                f"{opened.name}: its columns have no names, so none of them can be named as labels. Give the labels as "
                "a matrix."
            )
        return opened.column_names, True, opened.name

    def source(self, labels: Labels, choice: ColumnChoice | None = None) -> Source:
        """Return the source of the data with all of its rows, labelled or not, and the columns that were chosen."""
        data, choice = self.data, choice or self.choice
        if self.reading is not None:  # a word may be called as a column of the table that is set aside
            return select_columns(self.reading.source(data, labels, choice.id), replace(choice, id=None, aside=()))
        reader = None if is_frame(data) else reader_of(data)
        if choice.transpose is not None and (reader is None or not reader.can_transpose):
            raise InputError(
                "transpose is for text tables (.csv, .tsv, .txt) and Matrix Market files (.mtx) only; transpose other "
                "data where they are written."
            )
        if reader is not None:
            return reader.open(data, labels, choice)
        if is_frame(data):
            return FrameSource(data, labels, choice)
        if callable(data) and (labels is None or labels is IGNORE_LABELS):
            return select_columns(BatchSource(data, reads_labels=labels is None), choice)
        return select_columns(ArraySource(data, labels), choice)


@dataclass(frozen=True)
class _ColumnReader:
    """Reads a column of opened data that are labelled by ``labels``, see ``Source.read_column``."""

    opening: _Opening
    labels: Labels

    def __reduce__(self) -> tuple[object, ...]:
        return _nothing, ()  # worker processes get rows to read, not a copy of a data frame

    def __call__(self, name: str, source: Source, missing: object) -> np.ndarray:
        """Return the values of a column; ``missing`` marks missing ones. See ``Source.column_with_gaps``."""
        values, reading = None, self.opening.reading
        with text_in(self.opening.choice.encoding):
            if not is_join(name):
                kept = source.kept_column(name, missing)
                values = kept if reading is None else reading.column_of(self.opening.data, name)
            if values is None:
                values = self._as_labels(name, missing)
        return values[source.places_in_file()]

    def _as_labels(self, name: str, missing: object) -> np.ndarray:
        """Return the values of a column of all rows; they are read as labels of the data, opened again."""
        choice = self.opening.choice
        taken_for_labels = LABEL_NAMES if self.labels is None else [self.labels] if isinstance(self.labels, str) else []
        aside = (*choice.aside, *(word for word in taken_for_labels if word != name))
        opened = self.opening.source(None if is_join(name) else name, replace(choice, missing=missing, aside=aside))
        values = values_by_id(opened, name, choice.id, missing) if is_join(name) else opened.labels()
        assert values is not None  # the labels are named
        return values


def _nothing() -> None:
    """Stand for a reader of columns in another process, where ``source.read_column`` is None."""
