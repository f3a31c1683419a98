"""Spatial pyramids: a histogram of words in each cell of several grids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import DataError, ParameterError, check_positive
from chimap.images.descriptors import Coded


@dataclass(frozen=True)
class Pyramid:
    """Histograms of words in the cells of several grids, each level divided by its sum.

    A level is one grid in one region. Columns are ordered by region, level, cell (row by row) and word.

    Parameters
    ----------
    grids : sequence of (rows, columns), default=((1, 1), (2, 2), (4, 4))
        The grids; (3, 1) is three horizontal bands.
    n_regions : int, default=1
        Number of regions that a mask distinguishes, numbered from 0, such as background and foreground. Each region has
        its own levels, whose grids divide the bounding box of the region. Points where the mask has another number do
        not count.

    References
    ----------
    Lazebnik, Schmid and Ponce, Beyond bags of features, 2006.

    Examples
    --------
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
                raise ParameterError(Message("each of {grids}"), grid, "(rows, columns)")
            for cells in grid:
                check_positive(cells, Message("rows and columns of {grids}"), integer=True)
        if not self.grids:
            raise InputError(Message("{grids} must hold at least one grid, such as (1, 1); got none."))
        check_positive(self.n_regions, "n_regions", integer=True)

    @property
    def n_cells(self) -> int:
        """Number of cells of all levels."""
        return self.n_regions * sum(rows * columns for rows, columns in self.grids)

    def levels(self, n_words: int) -> Iterator[tuple[str, slice]]:
        """Yield the name and the columns of each level.

        Parameters
        ----------
        n_words : int
            Number of words.

        Yields
        ------
        name : str
            "2x2", or "2x2 region 1" where there are several regions.
        columns : slice
            Columns of the level.
        """
        start = 0
        for region in range(self.n_regions):
            for rows, columns in self.grids:
                stop = start + rows * columns * n_words
                suffix = f" region {region}" if self.n_regions > 1 else ""
                yield f"{rows}x{columns}{suffix}", slice(start, stop)
                start = stop

    def pool(self, coded: Coded, n_words: int, shape: tuple[int, ...], mask: np.ndarray | None = None) -> np.ndarray:
        """Return the histograms of an image.

        Parameters
        ----------
        coded : Coded
            Points of the image and their words.
        n_words : int
            Number of words.
        shape : tuple of int
            Shape of the image; its first two entries are the height and the width in pixels.
        mask : ndarray of shape (H, W) or None, default=None
            Region of each pixel.

        Returns
        -------
        ndarray of shape (n_cells * n_words,), float32
            The histograms; a level without points is zero.

        Raises
        ------
        DataError
            If the mask is not of the size of the image.
        ValueError
            If there is a mask but only one region, or no mask but several regions.
        """
        out = np.zeros(self.n_cells * n_words, np.float32)
        for level in self._levels(coded, n_words, shape, mask):
            counts = level.counts(n_words)
            total = counts.sum()
            if total > 0:
                out[level.columns] = counts / total
        return out

    def painted(
        self, values: np.ndarray, coded: Coded, n_words: int, shape: tuple[int, ...], mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Spread the values of columns over the pixels of the image that they come from.

        The value of a word in a cell is shared by the pixels of the points that count for the word there, in proportion
        to their counts. The value of a word without a point in the cell is spread evenly over the cell.

        Parameters
        ----------
        values : ndarray of shape (n_cells * n_words,)
            A value for each column.
        coded : Coded
            Points of the image and their words.
        n_words : int
            Number of words.
        shape : tuple of int
            Shape of the image; its first two entries are the height and the width in pixels.
        mask : ndarray of shape (H, W) or None, default=None
            Region of each pixel.

        Returns
        -------
        ndarray of shape (H, W), float64
            A value for each pixel, with the same sum as ``values``.

        Raises
        ------
        DataError, ValueError
            As ``pool`` does.

        Examples
        --------
        >>> coded = Coded(np.array([0.0, 3.0]), np.array([0.0, 0.0]), np.array([[0], [1]]))
        >>> Pyramid(((1, 1),)).painted(np.array([5.0, -1.0]), coded, 2, (2, 4))
        array([[ 5.,  0.,  0., -1.],
               [ 0.,  0.,  0.,  0.]])
        """
        picture = np.zeros(shape[:2])
        for level in self._levels(coded, n_words, shape, mask):
            amounts, counts = values[level.columns], level.counts(n_words)
            rates = np.divide(amounts, counts, out=np.zeros(amounts.size), where=counts > 0)[level.bins]
            at_points = (rates if level.inside.weights is None else rates * level.inside.weights).sum(axis=1)
            y, x = (np.rint(places).astype(np.int64) for places in (level.inside.y, level.inside.x))
            np.add.at(picture, (np.clip(y, 0, shape[0] - 1), np.clip(x, 0, shape[1] - 1)), at_points)
            absent = np.where(counts > 0, 0, amounts).reshape(-1, n_words).sum(axis=1)
            for cell, pixels in enumerate(level.pixels()):
                picture[pixels] += absent[cell] / picture[pixels].size
        return picture

    def _levels(self, coded: Coded, n_words: int, shape: tuple[int, ...], mask: np.ndarray | None) -> Iterator[_Level]:
        """Yield the points of each level and their columns in it; raises as ``pool`` does."""
        if (mask is not None) != (self.n_regions > 1):
            raise InputError(
                f"n_regions={self.n_regions}, so a mask is {'needed' if mask is None else 'not taken'}: "
                "set n_regions to the number of regions that the masks tell apart."
            )
        levels = self.levels(n_words)
        for region in range(self.n_regions):
            inside, box = _region(coded, shape, mask, region)
            top, left, bottom, right = box
            for rows, columns in self.grids:
                row = cells_of(inside.y, top, bottom, rows)
                cell = row * columns + cells_of(inside.x, left, right, columns)
                bins = inside.words + n_words * cell[:, None]
                yield _Level(next(levels)[1], inside, bins, (rows, columns), box)


@dataclass(frozen=True, eq=False)
class _Level:
    """A grid in a region."""

    columns: slice  # of the level, in a row
    inside: Coded  # the points in the region
    bins: np.ndarray  # their columns within the level, (n, k)
    grid: tuple[int, int]
    box: tuple[int, int, int, int]  # around the region: top, left, bottom, right

    def counts(self, n_words: int) -> np.ndarray:
        """Return the sum of the weights of the points in each column of the level."""
        weights = None if self.inside.weights is None else self.inside.weights.ravel()
        return np.bincount(self.bins.ravel(), weights, minlength=self.grid[0] * self.grid[1] * n_words)

    def pixels(self) -> Iterator[tuple[slice, slice]]:
        """Return the pixels of each cell, row by row; a cell smaller than a pixel gets one pixel."""
        top, left, bottom, right = self.box
        return product(_edges(top, bottom, self.grid[0]), _edges(left, right, self.grid[1]))


def _region(
    coded: Coded, shape: tuple[int, ...], mask: np.ndarray | None, region: int
) -> tuple[Coded, tuple[int, int, int, int]]:
    """Return the points in a region and its bounding box (top, left, bottom, right)."""
    if mask is None:
        return coded, (0, 0, shape[0], shape[1])
    if mask.shape != tuple(shape[:2]):
        raise DataError(
            f"the mask has shape {mask.shape}, its image {tuple(shape[:2])}: a mask must hold the region of each pixel."
        )
    inside = mask[coded.y.astype(np.int64), coded.x.astype(np.int64)] == region
    weights = None if coded.weights is None else coded.weights[inside]
    rows, columns = (np.flatnonzero((mask == region).any(axis=axis)) for axis in (1, 0))
    box = (rows[0], columns[0], rows[-1] + 1, columns[-1] + 1) if rows.size else (0, 0, *mask.shape)
    return Coded(coded.x[inside], coded.y[inside], coded.words[inside], weights), box


def _edges(first: int, stop: int, n: int) -> list[slice]:
    """Return the pixels of each of n equal parts: those whose centres ``cells_of`` assigns to the part."""
    cell = cells_of(np.arange(first, stop), first, stop, n)
    starts = np.searchsorted(cell, np.arange(n + 1)) + first
    last = stop - 1
    return [slice(min(a, last), max(b, min(a, last) + 1)) for a, b in pairwise(starts.tolist())]


def cells_of(places: np.ndarray, first: int, stop: int, n: int) -> np.ndarray:
    """Return the index of the part that holds each place, for n equal parts of the pixels first to stop - 1.

    A pixel extends by a half to each side of its centre.
    """
    parts = ((places - first + 0.5) * (n / (stop - first))).astype(np.int64)
    return np.clip(parts, 0, n - 1)
