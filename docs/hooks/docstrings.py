"""Prepare docstrings for the site: format opening formulas as code and put remarks on parameters below their names."""

from __future__ import annotations

import re
from typing import Any

import griffe

PARAMETER = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) ?: (.*)$")
LISTS = {"Parameters", "Attributes", "Other Parameters"}
IS_FORMULA = re.compile(r"^[\w ]*(\([\w, ]+\))?.* = ")
MOST_IN_A_TYPE = 40  # characters; a longer text is an explanation and not a type, unless it ends as types do
ENDS_A_TYPE = re.compile(r"(, optional|, default=\S.*| of shape \(.*\))$")


def opening(line: str) -> str:
    """Return the first line, with a formula formatted as code."""
    if not IS_FORMULA.match(line) or "`" in line:
        return line
    formula, separator, words = line.partition(", with ")
    return f"`{formula.rstrip('.')}`{separator}{words}"


def readable(text: str) -> str:
    """Return the docstring in a form that the numpy parser reads."""
    first, *lines = text.split("\n")
    section, out = "", [opening(first), *lines[:1]]
    for before, line, after in zip(lines, lines[1:], [*lines[2:], ""], strict=False):
        starts = not before.strip() and line.strip() and not line.startswith(" ")
        if starts and after.startswith("---"):
            section = line.strip()
        elif starts and line.startswith(">>>") and section != "Examples":
            section = "Examples"
            out += ["Examples", "--------"]
        elif starts and (section in LISTS or section == "Examples") and not line.startswith(">>>"):
            section = "Notes"
            out += ["Notes", "-----"]
        match = PARAMETER.match(line) if section in LISTS else None
        is_type = match and (len(match[2]) <= MOST_IN_A_TYPE or ENDS_A_TYPE.search(match[2]))
        if match and not (is_type and after.startswith("   ")):
            out += [match[1], "    " + match[2]]
        else:
            out.append(line)
    return "\n".join(out)


class ReadableDocstrings(griffe.Extension):
    """A griffe extension that rewrites every docstring with ``readable``."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of ``obj``, if it has one."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
