"""Histograms of oriented gradients in blocks of cells, as points of a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._validation import check_positive
from chimap.data.io.files import needed
from chimap.images.descriptors.base import LocalDescriptor, Points, check_image, joined


@dataclass(frozen=True)
class HOG(LocalDescriptor):
    """Blocks of 2 x 2 cells with unsigned gradient histograms, one point a block, by scikit-image.

    cells: pixels a cell side, a scale each. orientations: bins of half a turn. Blocks are normalised by their length,
    cut at 0.2 and normalised again; of the colours of a pixel the one with the strongest gradient counts.

    Source: Dalal and Triggs, Histograms of oriented gradients for human detection, 2005.

    >>> image = np.random.default_rng(0).integers(0, 256, size=(48, 64, 3), dtype=np.uint8)
    >>> HOG(cells=(8,)).points(image).vectors.shape
    (35, 36)
    """

    cells: tuple[int, ...] = (6, 8, 12)
    orientations: int = 9

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(self.cells))
        for cell in self.cells:
            check_positive(cell, "each of cells", integer=True)
        check_positive(self.orientations, "orientations", integer=True)

    def points(self, image: np.ndarray) -> Points:
        """One point a block, scale by scale, row by row."""
        image = check_image(image)
        fitting = [cell for cell in self.cells if min(image.shape[:2]) >= 2 * cell]
        return joined([self._scale(image, cell) for cell in fitting], 4 * self.orientations)

    def _scale(self, image: np.ndarray, cell: int) -> Points:
        feature = needed("skimage.feature", "HOG and LBP", "vision")
        blocks = feature.hog(
            image, self.orientations, (cell, cell), (2, 2), block_norm="L2-Hys", feature_vector=False, channel_axis=2
        )  # fmt: skip
        rows, columns = blocks.shape[:2]
        x, y = (cell * np.arange(1, n + 1, dtype=np.float32) - np.float32(0.5) for n in (columns, rows))
        vectors = blocks.reshape(rows * columns, -1).astype(np.float32)
        return Points(np.tile(x, rows), np.repeat(y, columns), vectors)
