"""Logarithms of the filled entries of each row, standardised: what powers and factors of a row do not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._onnx import Value
from chimap._types import Rows
from chimap.normalizations.base import OfRows

_LEVEL, _LEAST = 3.0, 0.1
_EQUAL = 1e-6  # deviation of logarithms that are the same up to rounding


@dataclass(frozen=True)
class LogScores(OfRows):
    """3 + (ln x - mean) / deviation of each filled entry, at least 0.1, block by block; empty entries stay 0.

    Mean and deviation are those of ln x over the filled entries of the row; where these are all the same, they become
    3. A row whose shares are sharpened, x^p in place of x, is normalised to the same; so what laboratories differ in by
    amplification and filters changes little, and rows are of about the same size, as ``minmax`` needs it.
    """

    name: ClassVar[str] = "log-z"
    about: ClassVar[str] = "logs of filled entries, standardised in each row"
    scale: ClassVar[str] = "logarithms standardised in each row: 0 of an empty bin, 3 at the mean of filled ones"
    takes_signs: ClassVar[bool] = False
    joins_bins: ClassVar[bool] = True
    ignores_totals: ClassVar[bool] = True

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        if _arrays.is_sparse(rows):
            row, column = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices
            scores = _scores(rows.data, row, column, blocks, rows.shape[1])
            return _arrays.csr(scores.astype(rows.dtype), rows.indices, rows.indptr, rows.shape)
        out = np.zeros_like(rows)
        row, column = np.nonzero(rows)
        out[row, column] = _scores(rows[row, column], row, column, blocks, rows.shape[1])
        return out

    def onnx(self, x: Value, blocks: Sequence[np.ndarray], n_bins: int) -> Value:
        wide = x.cast(np.float64)
        is_filled = wide > 0.0
        logs, filled = is_filled.where(wide, 1.0).apply("Log"), is_filled.cast(np.float64)
        out = filled * _LEVEL
        for columns in blocks:
            inside = np.zeros(n_bins)
            inside[columns] = 1.0
            here = filled * inside
            n = here.sum(1, keep=True).at_least(1.0)
            centred = (logs - (logs * here).sum(1, keep=True) / n) * here
            deviation = ((centred * centred).sum(1, keep=True) / n).apply("Sqrt")
            out = out + centred / (deviation > _EQUAL).where(deviation, 1.0)
        return (out.at_least(_LEAST) * filled).cast(x.dtype)


def _scores(
    values: np.ndarray, row: np.ndarray, column: np.ndarray, blocks: Sequence[np.ndarray], n_bins: int
) -> np.ndarray:
    """Return the scores of entries at these rows and columns, 0 for entries that are 0."""
    block = np.zeros(n_bins, dtype=np.intp)
    for place, columns in enumerate(blocks):
        block[columns] = place
    is_filled = values > 0
    part = (row * len(blocks) + block[column])[is_filled]  # of a row, and its entries in a block
    logs = np.log(values[is_filled].astype(np.float64))
    n = np.maximum(np.bincount(part), 1)
    centred = logs - (np.bincount(part, logs) / n)[part]
    deviation = np.sqrt(np.bincount(part, np.square(centred)) / n)
    out = np.zeros(values.size)
    out[is_filled] = np.maximum(_LEVEL + centred / np.where(deviation > _EQUAL, deviation, 1)[part], _LEAST)
    return out
