"""Format the formula that opens a docstring as code on the site."""

from __future__ import annotations

import re
from typing import Any

import griffe

IS_FORMULA = re.compile(r"^[\w ]*(\([\w, ]+\))?.* = ")


def opening(line: str) -> str:
    """Return the first line of a docstring, with a formula formatted as code."""
    if not IS_FORMULA.match(line) or "`" in line:
        return line
    formula, separator, words = line.partition(", with ")
    return f"`{formula.rstrip('.')}`{separator}{words}"


class ReadableDocstrings(griffe.Extension):
    """A griffe extension that formats the first line of every docstring with ``opening``."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of ``obj``, if it has one."""
        if obj.docstring is not None:
            first, newline, rest = obj.docstring.value.partition("\n")
            obj.docstring.value = opening(first) + newline + rest
