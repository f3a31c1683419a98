"""A set of images: names, labels, and pixels that are decoded on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from chimap._validation import DataError
from chimap.images.reading.decoding import ImageError, decode_image, decode_mask, open_picture, picture_pixels
from chimap.images.reading.files import ImageFiles

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images with their names and labels.

    Nothing is decoded before it is read. Several threads may read at once.

    Parameters
    ----------
    files : ImageFiles
        The folder, archive or table that holds the files.
    names : list of str
        Path of each of the n images in ``files``.
    labels : ndarray of shape (n,) or None, default=None
        One label per image, text or numbers.
    splits : ndarray of shape (n,) or None, default=None
        Part of the data set that each image belongs to, such as "train".
    windows : ndarray of shape (n, 4) or None, default=None
        The part of the file that is the image: left, top, right and bottom in pixels. None is the whole file.
    masks : list of str or None, default=None
        Path of the mask of each image.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from chimap.images.reading import open_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         pathlib.Path(folder, name).mkdir()
    ...         _ = pathlib.Path(folder, name, "1.ppm").write_bytes(b"P6 1 1 255 " + bytes(3))
    ...     images = open_images(folder)
    ...     images.names, images.labels.tolist(), images.read(0).shape
    (['cat/1.ppm', 'dog/1.ppm'], ['cat', 'dog'], (1, 1, 3))
    """

    files: ImageFiles
    names: list[str]
    labels: np.ndarray | None = None
    splits: np.ndarray | None = None
    windows: np.ndarray | None = None
    masks: list[str] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def name(self) -> str:
        """Name of the folder or file, for messages and reports."""
        return self.files.name

    @property
    def classes(self) -> list[Any]:
        """All labels, sorted."""
        return [] if self.labels is None else np.unique(self.labels).tolist()

    def where(self, i: int) -> str:
        """Return the name of image i for messages.

        Parameters
        ----------
        i : int
            Index of the image.
        """
        return self.files.where(self.names[i])

    def read(self, i: int) -> np.ndarray:
        """Return the pixels of image i.

        Parameters
        ----------
        i : int
            Index of the image.

        Returns
        -------
        ndarray of shape (height, width, 3), uint8
            Red, green and blue of each pixel.

        Raises
        ------
        ImageError
            If the file is broken; the message names it.
        """
        return self._window(i, decode_image(self.files.read(self.names[i]), self.where(i)))

    def open(self, i: int) -> tuple[Image, tuple[int, int]]:
        """Open image i without decoding it.

        Parameters
        ----------
        i : int
            Index of the image.

        Returns
        -------
        picture : PIL.Image.Image
            The opened image, for ``pixels``.
        shape : tuple of int
            Its height and width in pixels.
        """
        picture = open_picture(self.files.read(self.names[i]), self.where(i))
        return picture, (picture.height, picture.width)

    def pixels(self, i: int, picture: Image) -> np.ndarray:
        """Return the pixels of an opened image, as ``read`` does.

        Parameters
        ----------
        i : int
            Index of the image.
        picture : PIL.Image.Image
            The image from ``open``.
        """
        return self._window(i, picture_pixels(picture, self.where(i)))

    def _window(self, i: int, image: np.ndarray) -> np.ndarray:
        """Return the window of image i. Raises ImageError if it is not entirely inside the image."""
        if self.windows is None:
            return image
        left, top, right, bottom = self.windows[i]
        if right > image.shape[1] or bottom > image.shape[0]:
            raise ImageError(
                f"{self.where(i)}: {image.shape[1]} x {image.shape[0]} pixels, too few for the window to {right}, "
                f"{bottom}. It is not the file of the data set; copy it again."
            )
        return image[top:bottom, left:right]

    def mask(self, i: int) -> np.ndarray:
        """Return the region of each pixel of image i, of shape (height, width), int64.

        Parameters
        ----------
        i : int
            Index of the image.

        Raises
        ------
        DataError
            If the set has no masks.
        """
        if self.masks is None:
            raise DataError(f"{self.name}: these images have no masks.")
        return decode_mask(self.files.read(self.masks[i]), self.files.where(self.masks[i]))

    def take(self, rows: np.ndarray | Sequence[int]) -> Self:
        """Return the set of the given images, in the given order.

        Parameters
        ----------
        rows : sequence of int
            Indices of the images.
        """
        rows = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            names=[self.names[i] for i in rows],
            labels=None if self.labels is None else self.labels[rows],
            splits=None if self.splits is None else self.splits[rows],
            windows=None if self.windows is None else self.windows[rows],
            masks=None if self.masks is None else [self.masks[i] for i in rows],
        )

    def part(self, split: str) -> Self:
        """Return the images of a split.

        Parameters
        ----------
        split : str
            Name of the split.

        Raises
        ------
        DataError
            If there is no such split; the message names those that exist.

        Examples
        --------
        >>> ImageSet(None, ["a", "b"], splits=np.array(["train", "test"])).part("test").names
        ['b']
        """
        known = [] if self.splits is None else np.unique(self.splits).tolist()
        if self.splits is None or split not in known:
            raise DataError(f"{self.name}: no split {split!r}; it has {', '.join(known) or 'no splits'}.")
        return self.take(np.flatnonzero(self.splits == split))
