"""Text tables of any layout: which of them have samples as columns, and which program wrote them."""

from __future__ import annotations

import os

from chimap._messages import Message
from chimap._unicode import composed
from chimap._validation import DataError
from chimap.data.clades import rank_of
from chimap.data.label_kinds import is_number, stands_for_missing
from chimap.data.labels import Labels
from chimap.data.source import Source
from chimap.data.table import ColumnChoice
from chimap.readers.csv import CsvSource, TextTable
from chimap.readers.io.files import existing_file, split_member
from chimap.readers.mothur import is_shared, shared_source
from chimap.readers.transposed import FIELDS_LOOKED_AT, TransposedSource, no_samples

_SAME_KIND = 0.9  # share of the fields of a line that are of one kind
_FEWEST_SAMPLES = 3  # from which lines of text above lines of numbers show that samples are columns


def text_table(path: str, labels: Labels, choice: ColumnChoice) -> Source:
    """Return the samples of a text table, which are its lines or its columns.

    ``FILE::MEMBER`` names a distance of a shared file of mothur. Raises DataError for a member of any other table.
    """
    path, member = split_member(path)
    said = (labels, *choice.said())
    table = TextTable(existing_file(path), said=said, known=choice.names)
    if is_shared(table):
        return shared_source(path, labels, choice, table, member)
    if member is not None:
        raise DataError(
            f"{path}: of text tables, only the shared files of mothur have members, one for each distance, so leave "
            f"'::{member}' out."
        )
    transpose = is_transposed(table, labels, choice) if choice.transpose is None else choice.transpose
    kind = TransposedSource if transpose else CsvSource
    return kind(path, labels, choice=choice, table=table)


def is_transposed(table: TextTable, labels: Labels, choice: ColumnChoice) -> bool:
    """Return whether a text table has samples as columns.

    It does if a program writes such tables, if the words that the caller names, or the bins of a model, are first
    fields of lines rather than names of columns, if those are clades, or if lines of text stand above lines of numbers.

    Raises DataError where labels or ids are named by a line and by a column.
    """
    if no_samples(table) is not None:
        return True
    heading = {*table.names[1:]} if table.has_names else set()
    bins = {name for name in choice.names or () if not is_number(name)}
    if bins and 2 * len(heading & bins) > len(bins):
        return False
    asked = {word for word in (labels, choice.id) if isinstance(word, str) and "::" not in word}
    asked = {word for word in asked if not is_number(word) and not os.path.exists(word)}
    words = {*asked, *(word for word in choice.aside if not is_number(word))}
    in_heading = not bins and bool(words) and words <= heading
    first: set[str] = set()
    if in_heading:
        first = {record[0] for record in table.look}
    elif words or bins:
        first = {composed(record[0].strip()) for _, record in table.numbered_records()}
    if both := asked & heading & first:
        raise DataError(
            Message(
                "{}: {!r} names a line and a column, so samples may be either. Say {transpose=True} if they are "
                "columns, or {transpose=False} if they are lines.",
                table.file,
                min(both),
            )
        )
    if in_heading:
        return False
    for there in (asked, words, bins):
        votes = len(first & there) - len(heading & there)
        if votes:
            return votes > 0
    n_clades = sum(rank_of(record[0].strip()) is not None for record in table.look)
    return 2 * n_clades > len(table.look) or _text_stands_above_numbers(table)


def _text_stands_above_numbers(table: TextTable) -> bool:
    """Return whether the first lines are all of text or all of numbers, those of text on top."""
    rows = [record[1:] for record in table.look if len(record) == table.width]
    if table.width <= _FEWEST_SAMPLES or len(rows) < _FEWEST_SAMPLES:
        return False
    shares = []
    for row in rows:
        known = [field for field in row[:FIELDS_LOOKED_AT] if field.strip() and not stands_for_missing(field)]
        shares.append(sum(map(is_number, known)) / len(known) if known else 0.0)
    are_pure = [min(share, 1 - share) <= 1 - _SAME_KIND for share in shares]
    return all(are_pure) and shares[0] < 1 / 2 < max(shares)
