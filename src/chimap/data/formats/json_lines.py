"""JSON objects, one per line."""

from __future__ import annotations

import json

from chimap._types import JSON
from chimap._validation import DataError


def object_of(line: bytes, where: str) -> JSON:
    """Return the object that a line holds; ``where`` is for errors.

    Raises DataError for a line that is not a JSON object, and for a key that comes twice.

    >>> object_of(b'{"counts": {"red": 3}}', "rows.jsonl, line 1")
    {'counts': {'red': 3}}
    """
    try:
        record = json.loads(line, object_pairs_hook=_unique_keys)
    except KeyError as error:
        raise DataError(
            f"{where}: the key {error} comes twice in one object. Add the two values up, or rename one of them."
        ) from error
    except ValueError as error:
        raise DataError(
            f"{where}: not JSON ({error}). The file is cut off or damaged; give one object per line."
        ) from error
    if not isinstance(record, dict):
        raise DataError(
            f"{where}: {type(record).__name__}, expected an object such as "
            '{"id": "a", "counts": {"word": 2}, "label": "b"}.'
        )
    return record


def _unique_keys(pairs: list[tuple[str, object]]) -> JSON:
    """Return the object of these pairs; raise KeyError for a repeated key, of which Python would keep the last."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise KeyError(next(key for key in keys if keys.count(key) > 1))
    return record
