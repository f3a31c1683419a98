"""Scan words at the points of grids: counts of windows, looked up in tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chimap import _loops, _threads
from chimap._errors import InputError
from chimap._messages import Message
from chimap.images.coding import HardCoding
from chimap.images.descriptors import OnGrids
from chimap.images.detection.scans import Layout, Scan, cells
from chimap.tables import BinFunctions


class _Cell(NamedTuple):
    """A cell of the window.

    places: (rectangles, 6), see ``scan_windows``. table: (words, most + 1, 1) float64, g of each word at each count.
    """

    places: np.ndarray
    table: np.ndarray


class WordScan(Scan):
    """Scan of the histograms of words at the points of grids.

    A window always holds n points, so a count is one of 0, .., n, and each g_i is a table, without rounding. From a
    window to the next only the points of some columns change: each costs two look-ups.

    Sources: Maji, Berg and Malik, Classification using intersection kernel support vector machines is efficient, 2008
    (tables); Huang, Yang and Tang, A fast two-dimensional median filtering algorithm, 1979 (updates of the counts).
    """

    @staticmethod
    def takes(descriptor: object) -> bool:
        """Return whether the points of the descriptor lie on grids."""
        return isinstance(descriptor, OnGrids)

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        super().__init__(layout, functions)
        histograms, descriptor = layout.histograms, layout.descriptor
        if histograms.vocabularies_[layout.number] is not None and not isinstance(
            histograms.coder, HardCoding
        ):
            raise InputError(
                Message(
                    "windows can be scanned with {coding='hard'} only; the histograms are {!r}.", histograms
                )
            )
        self._cells: list[_Cell] = []
        for grid, columns in layout.levels:
            places = self._places(grid)
            n_points = sum(int((cell[:, 3] * cell[:, 4]).sum()) for cell in places)
            if not n_points:
                raise InputError(
                    f"window {layout.window} holds no points of {descriptor}; use a larger window."
                )
            n_words = (columns.stop - columns.start) // len(places)
            for cell, rectangles in enumerate(places):
                bins = np.arange(columns.start + cell * n_words, columns.start + (cell + 1) * n_words)
                counts = np.arange(int((rectangles[:, 3] * rectangles[:, 4]).sum()) + 1) / n_points
                values = functions(np.repeat(counts[:, None], n_words, axis=1), bins)
                self._cells.append(_Cell(rectangles, np.ascontiguousarray(values.transpose(1, 0, 2))))

    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Find the words of the image, then scan all windows cell by cell."""
        words, of_output = self._words(image), scores[:, :, None]

        def scan(part: slice) -> None:
            for cell in self._cells:
                _loops.scan_windows(words, cell.places, cell.table, part.start, of_output[part])

        points = sum(int(cell.places[:, 3].sum()) for cell in self._cells)
        _threads.over_rows(scores.shape[0], scores.shape[1] * points, scan)

    def _places(self, grid: tuple[int, int]) -> list[np.ndarray]:
        """Return the points of each cell of the window: one rectangle for each layer that has points there."""
        window = self._layout.window
        descriptor, step = self._layout.descriptor, self._layout.step
        layers = [cells(grid, x, y, window) for x, y in descriptor.grids(window)]
        places = []
        for cell in zip(*layers, strict=True):
            rectangles = [
                [layer, top, left, bottom - top, right - left, step // descriptor.steps[layer]]
                for layer, ((top, bottom), (left, right)) in enumerate(cell)
                if bottom > top and right > left
            ]
            places.append(np.array(rectangles, np.int64).reshape(-1, 6))
        return places

    def _words(self, image: np.ndarray) -> np.ndarray:
        """Return (layers, H, W) int32: the word at each point of the layers, -1 beyond the grid of a layer."""
        histograms, number = self._layout.histograms, self._layout.number
        coded, _ = histograms.coded(image, self._layout.descriptor, histograms.vocabularies_[number])
        grids = self._layout.descriptor.grids(image.shape)
        words = np.full(
            (len(grids), max(y.size for _, y in grids), max(x.size for x, _ in grids)), -1, np.int32
        )
        start = 0
        for layer, (x, y) in enumerate(grids):
            stop = start + y.size * x.size
            words[layer, : y.size, : x.size] = coded.words[start:stop, 0].reshape(y.size, x.size)
            start = stop
        return words
