"""A window as its blocks of oriented gradients, one behind the other: no vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import lcm
from typing import NamedTuple

import numpy as np

from chimap import _loops, _threads
from chimap._validation import check_positive
from chimap.images.descriptors.base import Coded, CodedDescriptor, check_image, opencv

# Of a cell: which row and which column lie at the border of the window: none, the first or the last.
_BORDERS = np.array(list(product(range(3), repeat=2)))


class BlockBorders(NamedTuple):
    """Which sides of a block lie at the border of its window."""

    top: bool = False
    left: bool = False
    bottom: bool = False
    right: bool = False


class BlockGrid(NamedTuple):
    """Blocks of a window, of cells of one size: how many rows and columns, and the number of the first."""

    cell: int
    rows: int
    columns: int
    first: int


@dataclass(frozen=True)
class HOGBlocks(CodedDescriptor):
    """Blocks of 2 x 2 cells of oriented gradients, each with words of its own: an image is one window.

    A gradient counts by its length for the two orientations of half a turn that are nearest to its own, in the cell
    that holds it; of the colours of a pixel the longest gradient counts. The 4 * orientations numbers of a block are
    divided by their sum, to which a mean gradient of ``contrast`` is added; what they lack of 1 is one more word, which
    flat blocks are. So every block sums to 1, and the pyramid, (1, 1), divides all by the number of blocks.

    size: (height, width) of the window in pixels; other images are scaled to it. cells: pixels a cell side, a scale
    each. contrast: in levels of 0 to 255.

    Source: Dalal and Triggs, Histograms of oriented gradients for human detection, 2005 (their L1 blocks; with the
    kernel "hellinger" their L1-sqrt), without the Gaussian in a block.

    >>> image = np.random.default_rng(0).integers(0, 256, size=(128, 64, 3), dtype=np.uint8)
    >>> coded = HOGBlocks().coded(image)
    >>> coded.words.shape, bool(np.allclose(coded.weights.sum(axis=1), 1))
    ((105, 37), True)
    """

    size: tuple[int, int] = (128, 64)
    cells: tuple[int, ...] = (8,)
    orientations: int = 9
    contrast: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", tuple(self.size))
        object.__setattr__(self, "cells", tuple(self.cells))
        if len(self.size) != 2:
            raise ValueError(f"size must be (height, width); got {self.size!r}.")
        check_positive(self.orientations, "orientations", integer=True)
        check_positive(self.contrast, "contrast")
        for cell in self.cells:
            check_positive(cell, "each of cells", integer=True)
            if not 2 <= cell <= min(self.size) // 2:
                raise ValueError(
                    f"each of cells must be from 2 to {min(self.size) // 2}, half of the shorter side of "
                    f"size={self.size}; got {cell}."
                )

    @property
    def step(self) -> int:
        """Pixels between windows whose cells are shared: the least common multiple of the cells."""
        return lcm(*self.cells)

    @property
    def n_words(self) -> int:
        """The numbers of all blocks."""
        return self.block_words * sum(grid.rows * grid.columns for grid in self.block_grids)

    @property
    def block_words(self) -> int:
        """The numbers of a block."""
        return 4 * self.orientations + 1

    @property
    def block_grids(self) -> list[BlockGrid]:
        """The blocks of each size of cells; they are numbered grid by grid, row by row."""
        grids, first = [], 0
        for cell in self.cells:
            rows, columns = (side // cell - 1 for side in self.size)
            grids.append(BlockGrid(cell, rows, columns, first))
            first += rows * columns
        return grids

    def centres(self, grid: BlockGrid) -> tuple[np.ndarray, np.ndarray]:
        """x, y (blocks,) float32 of the middles of the blocks of a grid, in pixels of the window."""
        x, y = (grid.cell * np.arange(1, n + 1, dtype=np.float32) - 0.5 for n in (grid.columns, grid.rows))
        return np.tile(x, y.size), np.repeat(y, x.size)

    def borders(self, grid: BlockGrid, row: int, column: int) -> BlockBorders:
        """The sides of a block that lie at the border of the window; pixels beyond the last cell lie between."""
        height, width = self.size
        return BlockBorders(
            row == 0,
            column == 0,
            row == grid.rows - 1 and height % grid.cell == 0,
            column == grid.columns - 1 and width % grid.cell == 0,
        )

    def coded(self, image: np.ndarray) -> Coded:
        """One point a block, with its numbers as weights of words of its own."""
        image = check_image(image)
        height, width = image.shape[:2]
        if (height, width) != self.size:
            image = opencv().resize(image, self.size[::-1], interpolation=opencv().INTER_AREA)
        inside = BlockBorders()  # the border of the image is that of the window
        blocks = [
            self.blocks(image, grid.cell, [inside])[inside].reshape(-1, self.block_words)
            for grid in self.block_grids
        ]
        centres = [self.centres(grid) for grid in self.block_grids]
        x, y = (np.concatenate(own) for own in zip(*centres, strict=True))
        x, y = (
            np.clip((own + 0.5) * (now / side) - 0.5, 0, now - 1).astype(np.float32)
            for own, now, side in ((x, width, self.size[1]), (y, height, self.size[0]))
        )
        weights = np.concatenate(blocks)
        return Coded(x, y, np.arange(weights.size).reshape(weights.shape), weights)

    def blocks(
        self, image: np.ndarray, cell: int, borders: Iterable[BlockBorders]
    ) -> dict[BlockBorders, np.ndarray]:
        """(rows, columns, block_words) float32 of all blocks of an image, for windows that end at these of their sides.

        At the border of a window, gradients across it are 0, as they are at that of an image.
        """
        rows, columns = (side // cell for side in image.shape[:2])
        borders = list(borders)
        used = _BORDERS if any(map(any, borders)) else _BORDERS[:1]
        cells = np.zeros((rows, columns, len(used), self.orientations), np.float32)

        def count(part: slice) -> None:
            _loops.hog_cells(image, cell, part.start, used, cells[part])

        _threads.over_rows(rows, columns * cell**2 * 16, count)
        return {own: self._normalised(cells, cell, own) for own in borders}

    def _normalised(self, cells: np.ndarray, cell: int, borders: BlockBorders) -> np.ndarray:
        """The blocks of cells (rows, columns, borders, orientations), and what each lacks of 1."""
        n = self.orientations
        out = np.empty((cells.shape[0] - 1, cells.shape[1] - 1, self.block_words), np.float32)
        corners = product(
            ((slice(None, -1), 1 * borders.top), (slice(1, None), 2 * borders.bottom)),
            ((slice(None, -1), 1 * borders.left), (slice(1, None), 2 * borders.right)),
        )
        for k, ((rows, row_border), (columns, column_border)) in enumerate(corners):
            out[:, :, k * n : (k + 1) * n] = cells[rows, columns, 3 * row_border + column_border]
        out[:, :, -1] = 4 * cell**2 * self.contrast
        out /= out.sum(axis=2, keepdims=True)
        return out
