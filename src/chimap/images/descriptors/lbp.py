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
    """Which of the neighbours on a circle are brighter than the pixel: a word each uniform pattern, one for the others.

    Uniform are patterns with at most two changes around the circle: 58 of 8 neighbours. By scikit-image.
    radii: of the circles, in pixels, a scale each with words of its own. neighbours: on each circle.

    Source: Ojala, Pietikainen and Maenpaa, Multiresolution gray-scale and rotation invariant texture classification
    with local binary patterns, 2002.

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
        """Patterns of all radii."""
        return self._patterns * len(self.radii)

    @property
    def _patterns(self) -> int:
        return self.neighbours * (self.neighbours - 1) + 3

    @property
    def steps(self) -> tuple[int, ...]:
        """Of each radius a pixel."""
        return (1,) * len(self.radii)

    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """All pixels, once a radius."""
        return [pixel_grid(shape)] * len(self.radii)

    def coded(self, image: np.ndarray) -> Coded:
        """All pixels, once a radius, and their patterns."""
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
