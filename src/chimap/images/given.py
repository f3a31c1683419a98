"""Arguments that users pass to image histograms: descriptors by name, and arrays in place of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import ParameterError, check_choice
from chimap.images.descriptors import CATALOGUE as DESCRIPTORS
from chimap.images.descriptors import CodedDescriptor, LocalDescriptor
from chimap.images.descriptors.base import check_image
from chimap.images.reading.image_set import ImageSet

Descriptor = LocalDescriptor | CodedDescriptor
Described: TypeAlias = str | Descriptor | Sequence[str | Descriptor] | Mapping[str, str | Descriptor]
"""Descriptors as users pass them: a name or an object, a sequence of these, or a mapping from names to these."""
Images: TypeAlias = "Sequence[np.ndarray] | ImageSet | ImageArrays"
"""Images in memory, or a set of image files."""


def described(descriptors: Described) -> dict[str, Descriptor]:
    """Return descriptors by name, given a name, a descriptor, a list of these or a mapping.

    A descriptor without a name is called by its class in lower case. Raises ValueError for an unknown name, for two
    descriptors of one name and for an empty list.
    """
    if isinstance(descriptors, Mapping):
        listed: list[tuple[str, str | Descriptor]] = list(descriptors.items())
    else:
        entries: Sequence[Any] = descriptors if isinstance(descriptors, list | tuple) else [descriptors]
        listed = [(d if isinstance(d, str) else type(d).__name__.lower(), d) for d in entries]
    by_name: dict[str, Descriptor] = {}
    for name, descriptor in listed:
        if isinstance(descriptor, str):
            check_choice(descriptor, Message("each of {descriptors}"), tuple(DESCRIPTORS))
            descriptor = DESCRIPTORS[descriptor]
        if not isinstance(descriptor, Descriptor):
            raise ParameterError(Message("each of {descriptors}"), descriptor, "a name or a descriptor")
        if name in by_name:
            raise InputError(
                f"descriptors has two of the name {name!r}; give a mapping from distinct names to descriptors."
            )
        by_name[name] = descriptor
    if not by_name:
        raise InputError(Message("{descriptors} must hold at least one descriptor; got none."))
    return by_name


class ImageArrays:
    """A sequence of arrays with the reading interface of an ``ImageSet``."""

    name = "images"

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def where(self, i: int) -> str:
        """Return the name of image i for messages."""
        return f"image {i}"

    def open(self, i: int) -> tuple[np.ndarray, int]:
        """Return image i as (H, W, 3) uint8 and its number of pixels."""
        image = check_image(self._arrays[i], self.where(i))
        return image, image.shape[0] * image.shape[1]

    def pixels(self, i: int, image: np.ndarray) -> np.ndarray:
        """Return the image that ``open`` returned, as it is."""
        return image


def as_images(X: Images) -> Any:
    """Return a set of images as it is, and a sequence of arrays wrapped so that it reads like a set."""
    return X if hasattr(X, "pixels") else ImageArrays(X)
