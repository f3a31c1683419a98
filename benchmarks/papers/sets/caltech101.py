"""Caltech-101: 101 kinds of objects and a class of background images."""

from __future__ import annotations

import os

import numpy as np

from chimap.images.reading.image_set import ImageSet
from chimap.images.sets._origin import PublishedSet, images_in

BACKGROUND = "BACKGROUND_Google"
ORIGIN = PublishedSet(
    "Caltech-101",
    "101_ObjectCategories/accordion/image_0001.jpg",
    "https://data.caltech.edu/records/mzrjq-6wc02",
    "Fei-Fei, Fergus and Perona, Learning generative visual models from few training examples, 2004",
)


def caltech101(path: str | os.PathLike[str], background: bool = True) -> ImageSet:
    """Open Caltech-101: the images ``101_ObjectCategories/CLASS/image_NNNN.jpg``, from the folder or its ``.tar.gz``.

    There are no splits: papers train on 15 or 30 random images of each class, see ``PerClassSplits``.

    Parameters
    ----------
    path : str or Path
        The folder or the archive.
    background : bool, default=True
        Whether BACKGROUND_Google is a class, which makes 102, as in most papers.
    """
    files = ORIGIN.open(path)
    root = ORIGIN.root(files, "accordion/image_")
    names = images_in(files, root)
    labels = np.array([name[len(root) :].partition("/")[0] for name in names])
    images = ImageSet(files, names, labels)
    return images if background else images.take(np.flatnonzero(labels != BACKGROUND))
