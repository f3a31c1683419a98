"""Text in one form, NFC and without blanks around it, so that a word is the same however it was typed."""

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
    """Return an array of text in the form NFC, without blanks around each; values that are no text stay.

    >>> composed_texts(np.array(["T ", "T"]))
    array(['T', 'T'], dtype='<U2')
    """
    if values.dtype.kind == "U":
        codes = np.ascontiguousarray(values).view(np.uint32)
        if codes.max(initial=0) < _FIRST_MARK:
            has_blanks = np.any((codes - 1 < ord(" ")) | (codes == 0x85) | (codes == 0xA0))  # the code 0 fills up
            return np.char.strip(values) if has_blanks else values
    if values.dtype.kind not in "UO":
        return values
    known: dict[str, str] = {}
    flat = [
        known.setdefault(value, composed(value).strip()) if isinstance(value, str) else value
        for value in values.reshape(-1).tolist()
    ]
    out = np.fromiter(flat, dtype=object, count=len(flat))
    return out.reshape(values.shape).astype(str) if values.dtype.kind == "U" else out.reshape(values.shape)
