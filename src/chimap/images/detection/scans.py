"""What a descriptor adds to the scores of all windows of an image, a class a kind of descriptor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from chimap.images.histograms import ImageHistograms
from chimap.images.pyramid import cells_of
from chimap.tables import BinFunctions


class Layout(NamedTuple):
    """Windows and the columns of a descriptor in their rows.

    window: (height, width) in pixels. step: pixels from a window to the next. levels: (grid, columns) of each.
    """

    histograms: ImageHistograms
    number: int
    window: tuple[int, int]
    step: int
    levels: list[tuple[tuple[int, int], slice]]

    @property
    def descriptor(self) -> Any:
        """The descriptor, of the kind that the scan takes."""
        return self.histograms.descriptors_[self.number]


class Scan(ABC):
    """Sums over the columns of a descriptor: g_i of what each window of an image holds.

    layout : windows and columns. functions : g, of one output.
    """

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        self._layout = layout

    @staticmethod
    @abstractmethod
    def takes(descriptor: object) -> bool:
        """Whether it scans histograms of this descriptor."""

    @abstractmethod
    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Add to the scores (rows, columns) float64 of windows whose corners are ``step`` pixels apart."""


def extents(places: np.ndarray, length: int, n: int) -> list[tuple[int, int]]:
    """First and last + 1 of the places (increasing, in pixels of a window) that lie in each of n equal parts of it."""
    part = cells_of(places, 0, length, n)
    edges = np.searchsorted(part, np.arange(n + 1))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def cells(
    grid: tuple[int, int], x: np.ndarray, y: np.ndarray, window: tuple[int, int]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """((top, bottom), (left, right)) of the points in each cell of a grid, row by row: numbers of y and of x."""
    return list(product(extents(y, window[0], grid[0]), extents(x, window[1], grid[1])))
