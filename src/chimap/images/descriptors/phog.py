"""Orientations of edges: with a pyramid, PHOG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._validation import check_positive
from chimap.images.descriptors.base import Coded, CodedDescriptor, check_border, check_image, opencv


@dataclass(frozen=True)
class PHOG(CodedDescriptor):
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
