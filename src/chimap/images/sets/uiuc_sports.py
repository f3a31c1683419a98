"""UIUC Sports: eight kinds of sports events."""

from __future__ import annotations

import os

import numpy as np

from chimap.images.reading.image_set import ImageSet
from chimap.images.sets._origin import Origin, folders_in, images_in

CLASSES = (
    "RockClimbing", "badminton", "bocce", "croquet", "polo", "rowing", "sailing", "snowboarding",
)  # fmt: skip
ORIGIN = Origin(
    "UIUC Sports",
    "event_dataset/badminton/NAME.jpg",
    "http://vision.stanford.edu/lijiali/event_dataset/",
    "Li and Fei-Fei, What, where and who? Classifying events by scene and object recognition, 2007",
)


def uiuc_sports(path: str | os.PathLike[str]) -> ImageSet:
    """The images of ``event_dataset/CLASS/``; the archive is a ``.rar``, to be unpacked first.

    There are no splits: papers take 70 images of each class at random for training and 60 for testing, see
    ``PerClassSplits``.
    """
    files = ORIGIN.open(path)
    root = ORIGIN.root(files, "badminton/")
    there = folders_in(files, root, CLASSES)
    names = {folder: images_in(files, f"{root}{folder}/") for folder in there}
    labels = [folder for folder in there for _ in names[folder]]
    return ImageSet(files, [name for folder in there for name in names[folder]], np.array(labels))
