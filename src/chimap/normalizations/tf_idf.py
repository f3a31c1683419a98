"""Words weighted by how rare they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._onnx import Value
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data import RowsInChunks
from chimap.moments import of_rows
from chimap.normalizations.base import KnownTargets, OfRows
from chimap.normalizations.shares import divided_by, onnx_divided_by

_CHUNK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class TfIdf(OfRows):
    """(1 + ln x) idf of every filled entry, and then rows of length 1, block by block.

        idf_i = 1 + ln((1 + n) / (1 + n_i))

    with n training rows, n_i of them with bin i filled; rows count by their weights. A bin that no training row has
    filled keeps a finite weight. Entries below 1, which are no counts of words, stand for themselves in place of
    1 + ln x, which would be negative for them.

    Parameters
    ----------
    idf : array of shape (bins,) or None, default=None
        The weights; None before they are learned.

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, section 6.4. The smoothing is that of
    scikit-learn's ``TfidfTransformer``.
    """

    idf: np.ndarray | None = None

    name: ClassVar[str] = "tf-idf"
    about: ClassVar[str] = "each row as tf-idf of length 1"
    scale: ClassVar[str] = "weights in the row by tf-idf"
    takes_signs: ClassVar[bool] = False
    joins_bins: ClassVar[bool] = True
    learns: ClassVar[bool] = True

    def fitted(self, source: RowsInChunks, targets: KnownTargets | None = None) -> TfIdf:
        total, filled = 0.0, np.zeros(source.n_features)
        for X, weights, _ in weighed_chunks(source):
            total += float(of_rows(weights).sum())
            filled += _filled(X, of_rows(weights))
        return replace(self, idf=1 + np.log((1 + total) / (1 + filled)))

    def __call__(self, rows: Rows, blocks: Sequence[np.ndarray]) -> Rows:
        if self.idf is None:
            raise DataError(f"{self.name} has learned no frequencies of words: fit the model first.")
        damped = _arrays.map_values(rows, lambda x: np.minimum(x, 1) + np.log(np.maximum(x, 1)))  # 1 + ln x from 1 on
        return divided_by(
            _arrays.scale_columns(damped, self.idf), blocks, lambda part: np.sqrt(_arrays.row_squares(part))
        )

    def onnx(self, x: Value, blocks: Sequence[np.ndarray], n_bins: int) -> Value:
        damped = x.at_most(1.0) + x.at_least(1.0).apply("Log")
        return onnx_divided_by(damped * np.asarray(self.idf), blocks, n_bins, _onnx_lengths)


def weighed_chunks(source: RowsInChunks) -> Iterator[tuple[Rows, np.ndarray, slice]]:
    """Yield rows of a source with their weights, (n,) or (n, t) for their targets, and their places."""
    for chunk in source.chunks(_CHUNK_ROWS):
        places = slice(chunk.start, chunk.start + chunk.X.shape[0])
        yield chunk.X, np.ones(chunk.X.shape[0]) if source.weights is None else source.weights[places], places


def _filled(rows: Rows, weights: np.ndarray) -> np.ndarray:
    """Return the weight of the rows in which each bin is above 0, (bins,)."""
    if not _arrays.is_sparse(rows):
        return np.asarray(weights @ (np.asarray(rows) > 0))
    by_entry = np.repeat(weights, np.diff(rows.indptr)) * (rows.data > 0)
    return np.bincount(rows.indices, by_entry, minlength=rows.shape[1])


def _onnx_lengths(x: Value) -> Value:
    """Return the l2 norms (n, 1), with 1 for empty rows."""
    squares = (x * x).sum(1, keep=True)
    return (squares > 0.0).where(squares, 1.0).apply("Sqrt")
