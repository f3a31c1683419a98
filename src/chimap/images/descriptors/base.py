"""What descriptors return: points with vectors, which a vocabulary turns into words, or points with words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from chimap._errors import InputError
from chimap._types import ArrayLike
from chimap._validation import DataError
from chimap.readers.io.files import needed


def check_border(border: int, unit: str) -> None:
    """Raise ValueError unless the border is a whole number of these units, 0 or more."""
    if not isinstance(border, int) or border < 0:
        raise InputError(f"border must be a whole number of {unit}, 0 or more; got {border!r}.")


@dataclass(frozen=True)
class Points:
    """Points of an image with the vectors that describe them.

    Parameters
    ----------
    x, y : ndarray of shape (n,), float32
        Centres of the points in pixels; the centre of the first pixel is 0.
    vectors : ndarray of shape (n, dimensions), float32
        Descriptors of the points.
    """

    x: np.ndarray
    y: np.ndarray
    vectors: np.ndarray


@dataclass(frozen=True)
class Coded:
    """Points of an image with the words that they count for.

    Parameters
    ----------
    x, y : ndarray of shape (n,), float32
        Centres of the points in pixels; the centre of the first pixel is 0.
    words : ndarray of shape (n, k), integer
        Words of each point.
    weights : ndarray of shape (n, k), float32, or None, default=None
        How much each word counts; None counts each as 1.
    """

    x: np.ndarray
    y: np.ndarray
    words: np.ndarray
    weights: np.ndarray | None = None


class OnGrids(ABC):
    """Base class of descriptors whose points lie on grids, whatever is in the image, and count once each."""

    @property
    @abstractmethod
    def step(self) -> int:
        """Step between windows, in pixels, at which points of the image are points of the windows.

        It is a multiple of each of ``steps``.
        """

    @property
    @abstractmethod
    def steps(self) -> tuple[int, ...]:
        """Distance between neighbouring points of each layer, in pixels."""

    @abstractmethod
    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return where the points are, layer by layer; those of a layer are row by row.

        Parameters
        ----------
        shape : tuple of int
            Shape of the image; its first two entries are the height and the width in pixels.

        Returns
        -------
        list of (ndarray of shape (columns,), ndarray of shape (rows,))
            x and y in pixels, float32, for each layer.
        """


class Descriptor(ABC):
    """Base class of all descriptors: an image has points, each of which counts for one or several words."""

    @abstractmethod
    def n_words_of(self, n_learned: int) -> int:
        """Return the number of words.

        Parameters
        ----------
        n_learned : int
            Number of words that were learned; 0 if none are.
        """

    @abstractmethod
    def coded_by(self, code: Callable[[Points], Coded], image: np.ndarray) -> Coded:
        """Return the points of an image and their words.

        Parameters
        ----------
        code : callable
            Returns points with the words that were learned.
        image : ndarray of shape (H, W, 3), uint8
            The image; (H, W) is gray.
        """


class LocalDescriptor(Descriptor):
    """Base class of descriptors that return vectors at points and need a vocabulary."""

    @abstractmethod
    def points(self, image: np.ndarray) -> Points:
        """Return the points of an image.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image; (H, W) is gray.

        Returns
        -------
        Points
            The points; none if the image is too small for any.
        """

    def n_words_of(self, n_learned: int) -> int:
        """Return the number of words that were learned."""
        return n_learned

    def coded_by(self, code: Callable[[Points], Coded], image: np.ndarray) -> Coded:
        """Return the points of an image and the words that their vectors are near to."""
        return code(self.points(image))


class CodedDescriptor(Descriptor):
    """Base class of descriptors whose points are words already, such as quantised colours."""

    @property
    @abstractmethod
    def n_words(self) -> int:
        """Number of words."""

    @abstractmethod
    def coded(self, image: np.ndarray) -> Coded:
        """Return the points of an image and their words.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
            The image; (H, W) is gray.

        Returns
        -------
        Coded
            The points and their words.
        """

    def n_words_of(self, n_learned: int) -> int:
        return self.n_words

    def coded_by(self, code: Callable[[Points], Coded], image: np.ndarray) -> Coded:
        return self.coded(image)


class OnPixels(CodedDescriptor):
    """Base class of descriptors with words whose points are pixels chosen by what is in the image, with weights."""

    @property
    @abstractmethod
    def step(self) -> int:
        """Distance between neighbouring points, in pixels."""

    @property
    @abstractmethod
    def border(self) -> int:
        """Width of the margin of an image that holds no points, in pixels."""


def opencv() -> ModuleType:
    """Import OpenCV at its first use; raises ImportError that names the extra to install."""
    return needed("cv2", "Images", "vision")


def check_image(image: ArrayLike, name: str = "image") -> np.ndarray:
    """Return an image as contiguous (H, W, 3) uint8; gray images get three equal planes.

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
    """Return x (W,) and y (H,) float32 of the pixels."""
    return np.arange(shape[1], dtype=np.float32), np.arange(shape[0], dtype=np.float32)


def pixel_centres(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y (H * W,) float32 of all pixels, row by row."""
    x, y = pixel_grid(shape)
    return np.tile(x, y.size), np.repeat(y, x.size)


def joined(parts: list[Points], dimensions: int) -> Points:
    """Return the points of all parts in one ``Points``, part after part."""
    empty = np.zeros(0, np.float32)
    parts = parts or [Points(empty, empty, np.zeros((0, dimensions), np.float32))]
    return Points(*(np.concatenate(arrays) for arrays in zip(*((p.x, p.y, p.vectors) for p in parts), strict=True)))


def within(max_side: int, image: np.ndarray, mask: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the image scaled down to a longer side of at most ``max_side`` pixels, and its mask at the same size.

    Smaller images come back as they are. Raises DataError for a mask whose size differs from that of its image.
    """
    longest = max(image.shape[:2])
    if longest <= max_side:
        return image, mask
    cv2 = opencv()
    height, width = (max(1, round(side * max_side / longest)) for side in image.shape[:2])
    if mask is not None:
        if mask.shape != image.shape[:2]:
            raise DataError(
                f"the mask has shape {mask.shape}, its image {image.shape[:2]}: give a mask of the size of the image."
            )
        mask = cv2.resize(mask.astype(np.int32), (width, height), interpolation=cv2.INTER_NEAREST)
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), mask
