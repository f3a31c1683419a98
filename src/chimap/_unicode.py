"""Text in one form of Unicode, NFC, so that a letter with an accent is the same however it was typed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np

_FIRST_MARK = 0x300  # no two characters before it combine


def composed(text: str) -> str:
    """Return a text in the form NFC, in which marks are part of their letters.

    >>> len(composed("cafe\\u0301"))
    4
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def composed_names(names: Iterable[object]) -> tuple[str, ...]:
    """Return names as text in the form NFC."""
    return tuple(composed(str(name)) for name in names)


def composed_texts(values: np.ndarray) -> np.ndarray:
    """Return an array of text in the form NFC; objects that are no text stay."""
    if values.dtype.kind == "U":
        codes = np.ascontiguousarray(values).view(np.uint32)
        if codes.max(initial=0) < _FIRST_MARK:
            return values
    if values.dtype.kind not in "UO":
        return values
    known: dict[object, object] = {}
    flat = [
        known.setdefault(value, composed(value)) if isinstance(value, str) else value
        for value in values.reshape(-1).tolist()
    ]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out.reshape(values.shape).astype(str) if values.dtype.kind == "U" else out.reshape(values.shape)
