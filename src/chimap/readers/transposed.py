"""Text tables of samples as columns: clades, genes or OTUs are lines, below lines of metadata."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chimap._messages import Message, shown
from chimap._unicode import composed, composed_names
from chimap._validation import DataError
from chimap.data.clades import rank_of
from chimap.data.label_kinds import is_number, stands_for_missing, words_for_missing
from chimap.data.labels import Labels, numbers_or_text
from chimap.data.table import COUNTER, ColumnChoice, roles_of, unique_ids
from chimap.readers.csv import TextTable, columns_of_program
from chimap.readers.decimals import Marks, MarksInUse
from chimap.readers.io.files import existing_file
from chimap.readers.label_files import labels_elsewhere
from chimap.readers.row_file import OrderedSource, RowFile
from chimap.readers.stored_matrices import checked_names

FIELDS_LOOKED_AT = 60  # of a line, to tell text from numbers
_LINES_LOOKED_AT = 20  # with numbers, to tell samples from columns of text
_LEAST_NUMBERS = 0.25  # share of the fields of such a line
_LEAST_TEXT_ON_TOP = 0.25  # share of the lines on top that are text
_ENTRIES_AT_ONCE = 2**18  # that are kept before they are sorted
_MOST_FILLED = 1 / 3  # share of entries that are not zero from which rows are dense


def no_samples(table: TextTable) -> tuple[str, ...] | None:
    """Return the columns that a program writes besides those of samples, or None for tables of no such program.

    Raises DataError for a table that BIOM has written without the names of the samples.
    """
    found = columns_of_program(table.heading)
    if found is None and any(comment.startswith(_BY_BIOM) for comment in table.comments):
        raise DataError(
            f"{table.file}: {_BY_BIOM[2:]}, but no heading that begins with '#OTU ID'. Write the table again."
        )
    return found


_BY_BIOM = "# Constructed from biom file"
_BY_STAR_OR_SAMTOOLS = r"(?:_?Aligned(?:\.sortedByCoord)?\.out|[._-]sorted)"  # words behind the name of a sample
_BAM = r"\.(?:bam|sam|cram)"
_STEM_OF_BAM = re.compile(rf"(?:.*/)?([^/]+?)(?:{_BY_STAR_OR_SAMTOOLS}(?:{_BAM})?|{_BAM})")
_COMPRESSED = "#Compressed Format:"  # first words of a count table of mothur that holds group,abundance


def sample_of_reads(name: str) -> str:
    """Return the sample of a file of reads, by which featureCounts names it, and any other name unchanged.

    >>> [sample_of_reads(name) for name in ("mapped/A.bam", "AAligned.sortedByCoord.out.bam", "A.sorted", "unsorted")]
    ['A', 'A', 'A', 'unsorted']
    """
    found = _STEM_OF_BAM.fullmatch(name)
    return name if found is None else found[1]


def _groups_of(table: TextTable) -> dict[str, int]:
    """Return the column of each group that a compressed count table numbers, {} for any other table."""
    if not any(comment.startswith(_COMPRESSED) for comment in table.comments):
        return {}
    place = {name: i for i, name in enumerate(table.names)}
    pairs = [pair.partition(",") for pair in table.comments[-1].lstrip("#").split()]
    return {number: place[group] for number, _, group in pairs if group in place}


@dataclass(frozen=True)
class _Line:
    """A line of the table: its name, its number, and whether it is text."""

    name: str
    number: int
    is_text: bool


class TransposedSource(OrderedSource):
    """The samples of a text table that has them as columns; its lines are bins, or metadata of the samples.

    A line is metadata if most of its fields are text, or if it stands on top, above the last such line; where lines are
    named by clades (``k__Bacteria|p__Firmicutes``), above the first of these. Lines that count programs write for reads
    of no gene (``__no_feature``, ``N_unmapped``) are left out. The heading names the samples if it has no repeats, else
    the first line of text without repeats does. Columns of text, such as a taxonomy, are left out, and so are comments
    (``#``).

    Opening the table reads it twice, the second time onto a temporary file, from which all passes read; and once more
    for metadata that are numbers. Rows are float64, and sparse where most entries are zero.

    Parameters
    ----------
    path : str or path
        The file, compressed if it ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst``; addresses work too.
    labels : str, array or file of labels, default=None
        Name of the line of labels, or an array or file, see ``read_labels``.
    choice : ColumnChoice, default=None
        Which lines are bins and ids.
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
    >>> text = "sample\\ta\\tb\\ndisease\\tn\\ty\\nk__Bacteria|p__X\\t3\\t0\\nk__Bacteria|p__Y\\t0\\t5\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "abundance.tsv")
    ...     _ = path.write_text(text)
    ...     source = TransposedSource(path, labels="disease")
    ...     source.row_ids.tolist(), source.labels().tolist(), next(source.chunks(2)).X.tolist()
    (['a', 'b'], ['n', 'y'], [[3.0, 0.0], [0.0, 5.0]])
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Labels = None,
        *,
        choice: ColumnChoice | None = None,
        table: TextTable | None = None,
    ) -> None:
        choice = choice or ColumnChoice()
        said = (labels, *choice.said())
        self._table = table = table or TextTable(existing_file(path), said=said, known=choice.names)
        self.path = self._stored = table.file
        self.name, where = self.path.name, str(self.path)
        self._groups = _groups_of(table)
        self._marks = self._marks_in_use()
        self._samples = self._sample_columns()
        self.n_rows = len(self._samples)
        self._kept: dict[_Line, list[str]] = {}
        lines = [*self._lines()]
        names = [line.name for line in lines]
        if table.has_names and choice.id == table.names[0] and choice.id not in names:
            choice = replace(choice, id=None)  # the heading holds the ids
        label = self._label_place(labels, choice, names)
        if label is not None and COUNTER.fullmatch(names[label]):
            raise DataError(
                Message(
                    "{}, line {}: {!r} counts reads that belong to no gene; it is no label. Name another line, or a "
                    "column of another table, with {labels}.",
                    where,
                    lines[label].number,
                    names[label],
                )
            )
        metadata = [place for place in _metadata(lines, choice.columns is not None) if place != label]
        aside = (*choice.aside, *(names[place] for place in metadata))
        roles = roles_of(names, label, replace(choice, aside=aside), where)
        _check_distinct([lines[place] for place in roles.bins], where)
        named = [place for place in (label, roles.id) if place is not None]
        self._keep({lines[place] for place in (*metadata, *named)} - self._kept.keys())
        self.row_ids, naming = self._ids(lines, None if roles.id is None else lines[roles.id])
        self.column_names = composed_names(names[place] for place in roles.bins)
        self.n_features = len(roles.bins)
        self._place = {lines[place].number: bin for bin, place in enumerate(roles.bins)}
        self.metadata = tuple(names[place] for place in metadata)
        self.columns_aside = (*roles.unknown, *(name for name in self.metadata if name != naming))
        if label is None:
            elsewhere = str(labels) if isinstance(labels, int) else labels  # lines have names and no numbers
            self._y = labels_elsewhere(elsewhere, self.n_rows, where, self.metadata)
        else:
            self._y = self._values_of(lines[label], choice.missing)
        self.notes = (*table.notes, *roles.notes(where, None), *self._told(where, naming))
        self._open()

    def _marks_in_use(self) -> Marks | None:
        """Return how numbers are written, by the first lines; None as programs write them."""
        found = MarksInUse()
        if self._table.has_commas:
            found.add_texts([field for record in self._table.look for field in record[1:]])
        return found.marks

    def _plain(self, fields: list[str]) -> list[str]:
        """Return fields with numbers as programs write them."""
        return fields if self._marks is None else [*map(self._marks.plain, fields)]

    def _sample_columns(self) -> list[int]:
        """Return the positions of the columns that are samples: those of numbers in most lines that have any."""
        known = no_samples(self._table) or ()
        places = [place for place in range(1, len(self._table.names)) if self._table.names[place] not in known]
        lines: list[list[bool]] = []
        for _, record in self._records():
            fields = self._plain([record[place] for place in places])
            if sum(map(is_number, fields)) >= _LEAST_NUMBERS * max(1, len(fields)):
                lines.append([not field.strip() or is_number(field) or stands_for_missing(field) for field in fields])
            if len(lines) == _LINES_LOOKED_AT:
                break
        shares = np.mean(lines, axis=0) if lines else np.zeros(len(places))
        samples = [place for place, share in zip(places, shares, strict=True) if share > 1 / 2]
        if not samples:
            raise DataError(
                Message(
                    "{}: no line of numbers below its heading, with samples as columns. If its lines are samples, say "
                    "{transpose=False}.",
                    self.path,
                )
            )
        return samples

    def _lines(self) -> Iterator[_Line]:
        """Yield all lines that are no comments, and keep the fields of those of text."""
        some = self._samples[:: max(1, self.n_rows // FIELDS_LOOKED_AT)]
        for number, record in self._records():
            fields = self._plain([record[place] for place in some])
            line = _Line(composed(record[0].strip()), number, _is_text(fields))
            if line.is_text:
                self._kept[line] = self._fields(record)
            yield line

    def _keep(self, lines: set[_Line]) -> None:
        """Keep the fields of the samples in some lines, read in one pass if there are any."""
        wanted = {line.number: line for line in lines}
        for number, record in self._records() if wanted else ():
            if number in wanted:
                self._kept[wanted[number]] = self._fields(record)

    def _fields(self, record: list[str]) -> list[str]:
        """Return the fields of the samples; words that repeat are kept once."""
        return [*map(sys.intern, self._plain([record[place].strip() for place in self._samples]))]

    def _values_of(self, line: _Line, missing: object) -> np.ndarray:
        """Return the fields of a line that was kept, as labels."""
        return numbers_or_text(self._kept[line], f"{self.path}, line {line.name!r}", missing)

    def kept_column(self, name: str, missing: object) -> np.ndarray | None:
        """Return the values of a line of metadata, as labels; None where there is no such line."""
        line = next((line for line in self._kept if line.name == name), None)
        return None if line is None else self._values_of(line, missing)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the fields of each line; of the first only if it does not name the samples."""
        table = self._table
        heading = table.heading
        if table.has_names and len({*heading[1:]}) < len(heading) - 1 and table.width == len(heading):
            yield 0, heading
        for line, record in table.numbered_records():
            if record[0].startswith("#") and len(record) == 1:
                continue
            if self._groups:
                record = self._expanded(record, line)
            if len(record) != table.width:
                raise table.misfit(line, record)
            yield line, record

    def _expanded(self, record: list[str], line: int) -> list[str]:
        """Return a record of a compressed count table with a field for each column."""
        out = [*record[:2], *["0"] * (self._table.width - 2)]
        for place, field in enumerate(record[2:], 3):
            group, _, abundance = field.partition(",")
            if field and (group not in self._groups or not is_number(abundance)):
                raise DataError(
                    f"{self.path}, line {line}, field {place}: {field!r}, expected group,abundance, with one of the "
                    f"{len(self._groups)} groups that the comments number. Write the table again, or in full: "
                    "count.seqs(compress=f)."
                )
            if field:
                out[self._groups[group]] = abundance
        return out

    def _label_place(self, labels: Labels, choice: ColumnChoice, names: list[str]) -> int | None:
        """Return the position of the line that ``labels`` names, or None where it names none."""
        if labels is None:
            name = choice.usual_label(names, str(self.path))
            return None if name is None else names.index(name)
        return names.index(labels) if isinstance(labels, str) and labels in names else None

    def _ids(self, lines: Sequence[_Line], asked: _Line | None) -> tuple[np.ndarray | None, str | None]:
        """Return the ids of the samples, and the line that they are from; None for the heading."""
        table, where = self._table, str(self.path)
        if asked is not None:
            return unique_ids(np.array(self._kept[asked]), f"{where}, line {asked.name!r}"), asked.name
        names = [table.names[place] for place in self._samples]
        stems = [*map(sample_of_reads, names)]
        heading = np.array(stems if len({*stems}) == len(names) else names)
        if table.has_names and np.unique(heading).size == heading.size:
            return heading, None
        for line in lines:
            if line.is_text and len({*self._kept[line]}) == self.n_rows:
                return np.array(self._kept[line]), line.name
        if table.has_names:
            remedy = "Rename one of the samples, or add their counts up."
            checked_names(heading, self.n_rows, f"{where}, first line", remedy)
        return None, None

    def _told(self, where: str, naming: str | None) -> Iterator[str]:
        """Yield what is to be said of how the table was read."""
        metadata = f", below {len(self.metadata):,} of metadata" if self.metadata else ""
        yield Message(
            "{}: samples are columns: {:,} samples, and {:,} lines of bins{}. If its lines are samples, say "
            "{transpose=False}.",
            where,
            self.n_rows,
            self.n_features,
            metadata,
        )
        if naming is not None:
            yield f"{where}: the line {naming!r} is text without repeats and names the samples."
        taken = {0, *self._samples}
        aside = [name for place, name in enumerate(self._table.names) if place not in taken]
        if aside:
            yield f"{where}: columns that are no samples are left out: {shown(aside)}."

    def _filled(self) -> RowFile:
        bound = min(self.n_rows * self.n_features, 8 * self.path.size)
        file = RowFile(self.n_rows, self.n_features, bound, self.dtype)
        waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        n_waiting = 0
        for line, record in self._records():
            place = self._place.get(line)
            if place is None:
                continue
            values = self._values(record, line)
            samples = np.flatnonzero(values)
            waiting.append((samples, np.full(samples.size, place), values[samples]))
            n_waiting += samples.size
            if n_waiting > _ENTRIES_AT_ONCE:
                file.add(*map(np.concatenate, zip(*waiting, strict=True)))
                waiting, n_waiting = [], 0
        if waiting:
            file.add(*map(np.concatenate, zip(*waiting, strict=True)))
        file.finish()
        self.is_sparse = file.n_entries <= _MOST_FILLED * self.n_rows * self.n_features
        return file

    def _values(self, record: list[str], line: int) -> np.ndarray:
        fields = [record[place] for place in self._samples]
        if self._table.keeps_gaps:
            blanks = {"", *words_for_missing()}
            fields = ["nan" if field.strip() in blanks else field for field in fields]
            record = [*record]
            for place, field in zip(self._samples, fields, strict=True):
                record[place] = field
        reads = is_number if self._marks is None else self._marks.reads
        try:
            values = np.array(self._plain(fields), dtype=np.float64)
            # NumPy reads 1_000 as Python does
            is_checked = self._marks is not None or "_" in "".join(fields)
            wrong = next((i for i in self._samples if is_checked and not reads(record[i])), None)
        except ValueError:
            wrong = next(i for i in self._samples if not reads(record[i]))
        if wrong is not None:
            raise DataError(
                Message(
                    "{}, line {} ({!r}), field {} ({!r}): {!r}, expected a number. Mend it, take missing counts as "
                    "zero with {missing_counts='zero'} or, if the line is no bin, set it aside with {exclude=}.",
                    self.path,
                    line,
                    record[0],
                    wrong + 1,
                    self._table.names[wrong],
                    record[wrong][:60],
                    record[0],
                )
            )
        return values


_AMONG_CLADES = {"unclassified", "unknown", "unassigned", "unmapped"}  # lines that stand for no clade


def _metadata(lines: Sequence[_Line], only_text: bool) -> list[int]:
    """Return the positions of lines that are no bins: those of text, and unless ``only_text`` those on top.

    Where most lines of numbers are named by clades, all above the first clade are on top.
    """
    is_text = np.array([line.is_text for line in lines])
    if only_text:
        return np.flatnonzero(is_text).tolist()
    is_clade = np.array([rank_of(line.name) is not None for line in lines])
    if np.any(~is_text) and is_clade[~is_text].mean() >= 1 / 2:
        may_be_bin = is_clade | [line.name.lower() in _AMONG_CLADES for line in lines]
        return np.flatnonzero(is_text | (~may_be_bin & (np.cumsum(is_clade) == 0))).tolist()
    share = np.cumsum(is_text) / np.arange(1, is_text.size + 1)
    ends = np.flatnonzero(is_text & (share >= _LEAST_TEXT_ON_TOP))
    top = 0 if not ends.size else int(ends[-1])
    return [place for place in range(is_text.size) if is_text[place] or place < top]


def _check_distinct(lines: Sequence[_Line], where: str) -> None:
    """Refuse two bins of one name."""
    first: dict[str, int] = {}
    for line in lines:
        if line.name in first:
            raise DataError(
                f"{where}, line {line.number}: {line.name!r} is the name of line {first[line.name]} too. Each bin "
                "needs a name of its own: rename one, or add the two lines up."
            )
        first[line.name] = line.number


def _is_text(values: Sequence[str]) -> bool:
    """Return whether most fields of a line are text; words for missing values are neither text nor numbers."""
    known = [field for field in values if field.strip() and not stands_for_missing(field)]
    return 2 * sum(map(is_number, known)) <= len(known)
