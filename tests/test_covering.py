"""The cases that CI runs of a product show what all of them show."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from .covering import covering

SIZES = [(5, 3), (4, 4, 3), (2, 3, 2, 5)]


@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
def test_all_values_that_meet_anywhere_meet_in_few_cases(sizes, together):
    cases = [case for case in product(*map(range, sizes)) if sum(case) != 2]  # some are left out
    places = covering(cases, together)
    for axes in combinations(range(len(sizes)), together):
        in_all = {tuple(case[axis] for axis in axes) for case in cases}
        assert {tuple(cases[i][axis] for axis in axes) for i in places} == in_all
    most = sorted(sizes)[-together:]
    assert len(places) <= 1.5 * (most[0] if together == 1 else most[0] * most[1])


@pytest.mark.covering(1)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("letter", ["a", "b"])
def test_what_shows_nothing_more_is_thorough(letter, number, request):
    is_thorough = request.node.get_closest_marker("thorough") is not None
    assert is_thorough == (f"{letter}{number}" not in ("a1", "b2"))
