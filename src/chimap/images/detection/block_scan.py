"""Scan windows of gradient blocks: compute each block of an image once, and weight it for every place in a window."""

from __future__ import annotations

from functools import partial
from itertools import groupby, product
from typing import NamedTuple

import numpy as np

from chimap import _loops, _threads
from chimap._errors import InputError
from chimap.images.descriptors import HOGBlocks
from chimap.images.descriptors.hog_blocks import BlockBorders, BlockGrid
from chimap.images.detection.scans import Layout, Scan
from chimap.images.pyramid import cells_of
from chimap.tables.functions import BinFunctions, PlaceSums

_BLOCK_ROWS = 32  # rows of blocks per task, so that their features and contributions stay in cache


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

    @staticmethod
    def takes(descriptor: object) -> bool:
        """Return whether the words of the descriptor are the numbers of blocks."""
        return isinstance(descriptor, HOGBlocks)

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        super().__init__(layout, functions)
        descriptor = layout.descriptor
        if descriptor.size != layout.window:
            raise InputError(
                f"window must be the size of the blocks, {descriptor.size}; got {layout.window}."
            )
        self._n_blocks = descriptor.n_words // descriptor.block_words
        self._kinds = [(grid, self._kinds_of(grid, functions)) for grid in descriptor.block_grids]

    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Add the blocks of each size of cells, in each version, at the places of the window that have it."""
        for grid, kinds in self._kinds:
            cells = self._layout.descriptor.cells_within(image, grid.cell, [kind.borders for kind in kinds])
            parts = product(kinds, range(0, cells.shape[0] - 1, _BLOCK_ROWS))
            for low, added in _threads.tasks(parts, partial(self._added, grid, cells, scores.shape)):
                scores[low : low + len(added)] += added

    def _added(
        self, grid: BlockGrid, cells: np.ndarray, n_windows: tuple[int, int], part: tuple[_Kind, int]
    ) -> tuple[int, np.ndarray]:
        """Return what blocks of one kind, in some rows from a first one on, add to the scores of windows.

        These are the scores of some rows of windows; the first of these rows comes with them.
        """
        kind, first = part
        sums = self._sums(kind, cells[first : first + _BLOCK_ROWS + 1], grid.cell)
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

    def _bins(
        self, grid: BlockGrid, of_level: tuple[int, int], level: slice, row: int, column: int
    ) -> np.ndarray:
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
