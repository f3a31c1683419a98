"""Distances of rows to the nearest row that features keep, in the distance of the kernel.

    d(x) = min_j sqrt(K(x, x) + K(v_j, v_j) - 2 K(x, v_j))    over training rows, or landmarks, v_j

A row without any entry is about as near to every row as the rows are to each other, and nearer than most where rows
have length 1. It says nothing of the classes, so it is nobody's neighbour, and has no neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.features.base import FittedFeatures

FAR = float(np.finfo(np.float64).max)  # of a row without entries: finite, as outputs are
LEFT_OUT_ROWS = 1000  # rows whose distances to the others are measured: a quantile of .05 is off by .007
# Kernel values that are in memory together: a few MiB, which the least budgets have room for; rows of the fewest at a
# time, as products with many kept rows read all of these.
_NUMBERS, _FEWEST_ROWS = 2**17, 32
_SAME = 1e-12  # squared distance within which a kept row is the empty one


def empty_rows(features: FittedFeatures, dtype: np.dtype) -> np.ndarray:
    """Return which of the kept rows have no entries, (m,)."""
    empty = np.zeros((1, features.n_features_in_), dtype)
    return np.asarray(features.squared_distances(empty)[0] <= _SAME)


def nearest_distances(features: FittedFeatures, rows: Rows, empty: np.ndarray) -> np.ndarray:
    """Return d(x) (n,), float64, of checked rows; ``FAR`` for rows without entries.

    The features keep rows, of which those that are ``empty`` (m,), from ``empty_rows``, have no neighbours.
    """
    out = np.full(rows.shape[0], FAR)
    if empty.all():
        return out
    size = max(_FEWEST_ROWS, _NUMBERS // empty.size)
    for part in _arrays.slices(rows.shape[0], size):
        piece = _arrays.take_rows(rows, part)
        distances = features.squared_distances(piece)
        distances[:, empty] = np.inf
        out[part] = np.sqrt(distances.min(axis=1).clip(0))
    return np.where(has_entries(rows), out, FAR)


def has_entries(rows: Rows) -> np.ndarray:
    """Return which rows have an entry that is not 0, (n,)."""
    return np.asarray(np.diff(rows.indptr) > 0 if _arrays.is_sparse(rows) else rows.any(axis=1))


def distances_among(
    features: FittedFeatures, places: np.ndarray, empty: np.ndarray, groups: Sequence[np.ndarray] | None
) -> np.ndarray:
    """Return the distances (k,) of kept rows to the nearest kept row of another group; ``FAR`` where there is none.

    The features keep the training rows. ``places`` (k,) are those of the rows to measure, ``empty`` (m,) says which
    rows have no entries, and ``groups`` has the places of the rows of each group; None if each row is alone.
    """
    group_of = np.arange(empty.size)
    for number, members in enumerate(groups or ()):
        group_of[members] = number
    out, size = np.empty(places.size), max(_FEWEST_ROWS, _NUMBERS // empty.size)
    for part in _arrays.slices(places.size, size):
        piece = places[part]
        distances = features.squared_distances_at(piece)
        distances[:, empty] = np.inf
        distances[group_of[piece][:, None] == group_of] = np.inf
        out[part] = np.sqrt(distances.min(axis=1).clip(0))
    return np.where(empty[places] | ~np.isfinite(out), FAR, out)
