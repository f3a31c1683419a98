"""The widths that a search for better ones starts from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap import _arrays
from chimap._types import MatrixLike, Rows
from chimap._validation import DataError
from chimap.features.fourier.base import RandomFeatures
from chimap.kernels import SkewedIntersection

_SAMPLE_ROWS = 4096  # rows that the initial widths are computed from
_BLOCK_ROWS = 256  # of these, rows whose inputs are in memory at once


def initial_widths(
    unit: RandomFeatures,
    X: MatrixLike,
    names: Sequence[str],
    blocks: Sequence[np.ndarray],
    columns: np.ndarray,
) -> np.ndarray:
    """Return log widths (r,) at which every block has the same share of a mean exponent of 1.

    Within a block all widths are equal. ``unit`` are the fitted features at widths 1, ``blocks`` the columns of each
    block, and ``columns`` (bins,) the index of the width of each column. Raises DataError for a block that is constant.
    """
    is_l1, n_widths = isinstance(unit.kernel_, SkewedIntersection), int(columns.max()) + 1
    rows = _arrays.as_rows(_arrays.take_rows(_arrays.as_rows(X), slice(_SAMPLE_ROWS)))
    variances = _variances(unit, rows)
    # Over pairs of rows E |u - u'|^2 = 2 Var u, and E |u - u'| = 2 sqrt(Var u / pi) if u were normal.
    spread = 2 * np.sqrt(variances / np.pi) if is_l1 else variances
    by_column = spread.reshape(-1, columns.size).sum(axis=0)
    starts = np.empty(columns.size)
    for name, chosen in zip(names, blocks, strict=True):
        total = float(by_column[chosen].sum())
        if not total > 0 and rows.shape[0] > 1:
            raise DataError(
                f"block {name!r} is constant: all of its columns have one value in the rows that the widths start "
                "from, so it has no width. Leave its columns out."
            )
        share = (total or 1.0) * len(blocks)
        starts[chosen] = 1 / share if is_l1 else 1 / np.sqrt(share)
    logs, counts = np.log(starts), np.bincount(columns, minlength=n_widths)
    return np.bincount(columns, weights=logs, minlength=n_widths) / counts


def _variances(unit: RandomFeatures, rows: Rows) -> np.ndarray:
    """Return the variances (n_inputs,) of what is projected, about the first row: exactly 0 for a constant column."""
    n, n_inputs = rows.shape[0], unit._n_inputs
    buffer = np.empty((min(n, _BLOCK_ROWS), n_inputs), rows.dtype)
    origin, sums, squares = np.zeros((3, n_inputs))
    for start in range(0, n, _BLOCK_ROWS):
        block = _arrays.take_rows(rows, slice(start, start + _BLOCK_ROWS))
        inputs = unit._inputs(block, buffer[: block.shape[0]])
        inputs = _arrays.to_dense(inputs).astype(np.float64)
        if not start:
            origin[:] = inputs[0]
        inputs -= origin
        sums += inputs.sum(axis=0)
        squares += np.einsum("ij,ij->j", inputs, inputs)
    return np.maximum(squares - sums**2 / n, 0) / max(1, n - 1)
