"""The shared file of mothur: the OTUs of groups, which are samples, at one distance or at several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chimap._messages import shown
from chimap._validation import DataError
from chimap.data.label_kinds import same_value
from chimap.data.labels import IGNORE_LABELS, Labels
from chimap.data.source import Source
from chimap.data.table import ColumnChoice, unique_ids
from chimap.data.views import ChosenRows
from chimap.readers.csv import CsvSource, TextTable
from chimap.readers.label_files import labels_elsewhere

_DISTANCE, _GROUP = "label", "Group"


def is_shared(table: TextTable) -> bool:
    """Return whether a table has the heading of a shared file: label, Group, and numOtus or numASVs."""
    return table.names[:2] == [_DISTANCE, _GROUP] and table.names[2:3] != [] and table.names[2].startswith("num")


def shared_source(path: str, labels: Labels, choice: ColumnChoice, table: TextTable, distance: str | None) -> Source:
    """Return the groups of a shared file as rows, with their names as ids.

    ``distance`` names one of several, as in ``FILE.shared::0.03``. Its column, called ``label``, holds no labels.
    """
    read = [[table.ids(column, "") for column in batch.columns] for batch in table.batches(table.names[:2])]
    if not read:
        raise DataError(f"{path}: no rows, only a heading or blank lines. Write it again.")
    distances, groups = map(np.concatenate, zip(*read, strict=True))
    there = [*dict.fromkeys(distances.tolist())]
    if distance is None and len(there) > 1:
        raise DataError(f"{path}: OTUs at several distances, {shown(there)}. Name one: '{path}::{there[-1]}'.")
    chosen = there[0] if distance is None else next((each for each in there if same_value(each, distance)), None)
    if chosen is None:
        raise DataError(f"{path}: no OTUs at distance {distance!r}; there are {shown(there)}. Name one of these.")
    choice = replace(choice, aside=(*choice.aside, _DISTANCE, table.names[2]))
    if len(there) == 1:
        return CsvSource(path, labels, choice=replace(choice, id=_GROUP if choice.id is None else choice.id))
    rows = np.flatnonzero(distances == chosen)
    whole = CsvSource(path, IGNORE_LABELS, choice=replace(choice, id=None, aside=(*choice.aside, _GROUP)))
    y = None if labels is IGNORE_LABELS else labels_elsewhere(labels, rows.size, path, ())
    source = _AtDistance(whole, rows, y)
    source.row_ids = unique_ids(groups[rows], f"{path}, column {_GROUP!r}")
    source.n_left_out = 0
    source.notes = (*source.notes, f"{path}: OTUs at distance {chosen}, of {shown(there)}.")
    return source


class _AtDistance(ChosenRows):
    """The rows of one distance, which are a table of their own."""

    def places_in_file(self) -> np.ndarray:
        """Return the positions among the rows of this distance."""
        return np.arange(self.n_rows)
