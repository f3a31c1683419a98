"""Labels of several tasks: a matrix in which entries may be missing."""

from __future__ import annotations

from numbers import Real

import numpy as np

from chimap import _arrays
from chimap._types import ArrayLike
from chimap._validation import DataError
from chimap.data.label_kinds import as_number, is_text, texts_of


def clean_targets(Y: ArrayLike, n_tasks: int, where: str) -> np.ndarray:
    """Return labels of several tasks as float64 of shape (n, t), with NaN for missing entries.

    Missing entries are None, NaN, pandas' NA, empty text, or masked.

    Parameters
    ----------
    Y : array, masked array, data frame, list or sparse matrix of shape (n, t)
        The labels.
    n_tasks : int
        Number of tasks, t.
    where : str
        Name of the labels, for errors.

    Raises
    ------
    DataError
        For text and infinity, naming row and task, and for another number of tasks.

    Examples
    --------
    >>> clean_targets([[1, None], [0, 1]], 2, "y")
    array([[ 1., nan],
           [ 0.,  1.]])
    """
    Y = Y.toarray() if _arrays.is_sparse(Y) else Y
    values = Y if isinstance(Y, np.ma.MaskedArray) else np.asarray(Y)
    if values.ndim != 2 or values.shape[1] != n_tasks:
        raise DataError(
            f"{where}: expected labels of {n_tasks} tasks, (rows, {n_tasks}), got shape {values.shape}."
        )
    mask, values = np.ma.getmaskarray(values), np.ma.getdata(values)
    if is_text(values):
        values = _numbers(values, where)
    if values.dtype.kind not in "fiub":
        raise DataError(f"{where}: expected numbers, got dtype {values.dtype}.")
    targets = np.where(mask, np.nan, values.astype(np.float64))
    bad = np.isinf(targets)
    if bad.any():
        row, task = np.argwhere(bad)[0]
        raise DataError(
            f"{where}, row {row}, task {task}: {targets[row, task]}. Labels must be finite, or NaN if missing."
        )
    return targets


def task_column(values: np.ndarray, where: str) -> np.ndarray:
    """Return the labels (n,) of one task as numbers, NaN where one is missing. Raises DataError for text."""
    return clean_targets(np.ma.MaskedArray(values)[:, None], 1, where)[:, 0]


def _numbers(values: np.ndarray, where: str) -> np.ndarray:
    """Return Python objects as numbers, with NaN for missing ones."""
    numbers = np.full(values.shape, np.nan)
    for (row, task), value in np.ndenumerate(texts_of(values) if values.dtype.kind == "S" else values):
        is_blank = isinstance(value, str) and not value.strip()
        if value is None or type(value).__name__ in ("NAType", "NaTType") or is_blank:
            continue
        number = as_number(value) if isinstance(value, str) else value
        if not isinstance(number, Real):
            raise DataError(
                f"{where}, row {row}, task {task}: {str(value)!r}. Labels of several tasks must be numbers, or NaN if "
                "missing; give text labels of a single task as a single column."
            )
        numbers[row, task] = number
    return numbers
