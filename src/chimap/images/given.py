"""What users give to the histograms of images: descriptors by name, arrays in place of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from chimap._validation import check_choice
from chimap.images.descriptors import CATALOGUE as DESCRIPTORS
from chimap.images.descriptors import CodedDescriptor, LocalDescriptor
from chimap.images.descriptors.base import check_image
from chimap.images.reading.image_set import ImageSet

Descriptor = LocalDescriptor | CodedDescriptor
Described: TypeAlias = str | Descriptor | Sequence[str | Descriptor] | Mapping[str, str | Descriptor]
"""Descriptors as users give them: names or objects, one or several, or a mapping of names."""
Images: TypeAlias = "Sequence[np.ndarray] | ImageSet | ImageArrays"
"""Images in memory or files of them."""


def described(descriptors: Described) -> dict[str, Descriptor]:
    """Descriptors by name, of a name, an object, a list of these or a mapping. Raises ValueError for unknown ones."""
    if isinstance(descriptors, dict):
        listed = list(descriptors.items())
    else:
        several = descriptors if isinstance(descriptors, list | tuple) else [descriptors]
        listed = [(d if isinstance(d, str) else type(d).__name__.lower(), d) for d in several]
    by_name: dict[str, Descriptor] = {}
    for name, descriptor in listed:
        if isinstance(descriptor, str):
            check_choice(descriptor, "each of descriptors", tuple(DESCRIPTORS))
            descriptor = DESCRIPTORS[descriptor]
        if not isinstance(descriptor, Descriptor):
            raise ValueError(f"each of descriptors must be a name or a descriptor; got {descriptor!r}.")
        if name in by_name:
            raise ValueError(
                f"descriptors has two of the name {name!r}; give a mapping of names to descriptors."
            )
        by_name[name] = descriptor
    if not by_name:
        raise ValueError("descriptors must hold at least one; got none.")
    return by_name


class ImageArrays:
    """A sequence of arrays, read as an ``ImageSet`` is."""

    name = "images"

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def where(self, i: int) -> str:
        """Image i as messages call it."""
        return f"image {i}"

    def open(self, i: int) -> tuple[np.ndarray, int]:
        """Image i, and its number of pixels."""
        image = check_image(self._arrays[i], self.where(i))
        return image, image.shape[0] * image.shape[1]

    def pixels(self, i: int, image: np.ndarray) -> np.ndarray:
        """The image as it was opened."""
        return image


def as_images(X: Images) -> Any:
    """A set of images as it is, a sequence of arrays as something that is read like one."""
    return X if hasattr(X, "pixels") else ImageArrays(X)
