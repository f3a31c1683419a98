"""Blocks of oriented gradients: made once an image, weighed at every place of a window."""

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
    """Blocks of a window with the same sides at its border: places (row, column), and what they add, a level each."""

    borders: BlockBorders
    places: list[tuple[int, int]]
    sums: list[PlaceSums]


class BlockScan(Scan):
    """A block of the image is a block of many windows, at another place of each.

    Its features are made once; what it adds at all places is their product with the weights there. Blocks at the border
    of a window differ from those within, since gradients across the border are 0: there are up to nine of each.
    """

    @staticmethod
    def takes(descriptor: object) -> bool:
        """Whether its words are the numbers of blocks."""
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
        """Blocks of each size of cells, in each state of their borders, at the places of the window that have it."""
        descriptor, (rows, columns) = self._layout.descriptor, scores.shape
        for grid, kinds in self._kinds:
            stride = self._layout.step // grid.cell
            blocks = descriptor.blocks(image, grid.cell, [kind.borders for kind in kinds])

            def added(kind: _Kind, blocks: np.ndarray = blocks, stride: int = stride) -> np.ndarray:
                own = blocks[kind.borders]
                values = own.reshape(-1, own.shape[2]) / self._n_blocks
                sums = np.sum([at_level(values) for at_level in kind.sums], axis=0).reshape(
                    *own.shape[:2], -1
                )
                out = np.zeros((rows, columns))
                for p, (row, column) in enumerate(kind.places):
                    out += sums[row::stride, column::stride, p][:rows, :columns]
                return out

            for one in _threads.tasks(kinds, added):
                scores += one

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

    def _kinds_of(self, grid: BlockGrid, functions: BinFunctions) -> list[_Kind]:
        """The blocks of a window by which of their sides lie at its border."""

        def borders(place: tuple[int, int]) -> BlockBorders:
            return self._layout.descriptor.borders(grid, *place)

        kinds = []
        ordered = sorted(product(range(grid.rows), range(grid.columns)), key=borders)
        for key, own in groupby(ordered, key=borders):
            places = list(own)
            sums = [
                functions.sums(np.array([self._bins(grid, of_level, level, *place) for place in places]))
                for of_level, level in self._layout.levels
            ]
            kinds.append(_Kind(key, places, sums))
        return kinds
