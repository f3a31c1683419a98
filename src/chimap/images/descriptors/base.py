"""What a descriptor gives: points with vectors that a vocabulary turns into words, or points with words at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, runtime_checkable

import numpy as np

from chimap._types import ArrayLike
from chimap._validation import DataError
from chimap.data.io.files import needed


@dataclass(frozen=True)
class Points:
    """Points of an image and what they look like.

    x, y: (n,) float32, their centres in pixels; the centre of the first pixel is 0.
    vectors: (n, dimensions) float32.
    """

    x: np.ndarray
    y: np.ndarray
    vectors: np.ndarray


@dataclass(frozen=True)
class Coded:
    """Points of an image and the words that they count for.

    x, y: (n,) float32, their centres in pixels.
    words: (n, k) whole numbers. weights: (n, k) float32, or None where each counts once.
    """

    x: np.ndarray
    y: np.ndarray
    words: np.ndarray
    weights: np.ndarray | None = None


@runtime_checkable
class OnGrids(Protocol):
    """A descriptor whose points lie on grids that do not depend on what is in the image, and count once each."""

    @property
    def step(self) -> int:
        """Pixels between windows whose points are those of the image: a multiple of each of ``steps``."""

    @property
    def steps(self) -> tuple[int, ...]:
        """Pixels from a point to the next, of each layer."""

    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """x (columns,) and y (rows,) of each layer of points, in their order: layer by layer, row by row."""


@runtime_checkable
class OnPixels(Protocol):
    """A descriptor of words whose points are pixels that the image chooses, with weights."""

    @property
    def step(self) -> int:
        """Pixels from a point to the next."""

    @property
    def border(self) -> int:
        """Pixels at each side of an image that are no points."""

    @property
    def n_words(self) -> int:
        """How many words there are."""

    def coded(self, image: np.ndarray) -> Coded:
        """The points of an image (H, W, 3) uint8 and their words."""


class LocalDescriptor(ABC):
    """Vectors at the points of a grid, which need a vocabulary."""

    @abstractmethod
    def points(self, image: np.ndarray) -> Points:
        """The points of an image (H, W, 3) uint8; none where it is too small for any."""


class CodedDescriptor(ABC):
    """Points that are words already, such as quantised colours."""

    @property
    @abstractmethod
    def n_words(self) -> int:
        """How many words there are."""

    @abstractmethod
    def coded(self, image: np.ndarray) -> Coded:
        """The points of an image (H, W, 3) uint8 and their words."""


def opencv() -> ModuleType:
    """OpenCV, at its first use. Raises ImportError that names the extra."""
    return needed("cv2", "Images", "vision")


def check_image(image: ArrayLike, name: str = "image") -> np.ndarray:
    """An image as (H, W, 3) uint8, contiguous; gray ones get three equal planes.

    Raises DataError for other types and shapes.
    """
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.size == 0:
        raise DataError(
            f"{name}: expected pixels from 0 to 255 (uint8), at least one; got {pixels.dtype} of shape {pixels.shape}."
        )
    if pixels.ndim == 2:
        pixels = np.stack([pixels] * 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] != 3:
        raise DataError(
            f"{name}: expected rows of RGB pixels, shape (height, width, 3), or gray ones, (height, width); got shape "
            f"{pixels.shape}."
        )
    return np.ascontiguousarray(pixels)


def pixel_grid(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """x (W,) and y (H,) float32 of the pixels."""
    return np.arange(shape[1], dtype=np.float32), np.arange(shape[0], dtype=np.float32)


def pixel_centres(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """x, y (H * W,) float32 of all pixels, row by row."""
    x, y = pixel_grid(shape)
    return np.tile(x, y.size), np.repeat(y, x.size)


def joined(parts: list[Points], dimensions: int) -> Points:
    """The points of all parts, one behind the other."""
    empty = Points(np.zeros(0, np.float32), np.zeros(0, np.float32), np.zeros((0, dimensions), np.float32))
    parts = parts or [empty]
    return Points(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.vectors for part in parts]),
    )
