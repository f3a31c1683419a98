"""Scans: what a descriptor contributes to the scores of all windows of an image, one class per kind of descriptor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from chimap.images.histograms import ImageHistograms
from chimap.images.pyramid import cells_of
from chimap.tables import BinFunctions


class Layout(NamedTuple):
    """The windows of a scan, and the columns of a descriptor in their rows.

    number: index of the descriptor. window: (height, width) in pixels. step: distance between neighbouring windows in
    pixels. levels: (grid, columns) of each level.
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
    """Sum over the columns of a descriptor of g_i(x_i), for the histogram x of each window of an image.

    layout: windows and columns. functions: the functions g, with one output.
    """

    def __init__(self, layout: Layout, functions: BinFunctions) -> None:
        self._layout = layout

    @staticmethod
    @abstractmethod
    def takes(descriptor: object) -> bool:
        """Return whether this class scans histograms of the descriptor."""

    @abstractmethod
    def add(self, image: np.ndarray, scores: np.ndarray) -> None:
        """Add to the scores (rows, columns) float64 of the windows whose corners are ``step`` pixels apart."""


def extents(places: np.ndarray, length: int, n: int) -> list[tuple[int, int]]:
    """Return (first, last + 1) of the places in each of n equal parts of a window.

    Places are in pixels of the window and increase.
    """
    part = cells_of(places, 0, length, n)
    edges = np.searchsorted(part, np.arange(n + 1))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def cells(
    grid: tuple[int, int], x: np.ndarray, y: np.ndarray, window: tuple[int, int]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return ((top, bottom), (left, right)) of the points in each cell of a grid, row by row.

    The numbers are indices into y and x.
    """
    return list(product(extents(y, window[0], grid[0]), extents(x, window[1], grid[1])))
