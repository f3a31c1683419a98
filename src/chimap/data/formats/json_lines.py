"""Objects of JSON, one a line."""

from __future__ import annotations

import json

from chimap._types import JSON
from chimap._validation import DataError


def object_of(line: bytes, where: str) -> JSON:
    """The object that a line holds. DataError, with ``where``, for what is none, and for a key that comes twice.

    >>> object_of(b'{"counts": {"red": 3}}', "rows.jsonl, line 1")
    {'counts': {'red': 3}}
    """
    try:
        record = json.loads(line, object_pairs_hook=_once)
    except KeyError as error:
        raise DataError(
            f"{where}: the key {error} comes twice in one object. Add up what belongs together, or rename one of them."
        ) from error
    except ValueError as error:
        raise DataError(
            f"{where}: not JSON ({error}). The file is cut off or damaged; give one object a line."
        ) from error
    if not isinstance(record, dict):
        raise DataError(
            f"{where}: {type(record).__name__}, expected an object such as "
            '{"id": "a", "counts": {"word": 2}, "label": "b"}.'
        )
    return record


def _once(pairs: list[tuple[str, object]]) -> JSON:
    """The object of these pairs. KeyError with a key that comes twice, of which the last would be kept."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise KeyError(next(key for key in keys if keys.count(key) > 1))
    return record
