"""Rows that are left out together, as places in the order of a fit, where the rows of a group are adjacent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

_FEWEST_PARTS = 5  # parts that rows are left out in if each of them takes a solution
_AS_A_FACTOR = 20  # targets whose solutions take as long as the factor of 3000 rows
_LEAST_ROWS = 500
_WORK = 3e7  # entries of the factor times columns to solve for; less work allows more parts


def within(groups: Sequence[np.ndarray], rows: np.ndarray) -> list[np.ndarray]:
    """Return the places of each group's rows among ascending chosen rows, without groups that have none there."""
    edges = np.searchsorted(rows, [group[0] for group in groups] + [groups[-1][-1] + 1])
    return [np.arange(a, b) for a, b in pairwise(edges) if b > a]


def few_of_parts(most: int, n_targets: int) -> int:
    """Return the number of rows that settings are compared on first, if parts of them are left out.

    The solutions of all targets then take about as long as the factor of ``most`` rows.


    >>> [few_of_parts(3000, n) for n in (12, 100, 10_000)]
    [3000, 1341, 500]
    """
    return int(max(min(most, _LEAST_ROWS), most * np.sqrt(min(1.0, _AS_A_FACTOR / n_targets))))


def parts_of(groups: Sequence[np.ndarray] | None, n: int, n_targets: int) -> list[np.ndarray]:
    """Return the rows that are left out together, if each part takes a separate solution for every target.

    A part has adjacent rows, or whole groups. It has at most a fifth of the rows, and at least one row.


    >>> [part.size for part in parts_of(None, 20_000, 12)]
    [4000, 4000, 4000, 4000, 4000]
    """
    n_parts = int(np.clip(_WORK / (n_targets * n**2), _FEWEST_PARTS, n))
    if groups is None:
        return [part for part in np.array_split(np.arange(n), n_parts) if part.size]
    sizes = np.array([group.size for group in groups])
    # Groups are assigned by their middles, so that two groups never end up in a single part.
    of_group = (np.cumsum(sizes) - sizes / 2) * n_parts // n
    return [
        np.concatenate([groups[k] for k in np.flatnonzero(of_group == part).tolist()])
        for part in np.unique(of_group)
    ]
