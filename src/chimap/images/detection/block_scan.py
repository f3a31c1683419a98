"""Blocks of oriented gradients: made once an image, weighed at every place of a window."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np

from chimap.images.descriptors import HOGBlocks
from chimap.images.descriptors.hog_blocks import BlockBorders, BlockGrid
from chimap.images.detection.scans import Layout, Scan
from chimap.images.pyramid import cells_of
from chimap.tables import BinFunctions


class BlockScan(Scan):
    """A block of the image is a block of many windows, at another place of each.

    Its features are made once; what it adds at all places is their product with the weights there. Blocks at the border
    of a window differ from those within, since gradients across the border are 0: there are up to nine of each.
    """

    @staticmethod
    def takes(descriptor: Any) -> bool:
        """Whether its words are the numbers of blocks."""
        return isinstance(descriptor, HOGBlocks)

    def __init__(self, layout: Layout, functions: BinFunctions, output: int) -> None:
        super().__init__(layout, functions, output)
        descriptor = layout.descriptor
        if descriptor.size != layout.window:
            raise ValueError(
                f"window must be the size of the blocks, {descriptor.size}; got {layout.window}."
            )
        self._n_blocks = descriptor.n_words // descriptor.block_words
        self._places = [(grid, self._by_borders(grid)) for grid in descriptor.block_grids]

    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Blocks of each size of cells, in each state of their borders, at the places of the window that have it."""
        descriptor, (rows, columns) = self._layout.descriptor, scores.shape
        for grid, places in self._places:
            stride = self._layout.step // grid.cell
            for borders, blocks in descriptor.blocks(image, grid.cell, places).items():
                added = self._sums(blocks, grid, places[borders])
                for p, (row, column) in enumerate(places[borders]):
                    scores += added[row::stride, column::stride, p][:rows, :columns]

    def _sums(self, blocks: np.ndarray, grid: BlockGrid, places: list[tuple[int, int]]) -> np.ndarray:
        """What each block of the image adds at each of these places, (rows, columns, places)."""
        values = blocks.reshape(-1, blocks.shape[2]) / self._n_blocks
        found = np.zeros((values.shape[0], len(places)))
        for own, level in self._layout.levels:
            bins = np.array([self._bins(grid, own, level, *place) for place in places])
            found += self._functions.sums(values, bins)[:, :, self._output]
        return found.reshape(*blocks.shape[:2], len(places))

    def _bins(
        self, grid: BlockGrid, of_level: tuple[int, int], level: slice, row: int, column: int
    ) -> np.ndarray:
        """The columns of a block at a place of the window, in a level of the pyramid."""
        descriptor, number = self._layout.descriptor, row * grid.columns + column
        x, y = (centres[number] for centres in descriptor.centres(grid))
        height, width = self._layout.window
        cell = cells_of(y, 0, height, of_level[0]) * of_level[1] + cells_of(x, 0, width, of_level[1])
        first = level.start + int(cell) * descriptor.n_words + (grid.first + number) * descriptor.block_words
        return np.arange(first, first + descriptor.block_words)

    def _by_borders(self, grid: BlockGrid) -> dict[BlockBorders, list[tuple[int, int]]]:
        """Places (row, column) of the blocks of a window, by which of their sides lie at its border."""

        def borders(place: tuple[int, int]) -> BlockBorders:
            return self._layout.descriptor.borders(grid, *place)

        places = sorted(product(range(grid.rows), range(grid.columns)), key=borders)
        return {key: list(own) for key, own in groupby(places, key=borders)}
