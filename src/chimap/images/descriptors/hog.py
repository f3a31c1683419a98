"""Histograms of oriented gradients in blocks of cells: points of a grid, or all blocks of a window side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import lcm
from typing import NamedTuple

import numpy as np

from chimap import _loops, _threads
from chimap._errors import InputError
from chimap._validation import check_positive
from chimap.images.descriptors.base import (
    Coded,
    CodedDescriptor,
    LocalDescriptor,
    OnGrids,
    Points,
    check_border,
    check_image,
    joined,
    opencv,
)
from chimap.readers.io.files import needed


@dataclass(frozen=True)
class HOG(OnGrids, LocalDescriptor):
    """Histograms of unsigned gradients in blocks of 2 x 2 cells, one point per block, by scikit-image.

    A block is divided by its Euclidean norm, clipped at 0.2, and divided by its norm again. Each pixel contributes the
    gradient of its strongest colour channel.

    Parameters
    ----------
    cells : tuple of int, default=(6, 8, 12)
        Side of a cell in pixels, one entry per scale.
    orientations : int, default=9
        Number of bins of the half turn.
    border : int, default=0
        Number of cells at each side of an image that are in no block. The outermost pixels lack a neighbour for their
        gradients, so with ``border=1`` a window has the same points whether it is cut out or not.

    References
    ----------
    Dalal and Triggs, Histograms of oriented gradients for human detection, 2005.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, size=(48, 64, 3), dtype=np.uint8)
    >>> HOG(cells=(8,)).points(image).vectors.shape
    (35, 36)
    """

    cells: tuple[int, ...] = (6, 8, 12)
    orientations: int = 9
    border: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(self.cells))
        for cell in self.cells:
            check_positive(cell, "each of cells", integer=True)
        check_positive(self.orientations, "orientations", integer=True)
        check_border(self.border, "cells")

    @property
    def step(self) -> int:
        """Step between windows, in pixels, at which they share cells: the least common multiple of the cells."""
        return lcm(*self.cells)

    @property
    def steps(self) -> tuple[int, ...]:
        """Distance between neighbouring points of each scale, in pixels: the side of a cell."""
        return self.cells

    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the centres of the blocks."""
        return [(self._middles(shape[1], cell), self._middles(shape[0], cell)) for cell in self.cells]

    def _middles(self, length: int, cell: int) -> np.ndarray:
        blocks = np.arange(1 + self.border, length // cell - self.border, dtype=np.float32)
        return cell * blocks - np.float32(0.5)

    def points(self, image: np.ndarray) -> Points:
        """Return one point per block, scale by scale, row by row."""
        image = check_image(image)
        scales = zip(self.cells, self.grids(image.shape), strict=True)
        parts = [self._scale(image, cell, x, y) for cell, (x, y) in scales if x.size and y.size]
        return joined(parts, 4 * self.orientations)

    def _scale(self, image: np.ndarray, cell: int, x: np.ndarray, y: np.ndarray) -> Points:
        feature = needed("skimage.feature", "HOG and LBP", "vision")
        blocks = feature.hog(
            image, self.orientations, (cell, cell), (2, 2), block_norm="L2-Hys", feature_vector=False, channel_axis=2
        )
        inside = slice(self.border, self.border + y.size), slice(self.border, self.border + x.size)
        vectors = blocks[inside].reshape(y.size * x.size, -1).astype(np.float32)
        return Points(np.tile(x, y.size), np.repeat(y, x.size), vectors)


# Which row and which column of a cell lie at the border of the window: 0 none, 1 the first, 2 the last.
BORDERS_OF_CELLS = np.array(list(product(range(3), repeat=2)))


class BlockBorders(NamedTuple):
    """Whether each side of a block lies at the border of its window."""

    top: bool = False
    left: bool = False
    bottom: bool = False
    right: bool = False


class BlockGrid(NamedTuple):
    """Blocks of a window for one size of cells.

    cell: side of a cell in pixels. rows, columns: number of rows and columns of blocks. first: number of the first
    block.
    """

    cell: int
    rows: int
    columns: int
    first: int


@dataclass(frozen=True)
class HOGBlocks(CodedDescriptor):
    """Blocks of 2 x 2 cells of oriented gradients, each with its own words; an image is one window.

    A gradient counts by its length for the two nearest orientations of the half turn, in the cell that holds its pixel.
    Each pixel counts the longest gradient of its colours. The 4 * orientations numbers of a block are divided by their
    sum plus 4 cell^2 contrast (a mean gradient of ``contrast`` over the pixels of the block); the remainder to 1 is one
    more word, which stands for flat blocks. So every block sums to 1, and the pyramid, ``grids=((1, 1),)``, divides all
    by the number of blocks.

    Parameters
    ----------
    size : tuple of int, default=(128, 64)
        (height, width) of the window in pixels; other images are scaled to it.
    cells : tuple of int, default=(8,)
        Side of a cell in pixels, one entry per scale.
    orientations : int, default=9
        Number of bins of the half turn.
    contrast : float, default=1.0
        Mean gradient that is added, in levels of 0 to 255.

    References
    ----------
    Dalal and Triggs, Histograms of oriented gradients for human detection, 2005 (their L1 blocks; with the kernel
    "hellinger" their L1-sqrt), without the Gaussian in a block.

    Examples
    --------
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
            raise InputError(f"size must be (height, width); got {self.size!r}.")
        check_positive(self.orientations, "orientations", integer=True)
        check_positive(self.contrast, "contrast")
        for cell in self.cells:
            check_positive(cell, "each of cells", integer=True)
            if not 2 <= cell <= min(self.size) // 2:
                raise InputError(
                    f"each of cells must be from 2 to {min(self.size) // 2}, half of the shorter side of "
                    f"size={self.size}; got {cell}."
                )

    @property
    def step(self) -> int:
        """Step between windows, in pixels, at which they share cells: the least common multiple of the cells."""
        return lcm(*self.cells)

    @property
    def n_words(self) -> int:
        """Number of words of all blocks."""
        return self.block_words * sum(grid.rows * grid.columns for grid in self.block_grids)

    @property
    def block_words(self) -> int:
        """Number of words of a block."""
        return 4 * self.orientations + 1

    @property
    def block_grids(self) -> list[BlockGrid]:
        """The blocks for each size of cells; they are numbered grid by grid, row by row."""
        grids, first = [], 0
        for cell in self.cells:
            rows, columns = (side // cell - 1 for side in self.size)
            grids.append(BlockGrid(cell, rows, columns, first))
            first += rows * columns
        return grids

    def centres(self, grid: BlockGrid) -> tuple[np.ndarray, np.ndarray]:
        """Return the centres of the blocks of a grid.

        Parameters
        ----------
        grid : BlockGrid
            One of ``block_grids``.

        Returns
        -------
        x, y : ndarray of shape (blocks,), float32
            Centres in pixels of the window.
        """
        x, y = (grid.cell * np.arange(1, n + 1, dtype=np.float32) - 0.5 for n in (grid.columns, grid.rows))
        return np.tile(x, y.size), np.repeat(y, x.size)

    def borders(self, grid: BlockGrid, row: int, column: int) -> BlockBorders:
        """Return which sides of a block lie at the border of the window.

        At the bottom and the right no side does if the window has pixels beyond the last cell.

        Parameters
        ----------
        grid : BlockGrid
            One of ``block_grids``.
        row, column : int
            Place of the block in the grid.

        Returns
        -------
        BlockBorders
            The sides.
        """
        height, width = self.size
        return BlockBorders(
            row == 0,
            column == 0,
            row == grid.rows - 1 and height % grid.cell == 0,
            column == grid.columns - 1 and width % grid.cell == 0,
        )

    def coded(self, image: np.ndarray) -> Coded:
        """Return one point per block, with the numbers of the block as weights of its own words."""
        image = check_image(image)
        height, width = image.shape[:2]
        if (height, width) != self.size:
            image = opencv().resize(image, self.size[::-1], interpolation=opencv().INTER_AREA)
        inside = BlockBorders()  # gradients across the border of the image are 0 anyway
        blocks = [
            self.blocks(self.cells_within(image, grid.cell, [inside]), grid.cell, inside).reshape(-1, self.block_words)
            for grid in self.block_grids
        ]
        centres = [self.centres(grid) for grid in self.block_grids]
        x, y = (np.concatenate(places) for places in zip(*centres, strict=True))
        x, y = (
            np.clip((places + 0.5) * (length / side) - 0.5, 0, length - 1).astype(np.float32)
            for places, length, side in ((x, width, self.size[1]), (y, height, self.size[0]))
        )
        weights = np.concatenate(blocks)
        return Coded(x, y, np.arange(weights.size).reshape(weights.shape), weights)

    def cells_within(self, image: np.ndarray, cell: int, borders: Iterable[BlockBorders]) -> np.ndarray:
        """Return the orientations in the cells of an image, for windows that end at the given sides of their blocks.

        Gradients across the border of a window are 0, as they are at the border of an image.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image.
        cell : int
            Side of a cell in pixels.
        borders : iterable of BlockBorders
            Combinations of sides that lie at the border of a window.

        Returns
        -------
        ndarray of shape (rows, columns, versions, orientations), float32
            The cells. Each has one version, or nine if a side lies at the border of a window.
        """
        rows, columns = (side // cell for side in image.shape[:2])
        used = BORDERS_OF_CELLS if any(map(any, borders)) else BORDERS_OF_CELLS[:1]
        orientation = _orientation(self.orientations)
        cells = np.zeros((rows, columns, len(used), self.orientations), np.float32)

        def count(part: slice) -> None:
            _loops.hog_cells(image, cell, part.start, orientation, used, cells[part])

        _threads.over_rows(rows, columns * cell**2 * 16, count)
        return cells

    def blocks(self, cells: np.ndarray, cell: int, borders: BlockBorders) -> np.ndarray:
        """Return the blocks of neighbouring cells, for windows that end at the given sides of the blocks.

        Parameters
        ----------
        cells : ndarray of shape (rows, columns, versions, orientations), float32
            From ``cells_within``.
        cell : int
            Side of a cell in pixels.
        borders : BlockBorders
            Sides that lie at the border of a window.

        Returns
        -------
        ndarray of shape (rows - 1, columns - 1, block_words), float32
            The blocks. Each sums to 1; its last word is the remainder.
        """
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


@lru_cache
def _orientation(n: int) -> np.ndarray:
    """Return the place among n orientations of half a turn of each difference in y and x, (511, 511) float32.

    Calling arctan2 for every pixel takes half as long again.
    """
    differences = np.arange(-255.0, 256.0)
    angle = np.arctan2(differences[:, None], differences) % np.pi
    return (angle * (n / np.pi)).astype(np.float32)
