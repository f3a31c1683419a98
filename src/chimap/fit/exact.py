"""Fits that keep every row: ridge on the kernel matrix, its settings chosen by leaving rows out."""

from __future__ import annotations

from typing import Any

import numpy as np

from chimap import _threads
from chimap.features.exact import ExactFeatures
from chimap.kernels import Exponential
from chimap.solvers.exact import DualRidge

_TILE = 512


class ExactRows:
    """The rows of an exact fit and the kernel among them, for ``selection.leave_one_out``.

    One matrix is kept: a kernel exp(-gamma D^2) at twice gamma is its square, at half of it its square root, so that
    other gammas cost a pass over it and no product.
    """

    def __init__(
        self,
        features: ExactFeatures,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        dtype: np.dtype,
    ):
        self.features, self.Y, self.row_weights, self.dtype = features, Y, row_weights, dtype
        self._rows: np.ndarray | None = None
        self._ridge: DualRidge | None = None
        self._octaves = 0

    def gamma(self, octaves: int) -> float | None:
        """Gamma 2^octaves times that of the features; None where the kernel has none."""
        kernel = self.features.kernel_
        return float(kernel.gamma) * 2.0**octaves if isinstance(kernel, Exponential) else None

    def ridge(self, rows: np.ndarray | None, octaves: int) -> DualRidge:
        """Of these rows, or of all; the machine of other rows that was made before is gone."""
        if self._ridge is None or rows is not self._rows:
            self._ridge = None  # let go before there is another
            features = self.features if rows is None else self.features.take(rows)
            n = features._n_features_out
            square = np.empty((n, n), dtype=self.dtype)
            chosen: Any = slice(None) if rows is None else rows
            weights = None if self.row_weights is None else self.row_weights[chosen]
            self._ridge = DualRidge(square, features.gram_into(square), self.Y[chosen], weights)
            self._rows, self._octaves = rows, 0
        _raise_below(self._ridge.square, octaves - self._octaves)
        self._octaves = octaves
        return self._ridge


def _raise_below(square: np.ndarray, octaves: int) -> None:
    """square_ij <- square_ij^(2^octaves) below the diagonal."""
    n, step = square.shape[0], np.square if octaves > 0 else np.sqrt

    def part(first: int) -> None:
        own = slice(first, min(first + _TILE, n))
        for start in range(0, own.start, _TILE):
            tile = square[own, start : start + _TILE]
            for _ in range(abs(octaves)):
                step(tile, out=tile)
        corner = np.tril(square[own, own], -1)
        for _ in range(abs(octaves)):
            step(corner, out=corner)
        square[own, own] = corner

    if octaves:
        _threads.tasks(range(0, n, _TILE), part)
