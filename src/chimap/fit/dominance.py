"""Rows that drown all others: a kernel that sums up bins of 1e10 and of 10 hardly tells the rows of 10 apart."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap.kernels import Exponential, Kernel
from chimap.recipe.parts import FeatureBlock

_SHARE = 0.9  # of what all rows sum up to: then their mean distance is that to a single row
_FEWEST_ROWS = 10  # among fewer rows, one may well be the largest by far
_PIECE = 2**17  # entries whose powers are in memory at once


def warn_of_dominance(
    rows: Rows, places: np.ndarray, parts: Sequence[FeatureBlock], name: str, columns: Sequence[str] | None
) -> None:
    """Warn if one of the rows (n, bins) that features are fitted on dominates the sums of the kernel of its block.

    A kernel of degree d grows with the powers |x|^d of the bins. The distances to a row with nine tenths of all powers
    decide the mean distance, the scatter, and with them gamma and the strengths that are tried.

    Parameters
    ----------
    rows : array or CSR matrix of shape (n, bins)
        Prepared rows.
    places : array of shape (n,)
        Their places in the source ``name``, for the warning.
    parts : sequence of FeatureBlock
        The blocks of columns, with their kernels.
    name : str
        Name of the source.
    columns : sequence of str or None
        Names of the columns.
    """
    for part in parts:
        degree = _degree(part.kernel)
        if not degree or rows.shape[0] < _FEWEST_ROWS:
            continue
        is_whole = part.columns.size == rows.shape[1]
        block = rows if is_whole else _arrays.take_columns(rows, part.columns)
        sums = _sums_of_powers(block, degree)
        row = int(np.argmax(sums))
        share = float(sums[row] / sums.sum()) if sums[row] > 0 else 0.0
        if share < _SHARE:
            continue
        values = np.abs(_arrays.to_dense(_arrays.take_rows(block, np.array([row])))[0])
        place = int(np.argmax(values))
        column = int(part.columns[place])
        warnings.warn(
            Message(
                "{}, row {}, column {}: {:.3g} makes this row {:.4g} % of all that the kernel {!r} sums up over {:,} "
                "rows, so that it hardly tells the others apart. Check the entry; {normalize='log1p'} or "
                "{normalize='l1'} gives such rows less weight.",
                name,
                places[row],
                column if columns is None else repr(columns[column]),
                values[place],
                100 * share,
                part.kernel.name,
                rows.shape[0],
            ),
            stacklevel=2,
        )


def _degree(kernel: Kernel) -> float | None:
    """Return the degree by which a kernel, or the distance that it is an exponential of, grows with the bins."""
    return kernel.kernel.degree if isinstance(kernel, Exponential) else kernel.degree


def _sums_of_powers(rows: Rows, degree: float) -> np.ndarray:
    """Return the sum of (|x| / largest)^degree of each row, (n,)."""
    largest = float(_arrays.column_maxima(rows).max(initial=0.0)) or 1.0
    sums = np.empty(rows.shape[0])
    step = max(1, _PIECE // max(1, rows.shape[1]))
    for first in range(0, rows.shape[0], step):
        some = _arrays.as_rows(_arrays.take_rows(rows, slice(first, first + step)), np.float64)
        powers = _arrays.map_values(some, lambda values: np.abs(values / largest) ** degree)
        sums[first : first + step] = np.asarray(powers.sum(axis=1)).ravel()
    return sums
