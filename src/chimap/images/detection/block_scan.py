"""Scan windows of gradient blocks: compute each block of an image once, and weight it for every place in a window."""

from __future__ import annotations

from itertools import groupby, product
from typing import NamedTuple

import numpy as np

from chimap import _threads
from chimap.images.descriptors import HOGBlocks
from chimap.images.descriptors.hog_blocks import BlockBorders, BlockGrid
from chimap.images.detection.scans import Layout, Scan
from chimap.images.pyramid import cells_of
from chimap.tables.functions import BinFunctions, PlaceSums


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
            raise ValueError(
                f"window must be the size of the blocks, {descriptor.size}; got {layout.window}."
            )
        self._n_blocks = descriptor.n_words // descriptor.block_words
        self._kinds = [(grid, self._kinds_of(grid, functions)) for grid in descriptor.block_grids]

    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Add the blocks of each size of cells, in each version, at the places of the window that have it."""
        descriptor, (rows, columns) = self._layout.descriptor, scores.shape
        for grid, kinds in self._kinds:
            stride = self._layout.step // grid.cell
            blocks = descriptor.blocks(image, grid.cell, [kind.borders for kind in kinds])

            def added(kind: _Kind, blocks: np.ndarray = blocks, stride: int = stride) -> np.ndarray:
                kind_blocks = blocks[kind.borders]
                values = kind_blocks.reshape(-1, kind_blocks.shape[2]) / self._n_blocks
                sums = np.sum([at_level(values) for at_level in kind.sums], axis=0).reshape(
                    *kind_blocks.shape[:2], -1
                )
                out = np.zeros((rows, columns))
                for p, (row, column) in enumerate(kind.places):
                    out += sums[row::stride, column::stride, p][:rows, :columns]
                return out

            for contribution in _threads.tasks(kinds, added):
                scores += contribution

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
