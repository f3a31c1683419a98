"""Rows that are left out together, as places in the order of a fit: those of a group follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

_FEWEST_PARTS = 5  # that rows are left out in where each takes a solution
_AS_A_FACTOR = 20  # targets whose solutions take as long as the factor of 3000 rows
_LEAST_ROWS = 500
_WORK = 3e7  # entries of the factor times columns to solve for, up to which there are more parts


def within(groups: Sequence[np.ndarray], rows: np.ndarray) -> list[np.ndarray]:
    """The places among chosen rows (ascending) of what the groups have there."""
    edges = np.searchsorted(rows, [group[0] for group in groups] + [groups[-1][-1] + 1])
    return [np.arange(a, b) for a, b in pairwise(edges) if b > a]


def few_of_parts(most: int, n_targets: int) -> int:
    """Rows that settings are compared on first where parts of them are left out: so many that the solutions of all
    targets take about as long as the factor of ``most`` rows.

    >>> [few_of_parts(3000, n) for n in (12, 100, 10_000)]
    [3000, 1341, 500]
    """
    return int(max(min(most, _LEAST_ROWS), most * np.sqrt(min(1.0, _AS_A_FACTOR / n_targets))))


def parts_of(groups: Sequence[np.ndarray] | None, n: int, n_targets: int) -> list[np.ndarray]:
    """Rows that are left out together where each part of them takes a solution of its own for every target: neighbours,
    or whole groups, of a fifth of the rows at most and of one row at least.

    >>> [part.size for part in parts_of(None, 20_000, 12)]
    [4000, 4000, 4000, 4000, 4000]
    """
    n_parts = int(np.clip(_WORK / (n_targets * n**2), _FEWEST_PARTS, n))
    if groups is None:
        return [part for part in np.array_split(np.arange(n), n_parts) if part.size]
    sizes = np.array([group.size for group in groups])
    of_group = (
        (np.cumsum(sizes) - sizes / 2) * n_parts // n
    )  # by their middles: two groups are never all of one part
    return [
        np.concatenate([groups[k] for k in np.flatnonzero(of_group == part).tolist()])
        for part in np.unique(of_group)
    ]
