"""Columns that look like groups: the rows that share a value are nearly equal, like frames of a film."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data.label_kinds import is_real, kind_of
from chimap.data.source import Source

_ROWS = 2000  # most rows that are compared with each other
_COLUMNS = 4  # most columns that are tested; each is another pass over the file
_FEWEST_VALUES, _FEWEST_ROWS = 5, 20
_FEWEST_COMPARED = 20  # at least so many values are compared, if there are as many
# How far the share of rows whose nearest row has the same value must exceed chance, as a share of 1 - chance.
_EXCESS = 0.5
# Largest median ratio of the distance to the nearest row of the same value to that of another value.
_NEAR = 0.5
_NEAR_OF_MANY, _MANY = (
    0.72,
    0.08,
)  # the same ratio where a value covers at most this share of its class; kinds within a class are larger


def group_column(source: Source) -> str | None:
    """Return the first column set aside that looks like a group, see ``looks_like_groups``; None if none does."""
    tasks = {*(source.task_names or ())}
    for name in [name for name in source.columns_aside if name not in tasks][:_COLUMNS]:
        try:
            codes = _codes(source.column(name))
        except (DataError, ValueError):
            continue  # groups have one value a row, this column does not
        if codes is None:
            continue
        places = _whole_groups(codes)
        rows, y = source.take(places), source.labels()
        kinds = y[places] if y is not None and y.ndim == 1 and _may_be_classes(y) else None
        if looks_like_groups(rows, codes[places], kinds):
            return name
    return None


def doubts_of_groups(source: Source) -> Iterator[str]:
    """Yield a sentence on the column that looks like a group, if there is one."""
    name = group_column(source)
    if name is not None:
        yield Message(
            "column {!r} looks like a group: rows that share its value are nearly equal. Name it with {groups=}, or "
            "scores will be too optimistic.",
            name, name,
        )  # fmt: skip


def looks_like_groups(rows: Rows, values: np.ndarray, classes: np.ndarray | None = None) -> bool:
    """Return whether rows that share a value are nearly equal.

    Two conditions must hold. The nearest row has the same value far more often than by chance. And it is far nearer
    than the nearest row of another value: twice as near, or somewhat less where a value covers few rows of its class.
    Distances are taken between the square roots of shares, or for signed rows between directions.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n, bins)
        The rows.
    values : ndarray of shape (n,)
        The column to test.
    classes : ndarray of shape (n,), default=None
        Classes of the rows: rows are then compared within their class, so that a column that follows from the label
        does not count as a group.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> films = np.repeat(np.arange(30), 5)
    >>> frames = rng.random((30, 8))[films] + 0.01 * rng.random((150, 8))
    >>> looks_like_groups(frames, films), looks_like_groups(frames, rng.permutation(films))
    (True, False)
    """
    if not np.isfinite(_arrays.stored_values(rows)).all():
        return False  # the fit will report the value that is not finite
    distances = _distances(rows)
    np.fill_diagonal(distances, np.inf)
    same_value = values[:, None] == values[None, :]
    same_class = np.ones_like(same_value) if classes is None else classes[:, None] == classes[None, :]
    within = np.where(same_value & same_class, distances, np.inf).min(axis=1)
    beyond = np.where(~same_value & same_class, distances, np.inf).min(axis=1)
    has_both = np.isfinite(within) & np.isfinite(beyond)
    if np.count_nonzero(has_both) < _FEWEST_ROWS:
        return False
    shares = ((same_value & same_class).sum(axis=1) - 1) / (same_class.sum(axis=1) - 1).clip(1)
    chance, nearer = float(shares[has_both].mean()), float((within < beyond)[has_both].mean())
    distance_ratio = float(np.median(within[has_both] / beyond[has_both].clip(np.finfo(np.float64).tiny)))
    is_near = distance_ratio <= _NEAR or (distance_ratio <= _NEAR_OF_MANY and chance <= _MANY)
    return nearer - chance >= _EXCESS * (1 - chance) and is_near


def _codes(values: np.ndarray) -> np.ndarray | None:
    """Return codes from 0 on for text or whole numbers with enough distinct values and repeats; otherwise None."""
    if is_real(values):
        return None
    distinct, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    repeated = counts[counts > 1].sum()
    return None if distinct.size < _FEWEST_VALUES or repeated < values.size / 2 else codes


def _may_be_classes(y: np.ndarray) -> bool:
    return kind_of(y) != "numbers" and np.unique(y).size <= y.size / 2


def _whole_groups(codes: np.ndarray) -> np.ndarray:
    """Return the sorted positions of at most ``_ROWS`` rows: groups in random order, the last one cut short.

    Groups are whole, but for long ones: their first rows are taken, neighbours in the file, so that all chosen rows
    cannot come from one or two groups.
    """
    counts = np.bincount(codes)
    order = np.random.default_rng(0).permutation(counts.size)
    rank = np.empty(order.size, dtype=np.intp)
    rank[order] = np.arange(order.size)
    by_group = np.argsort(rank[codes], kind="stable")
    first = np.concatenate([[0], np.cumsum(counts[order])[:-1]])  # place of the first row of each group
    place_in_group = np.arange(codes.size) - np.repeat(first, counts[order])
    most = _ROWS // min(counts.size, _FEWEST_COMPARED)
    return np.sort(by_group[place_in_group < most][:_ROWS])


def _distances(rows: Rows) -> np.ndarray:
    """Return the Euclidean distances, of shape (n, n), between rows scaled to length 1."""
    values = _arrays.stored_values(rows)
    is_signed = bool(values.min(initial=0) < 0)
    rows = _arrays.as_rows(rows, np.float64)
    if not is_signed:
        rows = _arrays.map_values(rows, np.sqrt)
    product = rows @ rows.T
    product = _arrays.to_dense(product)
    lengths = np.sqrt(np.diagonal(product).clip(np.finfo(np.float64).tiny))
    return np.sqrt((2 - 2 * product / lengths[:, None] / lengths[None, :]).clip(0))
