"""Products of settings, of which CI runs a part: each value, or each pair of values, is in one of its cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import combinations

import pytest


def covering(cases: Sequence[Sequence[Hashable]], together: int) -> set[int]:
    """Return the places of few cases that show all that ``together`` values at a time show in any."""
    shown = [{*combinations(enumerate(case), together)} for case in cases]
    missing, places = set().union(*shown), set()
    while missing:
        best = max(range(len(cases)), key=lambda i: len(shown[i] & missing))
        missing -= shown[best]
        places.add(best)
    return places


def mark_what_is_thorough(items: Sequence[pytest.Function]) -> None:
    """Mark the cases of tests with the mark ``covering`` that show nothing that others do not."""
    functions = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("covering"):
            functions[item.parent, item.originalname, mark.args[0]].append(item)
    for (*_, together), same in functions.items():
        places = covering([_values(item) for item in same], together)
        for i, item in enumerate(same):
            if i not in places:
                item.add_marker("thorough")


def _values(item: pytest.Function) -> tuple[Hashable, ...]:
    """Return what the parameters are: names, or the identities of other values, which stand in one list each."""
    return tuple(value if isinstance(value, str) else id(value) for value in item.callspec.params.values())
