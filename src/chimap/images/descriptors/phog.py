"""Orientations of edges: with a pyramid, PHOG."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._validation import check_positive
from chimap.images.descriptors.base import Coded, CodedDescriptor, check_image, opencv


@dataclass(frozen=True)
class PHOG(CodedDescriptor):
    """Every edge pixel counts, by the length of its gradient, for the two orientations that are nearest to its own.

    bins: orientations. degrees: 180 where a gradient and its opposite are the same, else 360.
    low, high: thresholds of Canny's edges, on gradients of intensities from 0 to 255; high = 0 takes every pixel.
    Pooled in a pyramid of 1x1, 2x2, 4x4 and 8x8 cells it is the PHOG of the source.

    Source: Bosch, Zisserman and Munoz, Representing shape with a spatial pyramid kernel, 2007.

    >>> image = np.zeros((20, 20, 3), np.uint8)
    >>> image[:, 10:] = 255
    >>> coded = PHOG(bins=4).coded(image)
    >>> np.bincount(coded.words.ravel(), coded.weights.ravel(), minlength=4).round()
    array([20400.,     0.,     0.,     0.])
    """

    bins: int = 20
    degrees: int = 360
    low: float = 100.0
    high: float = 200.0

    def __post_init__(self) -> None:
        check_positive(self.bins, "bins", integer=True)
        if self.degrees not in (180, 360):
            raise ValueError(f"degrees must be 180 or 360; got {self.degrees!r}.")

    @property
    def n_words(self) -> int:
        """The orientations."""
        return self.bins

    def coded(self, image: np.ndarray) -> Coded:
        """The edge pixels, their two orientations, and the weight of each."""
        cv2 = opencv()
        gray = cv2.cvtColor(check_image(image), cv2.COLOR_RGB2GRAY)
        dx, dy = (cv2.Sobel(gray, cv2.CV_32F, *axes, ksize=3) for axes in ((1, 0), (0, 1)))
        edges = cv2.Canny(gray, self.low, self.high) > 0 if self.high > 0 else np.ones(gray.shape, bool)
        y, x = np.nonzero(edges)
        length, angle = cv2.cartToPolar(dx, dy, angleInDegrees=True)
        place = (angle[edges] % self.degrees) * (self.bins / self.degrees)
        low = place.astype(np.int64)
        share = place - low
        words = np.stack([low % self.bins, (low + 1) % self.bins], axis=1)
        weights = np.stack([1 - share, share], axis=1) * length[edges][:, None]
        return Coded(x.astype(np.float32), y.astype(np.float32), words, weights.astype(np.float32))
