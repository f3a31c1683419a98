"""A set of images: names, labels, and each image when it is asked for."""

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
    """Images in the order of their names. Nothing is decoded before it is read; threads may read at once.

    files: what holds them. names: paths in it, one an image.
    labels: (n,) text or numbers; or (n, classes) int8 where an image may be of several ``classes``: 1 it is, -1 it is
    not, 0 it is, but too hard to count; or None.
    classes: names of the columns of such labels; of others, all that occur.
    splits: (n,) text, the part of the data set that an image belongs to, such as "train"; or None.
    windows: (n, 4) pixels left, top, right, bottom, the part of the file that is the image; or None for all of it.
    masks: path of the mask of each image, or None.

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
    class_names: tuple[str, ...] | None = None
    windows: np.ndarray | None = None
    masks: list[str] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def name(self) -> str:
        """Of the folder or file, for messages and reports."""
        return self.files.name

    @property
    def classes(self) -> list[Any]:
        """Names of the columns of labels of several classes; of other labels, all that occur, sorted."""
        if self.class_names is not None:
            return list(self.class_names)
        return [] if self.labels is None else np.unique(self.labels).tolist()

    def where(self, i: int) -> str:
        """Image i as messages call it."""
        return self.files.where(self.names[i])

    def read(self, i: int) -> np.ndarray:
        """Image i, (height, width, 3) uint8 RGB. Raises ImageError, naming the file, if it is broken."""
        return self.cut(i, decode_image(self.files.read(self.names[i]), self.where(i)))

    def open(self, i: int) -> tuple[Image, int]:
        """Image i opened but not decoded, and its number of pixels; for ``pixels``."""
        picture = open_picture(self.files.read(self.names[i]), self.where(i))
        return picture, picture.width * picture.height

    def pixels(self, i: int, picture: Image) -> np.ndarray:
        """What ``read`` gives, of the opened image."""
        return self.cut(i, picture_pixels(picture, self.where(i)))

    def cut(self, i: int, image: np.ndarray) -> np.ndarray:
        """The window of image i. Raises ImageError if it is not all inside."""
        if self.windows is None:
            return image
        left, top, right, bottom = self.windows[i]
        if right > image.shape[1] or bottom > image.shape[0]:
            raise ImageError(
                f"{self.where(i)}: {image.shape[1]} x {image.shape[0]} pixels, too few for the window to {right}, "
                f"{bottom}. It is not the file that the data set has; copy it again."
            )
        return image[top:bottom, left:right]

    def mask(self, i: int) -> np.ndarray:
        """Region indices of image i, (height, width) int64. Raises DataError for a set without masks."""
        if self.masks is None:
            raise DataError(f"{self.name}: these images have no masks.")
        return decode_mask(self.files.read(self.masks[i]), self.files.where(self.masks[i]))

    def take(self, rows: np.ndarray | Sequence[int]) -> Self:
        """The set of these images, in this order."""
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
        """The images of a split. Raises DataError, naming those there are, for one that is not.

        >>> ImageSet(None, ["a", "b"], splits=np.array(["train", "test"])).part("test").names
        ['b']
        """
        known = [] if self.splits is None else np.unique(self.splits).tolist()
        if self.splits is None or split not in known:
            raise DataError(f"{self.name}: no split {split!r}; it has {', '.join(known) or 'no splits'}.")
        return self.take(np.flatnonzero(self.splits == split))

    def one_against_rest(self, class_name: str) -> Self:
        """Of labels of several classes one: 1 and -1, without the images that are too hard to count."""
        if self.labels is None or self.labels.ndim != 2 or class_name not in self.classes:
            raise DataError(
                f"{self.name}: no class {class_name!r} with labels of its own; there are "
                f"{', '.join(map(str, self.classes)) or 'none'}."
            )
        column = self.labels[:, self.classes.index(class_name)].astype(np.int64)
        kept = np.flatnonzero(column)
        return replace(self.take(kept), labels=column[kept], class_names=None)
