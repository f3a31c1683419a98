"""Checks of what callers give, and where their messages point."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError, check_counted, check_width, row_sums


@pytest.mark.parametrize("names", [["0", "1", "2"], [0, 1, 2], ["b", "a"], ["0", "2"], [], [1, 2, 3]])
def test_names_that_say_nothing_of_an_order(names):
    check_counted(names, "table")


@pytest.mark.parametrize("names", [["1", "0", "2"], [2, 1, 0]])
def test_columns_that_are_counted_in_another_order(names):
    with pytest.raises(DataError, match="table"):
        check_counted(names, "table")


def test_sums_that_are_too_large_name_the_row():
    rows = np.full((4, 3), 1.0)
    assert row_sums(rows).tolist() == [3.0] * 4
    rows[2] = 1e308
    with pytest.raises(DataError, match="X, row 2: its bins sum to more than a float64 holds"):
        row_sums(rows)
    with pytest.raises(DataError, match="part, row 12"):
        row_sums(rows, name="part", first_row=10)


def test_other_numbers_of_bins():
    check_width(np.empty((0, 3)), 3, "it")
    for width in (2, 4):
        with pytest.raises(DataError, match=f"X has {width} features, but it is expecting 3 features"):
            check_width(np.empty((5, width)), 3, "it")
