"""Which columns of an Arrow table are bins and which one names the rows, by the caller's choice or pandas' metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chimap.data.formats.arrow_columns import is_text
from chimap.data.formats.arrow_parts import ArrowPart
from chimap.data.ids import naming_note
from chimap.data.io.files import needed
from chimap.data.table import ColumnChoice, roles_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ArrowRoles:
    """The roles of the columns of an Arrow table.

    Parameters
    ----------
    features : str, list of str or None
        Names of the columns of bins; None for the usual ones.
    id : str or None
        Column that names the rows.
    check_first : str or None
        A column of bins that may be an index.
    beside : tuple of str, default=None
        Columns that are set aside while all others are bins; None if the caller chose the bins.
    notes : tuple of str, default=()
        Notes for the user.
    """

    features: str | list[str] | None
    id: str | None
    check_first: str | None
    beside: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def columns_of(
    part: ArrowPart, label: str | None, choice: ColumnChoice, features: str | list[str] | None, where: str
) -> ArrowRoles:
    """Return the roles of the columns, taken from the first part. Raises DataError as ``roles_of`` does."""
    names = list(part.schema.names)
    place = names.index(label) if label in names else None
    index = pandas_index(part.schema)
    lists = [name for name in names if name != label and _is_list(part.schema.field(name).type)]
    if features is not None or len(lists) == 1:
        aside = roles_of(names, place, ColumnChoice(id=choice.id), where, index=index)
        return ArrowRoles(features, None if aside.id is None else names[aside.id], None)
    roles = roles_of(names, place, choice, where, index=index)
    bins, id = [names[i] for i in roles.bins], None if roles.id is None else names[roles.id]
    first = next((name for name in names if name != label), None)
    check_first: str | None = None
    note: tuple[str, ...] = ()
    if id is None and first is not None and (not roles.is_explicit or first not in bins):
        if is_text(part, first):
            id, bins = first, [name for name in bins if name != first]
            note = (naming_note(first, where),)
        elif first in bins and len(bins) > 1:
            check_first = first
    beside = None if roles.is_explicit or choice.exclude is not None else (*index, *([id] if id else ()))
    return ArrowRoles(bins, id, check_first, beside, (*roles.notes(where, id), *note))


def pandas_index(schema: pa.Schema) -> list[str]:
    """Return the columns that hold the index of a data frame, according to pandas' metadata in the file."""
    text = (schema.metadata or {}).get(b"pandas")
    try:
        columns = json.loads(text)["index_columns"] if text else []
    except (ValueError, KeyError, TypeError):
        return []
    return [name for name in columns if isinstance(name, str)]


def _is_list(kind: pa.DataType) -> bool:
    types = needed("pyarrow", "Arrow files").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
