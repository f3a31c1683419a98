"""Scan words of weighted pixels, such as edges: cells of windows from sums over rectangles of an image."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from chimap import _loops, _threads
from chimap._errors import InputError
from chimap.images.descriptors import OnGrids, OnPixels
from chimap.images.detection.scans import Layout, Scan, cells
from chimap.tables import BinFunctions

_WINDOWS = 64  # windows per block, so that their rows stay in cache


class PixelScan(Scan):
    """Scan of the histograms of weighted pixels.

    The histogram of a cell is the difference of four sums, whatever the size of the cell; it is divided by the total of
    the window. Pixels count as they do in the scene, except those in the descriptor's ``border`` of the window.

    Sources: Crow, Summed-area tables for texture mapping, 1984; Porikli, Integral histogram, 2005.
    """

    @staticmethod
    def takes(descriptor: object) -> bool:
        """Return whether the points of the descriptor are pixels with weights."""
        return isinstance(descriptor, OnPixels) and not isinstance(descriptor, OnGrids)

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        super().__init__(layout, functions)
        border, (height, width) = layout.descriptor.border, layout.window
        if 2 * border >= min(layout.window):
            raise InputError(
                f"window {layout.window} is all border of {layout.descriptor}; use a larger window."
            )
        y, x = (np.arange(border, side - border, dtype=np.float32) for side in (height, width))
        layout_cells = [cell for grid, _ in layout.levels for cell in cells(grid, x, y, layout.window)]
        inside = (0, y.size), (0, x.size)
        # (cells and all that is inside of the border, y and x, first and last + 1)
        self._edges = border + np.array([*layout_cells, inside], np.int64)
        bins = np.concatenate([np.arange(columns.start, columns.stop) for _, columns in layout.levels])
        self._functions, self._n_columns = functions.sums(bins[None]), bins.size

    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Add the scores of the windows of each row, block by block."""
        sums, step, (n_rows, n_columns) = self._sums(image, scores.shape), self._layout.step, scores.shape

        def scan(part: slice) -> None:
            shares = np.empty((min(_WINDOWS, n_columns), self._n_columns))
            for row, first in product(range(n_rows)[part], range(0, n_columns, _WINDOWS)):
                windows = slice(first, first + _WINDOWS)
                left = step * np.arange(n_columns)[windows]
                rows = self._rows(sums, step * row, left, shares[: left.size])
                scores[row, windows] += self._functions(rows)[:, 0, 0]

        with _threads.blas_alone():
            _threads.over_rows(n_rows, n_columns * self._n_columns, scan)

    def _sums(self, image: np.ndarray, n_windows: tuple[int, int]) -> CornerSums:
        """Return the sums up to the corners of all cells of the (rows, columns) of windows."""
        descriptor, step = self._layout.descriptor, self._layout.step
        coded, n_words = descriptor.coded(image), descriptor.n_words
        rows, columns = (
            np.unique(step * np.arange(n)[:, None] + np.unique(self._edges[:, axis]))
            for axis, n in enumerate(n_windows)
        )
        shape = rows.size + 1, columns.size + 1, n_words  # the last row and column: pixels beyond all cells
        row, column = (
            np.searchsorted(corners, place, side="right")
            for corners, place in ((rows, coded.y), (columns, coded.x))
        )
        bins = (row * shape[1] + column)[:, None] * n_words + coded.words
        weights = None if coded.weights is None else coded.weights.ravel()
        sums = np.bincount(bins.ravel(), weights, minlength=np.prod(shape)).reshape(shape)
        sums = sums[:-1, :-1].astype(np.float64, copy=False)
        np.cumsum(sums, axis=0, out=sums)
        np.cumsum(sums, axis=1, out=sums)
        return CornerSums(sums, rows, columns)

    def _rows(self, sums: CornerSums, top: int, left: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the rows (windows, columns) of the windows with the corners (top, left) to ``out``, and return it."""
        y = np.searchsorted(sums.rows, top + self._edges[:, 0])
        x = np.searchsorted(sums.columns, left[:, None, None] + self._edges[:, 1])
        _loops.cell_shares(sums.sums, y, x, out)
        return out


class CornerSums(NamedTuple):
    """Sums of the weights of each word above and to the left of corners of pixels.

    Windows are steps apart and their cells few, so that few corners of an image belong to cells.

    sums: (rows, columns, words), float64. rows, columns: ascending places of the corners, in pixels.
    """

    sums: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
