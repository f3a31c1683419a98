"""UIUC Sports: eight kinds of sports events."""

from __future__ import annotations

import os

import numpy as np

from chimap.images.reading.image_set import ImageSet
from chimap.images.sets._origin import PublishedSet, folders_in, images_in

CLASSES = (
    "RockClimbing", "badminton", "bocce", "croquet", "polo", "rowing", "sailing", "snowboarding",
)  # fmt: skip
ORIGIN = PublishedSet(
    "UIUC Sports",
    "event_dataset/badminton/NAME.jpg",
    "http://vision.stanford.edu/lijiali/event_dataset/",
    "Li and Fei-Fei, What, where and who? Classifying events by scene and object recognition, 2007",
)


def uiuc_sports(path: str | os.PathLike[str]) -> ImageSet:
    """Open UIUC Sports: the images of ``event_dataset/CLASS/``.

    It is published as a ``.rar`` archive, which must be unpacked first. There are no splits: papers train on 70 random
    images of each class and test on 60 others, see ``PerClassSplits``.

    Parameters
    ----------
    path : str or Path
        The folder.
    """
    files = ORIGIN.open(path)
    root = ORIGIN.root(files, "badminton/")
    present = folders_in(files, root, CLASSES)
    names = {folder: images_in(files, f"{root}{folder}/") for folder in present}
    labels = [folder for folder in present for _ in names[folder]]
    return ImageSet(files, [name for folder in present for name in names[folder]], np.array(labels))
