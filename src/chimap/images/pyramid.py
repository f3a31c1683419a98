"""Spatial pyramids: a histogram of words in each cell of several grids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chimap._validation import DataError, check_positive
from chimap.images.descriptors import Coded


@dataclass(frozen=True)
class Pyramid:
    """Histograms of words in the cells of grids, each level (a grid in a region) divided by its sum.

    grids: (rows, columns) of each, such as (1, 1), (2, 2), (4, 4), or (3, 1) for three bands.
    n_regions: parts that a mask tells apart, numbered from 0, such as background and foreground; each has its own
    levels, whose grids divide the box around the region. Points where the mask has another number do not count.
    Columns are ordered by region, level, cell (row by row) and word.

    Source: Lazebnik, Schmid and Ponce, Beyond bags of features, 2006.

    >>> coded = Coded(np.array([0.0, 3.0]), np.array([0.0, 0.0]), np.array([[0], [1]]))
    >>> Pyramid(((1, 1), (1, 2))).pool(coded, 2, (4, 4))
    array([0.5, 0.5, 0.5, 0. , 0. , 0.5], dtype=float32)
    """

    grids: tuple[tuple[int, int], ...] = ((1, 1), (2, 2), (4, 4))
    n_regions: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "grids", tuple(tuple(grid) for grid in self.grids))
        for grid in self.grids:
            if len(grid) != 2:
                raise ValueError(f"each of grids must be (rows, columns); got {grid!r}.")
            for cells in grid:
                check_positive(cells, "rows and columns of grids", integer=True)
        if not self.grids:
            raise ValueError("grids must hold at least one grid, such as (1, 1); got none.")
        check_positive(self.n_regions, "n_regions", integer=True)

    @property
    def n_cells(self) -> int:
        """Cells of all levels."""
        return self.n_regions * sum(rows * columns for rows, columns in self.grids)

    def levels(self, n_words: int) -> Iterator[tuple[str, slice]]:
        """(name, columns) of each level: "2x2", or "2x2 region 1" where there are several."""
        start = 0
        for region in range(self.n_regions):
            for rows, columns in self.grids:
                stop = start + rows * columns * n_words
                suffix = f" region {region}" if self.n_regions > 1 else ""
                yield f"{rows}x{columns}{suffix}", slice(start, stop)
                start = stop

    def pool(
        self, coded: Coded, n_words: int, shape: tuple[int, ...], mask: np.ndarray | None = None
    ) -> np.ndarray:
        """The histograms, (n_cells * n_words,) float32, of an image of this shape; mask (H, W): region of each pixel.

        A level without points is zeros. Raises DataError for a mask of another size, ValueError for a mask where there
        is one region or none where there are several.
        """
        if (mask is not None) != (self.n_regions > 1):
            raise ValueError(
                f"n_regions={self.n_regions}, so a mask is {'needed' if mask is None else 'not taken'}: "
                "set n_regions to the number of regions that the masks tell apart."
            )
        out = np.zeros(self.n_cells * n_words, np.float32)
        levels = self.levels(n_words)
        for region in range(self.n_regions):
            inside, (top, left, bottom, right) = _region(coded, shape, mask, region)
            for rows, columns in self.grids:
                _, place = next(levels)
                row = cells_of(inside.y, top, bottom, rows)
                cell = row * columns + cells_of(inside.x, left, right, columns)
                bins = inside.words + n_words * cell[:, None]
                weights = None if inside.weights is None else inside.weights.ravel()
                counts = np.bincount(bins.ravel(), weights, minlength=rows * columns * n_words)
                total = counts.sum()
                if total > 0:
                    out[place] = counts / total
        return out


def _region(
    coded: Coded, shape: tuple[int, ...], mask: np.ndarray | None, region: int
) -> tuple[Coded, tuple[int, int, int, int]]:
    """The points in a region, and the box around it: top, left, bottom, right."""
    if mask is None:
        return coded, (0, 0, shape[0], shape[1])
    if mask.shape != tuple(shape[:2]):
        raise DataError(
            f"the mask has shape {mask.shape}, its image {tuple(shape[:2])}: a mask says the region of each pixel."
        )
    inside = mask[coded.y.astype(np.int64), coded.x.astype(np.int64)] == region
    weights = None if coded.weights is None else coded.weights[inside]
    rows, columns = (np.flatnonzero((mask == region).any(axis=axis)) for axis in (1, 0))
    box = (rows[0], columns[0], rows[-1] + 1, columns[-1] + 1) if rows.size else (0, 0, 1, 1)
    return Coded(coded.x[inside], coded.y[inside], coded.words[inside], weights), box


def cells_of(places: np.ndarray, first: int, stop: int, n: int) -> np.ndarray:
    """Which of n equal parts of the pixels first to stop - 1 holds each place; a pixel reaches half of one each way."""
    parts = ((places - first + 0.5) * (n / (stop - first))).astype(np.int64)
    return np.clip(parts, 0, n - 1)
