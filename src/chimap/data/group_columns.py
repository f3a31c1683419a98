"""Columns that look like groups: rows of one value are nearly equal, as frames of a film are."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data.source import Source

_ROWS = 2000  # that are compared with each other
_COLUMNS = 4  # that are looked at, at most; each is another reading of the file
_FEWEST_VALUES, _FEWEST_ROWS = 5, 20
_EXCESS = 0.5  # of the chance that is left, by which the nearest row is of the same value
_NEAR = 0.5  # of the distance to the nearest row of another value, where values are a large part of a class
_NEAR_OF_MANY, _MANY = (
    0.72,
    0.08,
)  # the same where they are a small part of it, which kinds within a class are not


def group_column(source: Source) -> str | None:
    """The first column that was set aside and looks like a group, see ``looks_like_groups``; None where none does."""
    tasks = {*(source.task_names or ())}
    for name in [name for name in source.columns_aside if name not in tasks][:_COLUMNS]:
        try:
            codes = _codes(source.column(name))
        except (DataError, ValueError):
            continue  # not one value a row, as groups have
        if codes is None:
            continue
        places = _whole_groups(codes)
        rows, y = source.take(places), source.labels()
        kinds = y[places] if y is not None and y.ndim == 1 and _may_be_classes(y) else None
        if looks_like_groups(rows, codes[places], kinds):
            return name
    return None


def looks_like_groups(rows: Rows, values: np.ndarray, classes: np.ndarray | None = None) -> bool:
    """Whether rows that share a value are nearly equal.

    rows (n, bins), dense or CSR. values (n,). classes (n,), or None: rows are compared with others of their class, so
    that a column which follows from the label is no group. The nearest row must be of the same value far more often
    than by chance, and be far nearer than the nearest of another value: twice as near, or somewhat less where the value
    is that of few rows of the class. Distances are between square roots of shares, or of signed rows between
    directions.

    >>> rng = np.random.default_rng(0)
    >>> films = np.repeat(np.arange(30), 5)
    >>> frames = rng.random((30, 8))[films] + 0.01 * rng.random((150, 8))
    >>> looks_like_groups(frames, films), looks_like_groups(frames, rng.permutation(films))
    (True, False)
    """
    if not np.isfinite(_arrays.stored_values(rows)).all():
        return False  # which is for the fit to say
    distances = _distances(rows)
    np.fill_diagonal(distances, np.inf)
    same = values[:, None] == values[None, :]
    alike = np.ones_like(same) if classes is None else classes[:, None] == classes[None, :]
    within = np.where(same & alike, distances, np.inf).min(axis=1)
    beyond = np.where(~same & alike, distances, np.inf).min(axis=1)
    known = np.isfinite(within) & np.isfinite(beyond)
    if np.count_nonzero(known) < _FEWEST_ROWS:
        return False
    shares = ((same & alike).sum(axis=1) - 1) / (alike.sum(axis=1) - 1).clip(1)
    chance, nearer = float(shares[known].mean()), float((within < beyond)[known].mean())
    near = float(np.median(within[known] / beyond[known].clip(np.finfo(np.float64).tiny)))
    is_near = near <= _NEAR or (near <= _NEAR_OF_MANY and chance <= _MANY)
    return nearer - chance >= _EXCESS * (1 - chance) and is_near


def _codes(values: np.ndarray) -> np.ndarray | None:
    """Numbers from 0 on for text and whole numbers some of which repeat; None for other columns."""
    if values.dtype.kind == "f" and np.any(values != np.round(values)):
        return None
    there, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    repeated = counts[counts > 1].sum()
    return None if there.size < _FEWEST_VALUES or repeated < values.size / 2 else codes


def _may_be_classes(y: np.ndarray) -> bool:
    return y.dtype.kind != "f" and np.unique(y).size <= y.size / 2


def _whole_groups(codes: np.ndarray) -> np.ndarray:
    """Places of all rows of some values, drawn at random."""
    order = np.random.default_rng(0).permutation(int(codes.max()) + 1)
    rank = np.empty(order.size, dtype=np.intp)
    rank[order] = np.arange(order.size)
    chosen = np.argsort(rank[codes], kind="stable")[:_ROWS]
    return np.sort(chosen)


def _distances(rows: Rows) -> np.ndarray:
    """Euclidean distances (n, n) of rows of length 1."""
    values = _arrays.stored_values(rows)
    is_signed = bool(values.min(initial=0) < 0)
    rows = _arrays.as_rows(rows, np.float64)
    if not is_signed:
        rows = _arrays.map_values(rows, np.sqrt)
    product = rows @ rows.T
    product = _arrays.to_dense(product)
    lengths = np.sqrt(np.diagonal(product).clip(np.finfo(np.float64).tiny))
    return np.sqrt((2 - 2 * product / lengths[:, None] / lengths[None, :]).clip(0))
