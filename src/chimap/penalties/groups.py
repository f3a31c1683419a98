"""Groups of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from chimap._errors import InputError

Group: TypeAlias = slice | Sequence[int] | np.ndarray


def check_groups(groups: Sequence[Group], n_features: int) -> list[np.ndarray]:
    """Return groups of columns as index arrays.

    Parameters
    ----------
    groups : sequence of slices or of sequences of int
        Columns of each group.
    n_features : int
        Number of columns.

    Returns
    -------
    list of ndarray
        Indices of the columns of each group.

    Raises
    ------
    ValueError
        If a group is empty, a column does not exist, or a column is not in exactly one group.

    Examples
    --------
    >>> [group.tolist() for group in check_groups([slice(0, 2), [2]], 3)]
    [[0, 1], [2]]
    """
    indices = [np.arange(n_features)[g] if isinstance(g, slice) else np.asarray(g, dtype=np.int64) for g in groups]
    for i, group in enumerate(indices):
        if group.size == 0:
            raise InputError(f"group {i} is empty: every group needs at least one column.")
    columns = np.concatenate(indices) if indices else np.zeros(0, dtype=np.int64)
    if columns.size and not 0 <= columns.min() <= columns.max() < n_features:
        raise InputError(f"groups name columns {columns.min()} to {columns.max()}; there are {n_features}.")
    times = np.bincount(columns, minlength=n_features)
    if np.any(times != 1):
        column = int(np.flatnonzero(times != 1)[0])
        place = "in no group" if times[column] == 0 else f"in {times[column]} groups"
        raise InputError(f"column {column} is {place}; each of the {n_features} columns must be in exactly one.")
    return indices
