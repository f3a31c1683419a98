"""Colour histograms."""

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
    check_image,
    opencv,
    pixel_centres,
    pixel_grid,
)

SPACES = ("rgb", "hsv", "lab")


@dataclass(frozen=True)
class ColourHistogram(CodedDescriptor):
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
        """Return the positions of all pixels, which are the points.

        Parameters
        ----------
        shape : tuple of int
            Shape of the image; its first two entries are the height and the width in pixels.

        Returns
        -------
        list of (ndarray of shape (columns,), ndarray of shape (rows,))
            x and y in pixels, float32, for each layer; there is one.
        """
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
