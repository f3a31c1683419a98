"""Scan words of weighted pixels, such as edges: cells of windows from sums over rectangles of an image."""

from __future__ import annotations

from itertools import product

import numpy as np

from chimap import _threads
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
            raise ValueError(
                f"window {layout.window} is all border of {layout.descriptor}; use a larger window."
            )
        y, x = (np.arange(border, side - border, dtype=np.float32) for side in (height, width))
        layout_cells = [cell for grid, _ in layout.levels for cell in cells(grid, x, y, layout.window)]
        self._edges = border + np.array(layout_cells, np.int64)  # (cells, y and x, first and last + 1)
        bins = np.concatenate([np.arange(columns.start, columns.stop) for _, columns in layout.levels])
        self._functions = functions.sums(bins[None])
        self._inside = border, height - border, width - border

    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Add the scores of the windows of each row, block by block."""
        sums, step = self._sums(image), self._layout.step

        def scan(part: tuple[int, int]) -> None:
            row, first = part
            columns = slice(first, first + _WINDOWS)
            left = step * np.arange(scores.shape[1])[columns]
            rows = self._rows(sums, step * row, left)
            scores[row, columns] += self._functions(rows)[:, 0, 0]

        _threads.tasks(list(product(range(scores.shape[0]), range(0, scores.shape[1], _WINDOWS))), scan)

    def _sums(self, image: np.ndarray) -> np.ndarray:
        """Return the sums of the weights of each word above and to the left of each corner of a pixel.

        They have shape (H + 1, W + 1, words), float64.
        """
        descriptor, (height, width) = self._layout.descriptor, image.shape[:2]
        coded, n_words = descriptor.coded(image), descriptor.n_words
        pixels = coded.y.astype(np.int64) * width + coded.x.astype(np.int64)
        bins = pixels[:, None] * n_words + coded.words
        weights = None if coded.weights is None else coded.weights.ravel()
        out = np.zeros((height + 1, width + 1, n_words))
        counts = np.bincount(bins.ravel(), weights, minlength=height * width * n_words)
        out[1:, 1:] = counts.reshape(height, width, n_words)
        np.cumsum(out, axis=0, out=out)
        return np.cumsum(out, axis=1, out=out)

    def _rows(self, sums: np.ndarray, top: int, left: np.ndarray) -> np.ndarray:
        """Return the rows (windows, columns) of the windows with the corners (top, left)."""
        y, x = top + self._edges[:, 0], left[:, None, None] + self._edges[:, 1]
        counts = _within(sums, y[:, 0], y[:, 1], x[:, :, 0], x[:, :, 1])
        first, bottom, right = self._inside
        totals = _within(sums, top + first, top + bottom, left + first, left + right).sum(axis=1)
        totals[totals <= 0] = 1  # the counts are 0 too
        return counts.reshape(left.size, -1) / totals[:, None]


def _within(
    sums: np.ndarray, top: np.ndarray, bottom: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Return the weights of each word in rectangles.

    Negative differences, which can only be rounding, become 0.
    """
    totals = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return np.maximum(totals, 0, out=totals)
