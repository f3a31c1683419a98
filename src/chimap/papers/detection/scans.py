"""Scans: what a descriptor contributes to the scores of all windows of an image, one class per kind of descriptor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from itertools import groupby, pairwise, product
from typing import Any, NamedTuple

import numpy as np

from chimap import _loops, _threads
from chimap._errors import InputError
from chimap._messages import Message
from chimap.images.descriptors import HOGBlocks, OnGrids, OnPixels
from chimap.images.descriptors.hog import BlockBorders, BlockGrid
from chimap.images.histograms import ImageHistograms
from chimap.images.pyramid import cells_of
from chimap.images.vocabulary import HardCoding
from chimap.tables.functions import BinFunctions, PlaceSums


class Layout(NamedTuple):
    """The windows of a scan, and the columns of a descriptor in their rows."""

    histograms: ImageHistograms
    number: int  # of the descriptor
    window: tuple[int, int]  # height and width in pixels
    step: int  # pixels between neighbouring windows

    @property
    def levels(self) -> list[tuple[tuple[int, int], slice]]:
        """The grid and the columns of each level."""
        grids, columns = self.histograms.grids, [*self.histograms.levels_.values()]
        return [*zip(grids, columns[self.number * len(grids) :], strict=False)]

    @property
    def descriptor(self) -> Any:
        """The descriptor, of the kind that the scan takes."""
        return self.histograms.descriptors_[self.number]


class Scan(ABC):
    """Sum over the columns of a descriptor of g_i(x_i), for the histogram x of each window of an image.

    layout: windows and columns. functions: the functions g, with one output.
    """

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        self._layout = layout

    @abstractmethod
    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Add to the scores (rows, columns) float64 of the windows whose corners are ``step`` pixels apart."""


def extents(places: np.ndarray, length: int, n: int) -> list[tuple[int, int]]:
    """Return (first, last + 1) of the places in each of n equal parts of a window.

    Places are in pixels of the window and increase.
    """
    part = cells_of(places, 0, length, n)
    edges = np.searchsorted(part, np.arange(n + 1))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def cells(
    grid: tuple[int, int], x: np.ndarray, y: np.ndarray, window: tuple[int, int]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return ((top, bottom), (left, right)) of the points in each cell of a grid, row by row.

    The numbers are indices into y and x.
    """
    return list(product(extents(y, window[0], grid[0]), extents(x, window[1], grid[1])))


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

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        super().__init__(layout, functions)
        histograms, descriptor = layout.histograms, layout.descriptor
        if histograms.vocabularies_[layout.number] is not None and not isinstance(histograms.coder, HardCoding):
            raise InputError(
                Message("windows can be scanned with {coding='hard'} only; the histograms are {!r}.", histograms)
            )
        self._cells: list[_Cell] = []
        for grid, columns in layout.levels:
            places = self._places(grid)
            n_points = sum(int((cell[:, 3] * cell[:, 4]).sum()) for cell in places)
            if not n_points:
                raise InputError(f"window {layout.window} holds no points of {descriptor}; use a larger window.")
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
        coded = self._layout.histograms.words_at(image, self._layout.number)
        grids = self._layout.descriptor.grids(image.shape)
        words = np.full((len(grids), max(y.size for _, y in grids), max(x.size for x, _ in grids)), -1, np.int32)
        start = 0
        for layer, (x, y) in enumerate(grids):
            stop = start + y.size * x.size
            words[layer, : y.size, : x.size] = coded.words[start:stop, 0].reshape(y.size, x.size)
            start = stop
        return words


ROWS_OF_BLOCKS = 32  # rows of blocks per task, so that their features and contributions stay in cache


class _Kind(NamedTuple):
    """Blocks of a window with the same sides at its border.

    places: (row, column) of each. sums: the contributions of a block at all places, one entry a level.
    """

    borders: BlockBorders
    places: list[tuple[int, int]]
    sums: list[PlaceSums]


class BlockScan(Scan):
    """Scan of blocks of oriented gradients.

    A block of the image belongs to many windows, and has a different place in each. Its features are computed once;
    their product with the weights of all places gives its contributions to all windows. Blocks at the border of a
    window differ from those inside, since gradients across the border are 0: each block has up to nine versions.
    """

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        super().__init__(layout, functions)
        descriptor = layout.descriptor
        if descriptor.size != layout.window:
            raise InputError(f"window must be the size of the blocks, {descriptor.size}; got {layout.window}.")
        self._n_blocks = descriptor.n_words // descriptor.block_words
        self._kinds = [(grid, self._kinds_of(grid, functions)) for grid in descriptor.block_grids]

    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Add the blocks of each size of cells, in each version, at the places of the window that have it."""
        for grid, kinds in self._kinds:
            cells = self._layout.descriptor.cells_within(image, grid.cell, [kind.borders for kind in kinds])
            parts = product(kinds, range(0, cells.shape[0] - 1, ROWS_OF_BLOCKS))
            for low, added in _threads.tasks(parts, partial(self._added, grid, cells, scores.shape)):
                scores[low : low + len(added)] += added

    def _added(
        self, grid: BlockGrid, cells: np.ndarray, n_windows: tuple[int, int], part: tuple[_Kind, int]
    ) -> tuple[int, np.ndarray]:
        """Return what blocks of one kind, in some rows from a first one on, add to the scores of windows.

        These are the scores of some rows of windows; the first of these rows comes with them.
        """
        kind, first = part
        sums = self._sums(kind, cells[first : first + ROWS_OF_BLOCKS + 1], grid.cell)
        places, stride = np.array(kind.places), self._layout.step // grid.cell
        low = max(0, -((places[:, 0].max() - first) // stride))
        high = min(n_windows[0], (first + len(sums) - 1 - places[:, 0].min()) // stride + 1)
        out = np.zeros((max(0, high - low), n_windows[1]))
        _loops.add_at_places(sums, places, first - low * stride, stride, out)
        return low, out

    def _sums(self, kind: _Kind, cells: np.ndarray, cell: int) -> np.ndarray:
        """Return the contributions (rows, columns, places) of the blocks of neighbouring cells at all places."""
        blocks = self._layout.descriptor.blocks(cells, cell, kind.borders)
        values = blocks.reshape(-1, blocks.shape[2]) / self._n_blocks
        first, *others = (at_level(values) for at_level in kind.sums)
        return sum(others, first).reshape(*blocks.shape[:2], -1)

    def _bins(self, grid: BlockGrid, of_level: tuple[int, int], level: slice, row: int, column: int) -> np.ndarray:
        """Return the columns of a block at a place of the window, in a level of the pyramid."""
        descriptor, number = self._layout.descriptor, row * grid.columns + column
        x, y = (centres[number] for centres in descriptor.centres(grid))
        height, width = self._layout.window
        cell = cells_of(y, 0, height, of_level[0]) * of_level[1] + cells_of(x, 0, width, of_level[1])
        first = level.start + int(cell) * descriptor.n_words + (grid.first + number) * descriptor.block_words
        return np.arange(first, first + descriptor.block_words)

    def _kinds_of(self, grid: BlockGrid, functions: BinFunctions) -> list[_Kind]:
        """Return the blocks of a window, grouped by their sides at its border."""

        def borders(place: tuple[int, int]) -> BlockBorders:
            return self._layout.descriptor.borders(grid, *place)

        kinds = []
        ordered = sorted(product(range(grid.rows), range(grid.columns)), key=borders)
        for key, group in groupby(ordered, key=borders):
            places = list(group)
            sums = [
                functions.sums(np.array([self._bins(grid, of_level, level, *place) for place in places]))
                for of_level, level in self._layout.levels
            ]
            kinds.append(_Kind(key, places, sums))
        return kinds


WINDOWS_PER_BLOCK = 64  # windows per block, so that their rows stay in cache


class PixelScan(Scan):
    """Scan of the histograms of weighted pixels.

    The histogram of a cell is the difference of four sums, whatever the size of the cell; it is divided by the total of
    the window. Pixels count as they do in the scene, except those in the descriptor's ``border`` of the window.

    Sources: Crow, Summed-area tables for texture mapping, 1984; Porikli, Integral histogram, 2005.
    """

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        super().__init__(layout, functions)
        border, (height, width) = layout.descriptor.border, layout.window
        if 2 * border >= min(layout.window):
            raise InputError(f"window {layout.window} is all border of {layout.descriptor}; use a larger window.")
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
            shares = np.empty((min(WINDOWS_PER_BLOCK, n_columns), self._n_columns))
            for row, first in product(range(n_rows)[part], range(0, n_columns, WINDOWS_PER_BLOCK)):
                windows = slice(first, first + WINDOWS_PER_BLOCK)
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
            np.searchsorted(corners, place, side="right") for corners, place in ((rows, coded.y), (columns, coded.x))
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


SCANS: dict[type, type[Scan]] = {OnGrids: WordScan, HOGBlocks: BlockScan, OnPixels: PixelScan}
"""Scans by the class of their descriptors: points on grids, words that are blocks, or pixels with weights."""
