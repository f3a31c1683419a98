"""Descriptors of single pixels, which are words already: colours, local binary patterns, orientations of edges."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._validation import check_choice, check_positive
from chimap.images.descriptors.base import (
    Coded,
    CodedDescriptor,
    OnGrids,
    OnPixels,
    check_border,
    check_image,
    opencv,
    pixel_centres,
    pixel_grid,
)
from chimap.readers.io.files import needed

SPACES = ("rgb", "hsv", "lab")


@dataclass(frozen=True)
class ColourHistogram(OnGrids, CodedDescriptor):
    """Colour histogram: each pixel counts for the box of the colour space that holds its colour.

    Parameters
    ----------
    space : str, default="hsv"
        "rgb", "hsv" or "lab".
    bins : tuple of int, default=(16, 4, 4)
        Number of equal parts of each of the three axes of the space.

    References
    ----------
    Swain and Ballard, Color indexing, 1991.

    Examples
    --------
    >>> image = np.zeros((2, 2, 3), np.uint8)
    >>> image[0, 0] = 255, 0, 0
    >>> ColourHistogram("rgb", (2, 2, 2)).coded(image).words.ravel()
    array([4, 0, 0, 0])
    """

    step: ClassVar[int] = 1
    steps: ClassVar[tuple[int, ...]] = (1,)
    space: str = "hsv"
    bins: tuple[int, int, int] = (16, 4, 4)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", tuple(self.bins))
        check_choice(self.space, "space", SPACES)
        for bins in self.bins:
            check_positive(bins, "each of bins", integer=True)
        if len(self.bins) != 3 or max(self.bins) > 256:
            raise InputError(f"bins must be three numbers of at most 256; got {self.bins!r}.")

    @property
    def n_words(self) -> int:
        """Number of boxes."""
        return prod(self.bins)

    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the positions of all pixels, which are the points."""
        return [pixel_grid(shape)]

    def coded(self, image: np.ndarray) -> Coded:
        """Return all pixels of an image and their boxes."""
        image = check_image(image)
        if self.space != "rgb":
            cv2 = opencv()
            # FULL spreads hues over 0 to 255; plain HSV ends at 180
            to = cv2.COLOR_RGB2HSV_FULL if self.space == "hsv" else cv2.COLOR_RGB2LAB
            image = cv2.cvtColor(image, to)
        boxes = (image.reshape(-1, 3).astype(np.int64) * self.bins) >> 8
        words = (boxes[:, 0] * self.bins[1] + boxes[:, 1]) * self.bins[2] + boxes[:, 2]
        x, y = pixel_centres(image.shape)
        return Coded(x, y, words[:, None])


@dataclass(frozen=True)
class LBP(OnGrids, CodedDescriptor):
    """Local binary patterns, by scikit-image: which neighbours on a circle are brighter than the pixel.

    Each uniform pattern is a word, and all others share one word. A pattern is uniform if it changes at most twice
    around the circle: 58 patterns of 8 neighbours.

    Parameters
    ----------
    radii : tuple of int, default=(1, 2)
        Radius of the circle in pixels, one entry per scale; each scale has its own words.
    neighbours : int, default=8
        Number of neighbours on each circle.

    References
    ----------
    Ojala, Pietikainen and Maenpaa, Multiresolution gray-scale and rotation invariant texture classification with local
    binary patterns, 2002.

    Examples
    --------
    >>> LBP().coded(np.zeros((2, 3, 3), np.uint8)).words.shape, LBP().n_words
    ((12, 1), 118)
    """

    step: ClassVar[int] = 1
    radii: tuple[int, ...] = (1, 2)
    neighbours: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "radii", tuple(self.radii))
        for radius in self.radii:
            check_positive(radius, "each of radii", integer=True)
        check_positive(self.neighbours, "neighbours", integer=True)

    @property
    def n_words(self) -> int:
        """Number of patterns of all radii."""
        return self._patterns * len(self.radii)

    @property
    def _patterns(self) -> int:
        return self.neighbours * (self.neighbours - 1) + 3

    @property
    def steps(self) -> tuple[int, ...]:
        """Distance between neighbouring points of each radius: one pixel."""
        return (1,) * len(self.radii)

    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the positions of all pixels, once for each radius."""
        return [pixel_grid(shape)] * len(self.radii)

    def coded(self, image: np.ndarray) -> Coded:
        """Return all pixels of an image, once for each radius, and their patterns."""
        cv2 = opencv()
        feature = needed("skimage.feature", "HOG and LBP", "vision")
        gray = cv2.cvtColor(check_image(image), cv2.COLOR_RGB2GRAY)
        words = [
            feature.local_binary_pattern(gray, self.neighbours, radius, method="nri_uniform").ravel()
            + scale * self._patterns
            for scale, radius in enumerate(self.radii)
        ]
        x, y = pixel_centres(gray.shape)
        return Coded(np.tile(x, len(words)), np.tile(y, len(words)), np.concatenate(words).astype(np.int64)[:, None])


@dataclass(frozen=True)
class PHOG(OnPixels):
    """Histogram of the orientations of edges; pooled in cells of 1x1, 2x2, 4x4 and 8x8 it is the PHOG of the source.

    Each edge pixel counts, by the length of its gradient, for the two nearest orientations.

    Parameters
    ----------
    bins : int, default=20
        Number of orientations.
    degrees : int, default=360
        180 if a gradient and its opposite are the same, else 360.
    low : float, default=100.0
        Lower threshold of Canny's edges, on gradients of intensities from 0 to 255.
    high : float, default=200.0
        Upper threshold of Canny's edges; 0 takes every pixel.
    border : int, default=0
        Number of pixels at each side that do not count. A gradient depends on 3 x 3 pixels, an edge on 5 x 5: with
        ``border=1`` and ``high=0``, or ``border=2`` and ``low=high``, a window has the same points whether it is cut
        out or not. With ``low < high``, weak edges count if they continue a strong edge, however far away it is.

    References
    ----------
    Bosch, Zisserman and Munoz, Representing shape with a spatial pyramid kernel, 2007.

    Examples
    --------
    >>> image = np.zeros((20, 20, 3), np.uint8)
    >>> image[:, 10:] = 255
    >>> coded = PHOG(bins=4).coded(image)
    >>> np.bincount(coded.words.ravel(), coded.weights.ravel(), minlength=4).round()
    array([20400.,     0.,     0.,     0.])
    """

    step: ClassVar[int] = 1
    bins: int = 20
    degrees: int = 360
    low: float = 100.0
    high: float = 200.0
    border: int = 0

    def __post_init__(self) -> None:
        check_positive(self.bins, "bins", integer=True)
        if self.degrees not in (180, 360):
            raise InputError(f"degrees must be 180 or 360; got {self.degrees!r}.")
        check_border(self.border, "pixels")

    @property
    def n_words(self) -> int:
        """Number of orientations."""
        return self.bins

    def coded(self, image: np.ndarray) -> Coded:
        """Return the edge pixels of an image, their two nearest orientations, and the weight of each."""
        cv2 = opencv()
        gray = cv2.cvtColor(check_image(image), cv2.COLOR_RGB2GRAY)
        dx, dy = (cv2.Sobel(gray, cv2.CV_32F, *axes, ksize=3) for axes in ((1, 0), (0, 1)))
        edges = cv2.Canny(gray, self.low, self.high) > 0 if self.high > 0 else np.ones(gray.shape, bool)
        inside = np.zeros(gray.shape, bool)
        inside[self.border : gray.shape[0] - self.border, self.border : gray.shape[1] - self.border] = True
        edges &= inside
        y, x = np.nonzero(edges)
        length, angle = cv2.cartToPolar(dx, dy, angleInDegrees=True)
        place = (angle[edges] % self.degrees) * (self.bins / self.degrees)
        low = place.astype(np.int64)
        share = place - low
        words = np.stack([low % self.bins, (low + 1) % self.bins], axis=1)
        weights = np.stack([1 - share, share], axis=1) * length[edges][:, None]
        return Coded(x.astype(np.float32), y.astype(np.float32), words, weights.astype(np.float32))
