"""Which columns of an Arrow table are bins and which names the rows, as the caller chose or pandas wrote them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chimap.data.formats.arrow_columns import is_text
from chimap.data.formats.arrow_parts import Part
from chimap.data.ids import naming_note
from chimap.data.io.files import needed
from chimap.data.table import Choice, roles_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ArrowRoles:
    """features : names of the columns of bins, or None for what is usual. id : column that names the rows, or None.
    check_first : a column of bins that may be an index, or None. beside : columns set aside where all others are
    bins, or None where the caller chose. notes : for the user."""

    features: str | list[str] | None
    id: str | None
    check_first: str | None
    beside: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def columns_of(
    part: Part, label: str | None, choice: Choice, features: str | list[str] | None, where: str
) -> ArrowRoles:
    """The roles of the columns, of which the first part is asked. DataError as for ``roles_of``."""
    names = list(part.schema.names)
    place = names.index(label) if label in names else None
    index = pandas_index(part.schema)
    lists = [name for name in names if name != label and _is_list(part.schema.field(name).type)]
    if features is not None or len(lists) == 1:
        aside = roles_of(names, place, Choice(id=choice.id), where, index=index)
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
    """The columns that hold the index of a data frame, as pandas says in the metadata of the file."""
    text = (schema.metadata or {}).get(b"pandas")
    try:
        columns = json.loads(text)["index_columns"] if text else []
    except (ValueError, KeyError, TypeError):
        return []
    return [name for name in columns if isinstance(name, str)]


def _is_list(kind: pa.DataType) -> bool:
    types = needed("pyarrow", "Arrow files").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
