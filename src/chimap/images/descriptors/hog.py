"""Histograms of oriented gradients in blocks of cells, as points of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np

from chimap._validation import check_positive
from chimap.data.io.files import needed
from chimap.images.descriptors.base import LocalDescriptor, Points, check_border, check_image, joined


@dataclass(frozen=True)
class HOG(LocalDescriptor):
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
        """Return the centres of the blocks.

        Parameters
        ----------
        shape : tuple of int
            Shape of the image; its first two entries are the height and the width in pixels.

        Returns
        -------
        list of (ndarray of shape (columns,), ndarray of shape (rows,))
            x and y in pixels, float32, for each scale.
        """
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
        )  # fmt: skip
        inside = slice(self.border, self.border + y.size), slice(self.border, self.border + x.size)
        vectors = blocks[inside].reshape(y.size * x.size, -1).astype(np.float32)
        return Points(np.tile(x, y.size), np.repeat(y, x.size), vectors)
