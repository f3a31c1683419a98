"""Local binary patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap._validation import check_positive
from chimap.data.io.files import needed
from chimap.images.descriptors.base import (
    Coded,
    CodedDescriptor,
    check_image,
    opencv,
    pixel_centres,
    pixel_grid,
)


@dataclass(frozen=True)
class LBP(CodedDescriptor):
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
        """Return the positions of all pixels, once for each radius.

        Parameters
        ----------
        shape : tuple of int
            Shape of the image; its first two entries are the height and the width in pixels.

        Returns
        -------
        list of (ndarray of shape (columns,), ndarray of shape (rows,))
            x and y in pixels, float32, for each radius.
        """
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
        return Coded(
            np.tile(x, len(words)), np.tile(y, len(words)), np.concatenate(words).astype(np.int64)[:, None]
        )
