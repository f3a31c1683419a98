"""Colour histograms."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

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
    """Each pixel counts for the box of the colour space that it lies in.

    space: "rgb", "hsv" or "lab". bins: equal parts of each of its three axes.

    Source: Swain and Ballard, Color indexing, 1991.

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
            raise ValueError(f"bins must be three numbers of at most 256; got {self.bins!r}.")

    @property
    def n_words(self) -> int:
        """The boxes."""
        return prod(self.bins)

    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """All pixels."""
        return [pixel_grid(shape)]

    def coded(self, image: np.ndarray) -> Coded:
        """All pixels and their boxes."""
        image = check_image(image)
        if self.space != "rgb":
            cv2 = opencv()
            # of hues, FULL has 256; those of plain HSV end at 180
            to = cv2.COLOR_RGB2HSV_FULL if self.space == "hsv" else cv2.COLOR_RGB2LAB
            image = cv2.cvtColor(image, to)
        boxes = (image.reshape(-1, 3).astype(np.int64) * self.bins) >> 8
        words = (boxes[:, 0] * self.bins[1] + boxes[:, 1]) * self.bins[2] + boxes[:, 2]
        x, y = pixel_centres(image.shape)
        return Coded(x, y, words[:, None])
