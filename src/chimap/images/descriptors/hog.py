"""Histograms of oriented gradients in blocks of cells, as points of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np

from chimap._validation import check_positive
from chimap.data.io.files import needed
from chimap.images.descriptors.base import LocalDescriptor, Points, check_image, joined


@dataclass(frozen=True)
class HOG(LocalDescriptor):
    """Blocks of 2 x 2 cells with unsigned gradient histograms, one point a block, by scikit-image.

    cells: pixels a cell side, a scale each. orientations: bins of half a turn. border: cells at each side of an image
    that are in no block: the gradients of its outermost pixels lack a neighbour, so that with border=1 the points of a
    window are the same whether it is cut out or not. Blocks are normalised by their length,
    cut at 0.2 and normalised again; of the colours of a pixel the one with the strongest gradient counts.

    Source: Dalal and Triggs, Histograms of oriented gradients for human detection, 2005.

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
        if not isinstance(self.border, int) or self.border < 0:
            raise ValueError(f"border must be a whole number of cells, 0 or more; got {self.border!r}.")

    @property
    def step(self) -> int:
        """Pixels between windows whose cells are those of the image: the least common multiple of the cells."""
        return lcm(*self.cells)

    @property
    def steps(self) -> tuple[int, ...]:
        """Of each scale a cell."""
        return self.cells

    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """x (columns,) and y (rows,) float32 of the middles of the blocks of each scale."""
        return [(self._middles(shape[1], cell), self._middles(shape[0], cell)) for cell in self.cells]

    def _middles(self, length: int, cell: int) -> np.ndarray:
        blocks = np.arange(1 + self.border, length // cell - self.border, dtype=np.float32)
        return cell * blocks - np.float32(0.5)

    def points(self, image: np.ndarray) -> Points:
        """One point a block, scale by scale, row by row."""
        image = check_image(image)
        scales = zip(self.cells, self.grids(image.shape), strict=True)
        parts = [self._scale(image, cell, x, y) for cell, (x, y) in scales if x.size and y.size]
        return joined(parts, 4 * self.orientations)

    def _scale(self, image: np.ndarray, cell: int, x: np.ndarray, y: np.ndarray) -> Points:
        feature = needed("skimage.feature", "HOG and LBP", "vision")
        blocks = feature.hog(
            image, self.orientations, (cell, cell), (2, 2), block_norm="L2-Hys", feature_vector=False, channel_axis=2
        )  # fmt: skip
        inside = slice(self.border, self.border + y.size), slice(self.border, self.border + x.size)
        vectors = blocks[inside].reshape(y.size * x.size, -1).astype(np.float32)
        return Points(np.tile(x, y.size), np.repeat(y, x.size), vectors)
