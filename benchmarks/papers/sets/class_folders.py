"""Sets with a folder for each class: Caltech-101, Scene-15 and UIUC Sports."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.papers.sets.origin import PublishedSet, folders_in, images_in
from chimap.images.reading.image_set import ImageSet

BACKGROUND = "BACKGROUND_Google"
CALTECH101 = PublishedSet(
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
    files = CALTECH101.open(path)
    root = CALTECH101.root(files, "accordion/image_")
    names = images_in(files, root)
    labels = np.array([name[len(root) :].partition("/")[0] for name in names])
    images = ImageSet(files, names, labels)
    return images if background else images.take(np.flatnonzero(labels != BACKGROUND))


# In the order of the folders 00 to 14 of the later copy.
SCENES = (
    "bedroom",
    "CALsuburb",
    "industrial",
    "kitchen",
    "livingroom",
    "MITcoast",
    "MITforest",
    "MIThighway",
    "MITinsidecity",
    "MITmountain",
    "MITopencountry",
    "MITstreet",
    "MITtallbuilding",
    "PARoffice",
    "store",
)
SCENE15 = PublishedSet(
    "Scene-15",
    "scene_categories/bedroom/image_0001.jpg (or 15-Scene/00/1.jpg)",
    "https://figshare.com/articles/dataset/15-Scene_Image_Dataset/7007177",
    "Lazebnik, Schmid and Ponce, Beyond bags of features, 2006",
)


def scene15(path: str | os.PathLike[str]) -> ImageSet:
    """Open Scene-15: the images of ``scene_categories/CLASS/``, or of the later copy with folders 00 to 14.

    There are no splits: papers train on 100 random images of each class, see ``PerClassSplits``.

    Parameters
    ----------
    path : str or Path
        The folder or an archive of it.
    """
    files = SCENE15.open(path)
    numbered = any(f"/{p}".find("/00/") >= 0 for p in files.paths)
    folders = [f"{i:02}" for i in range(len(SCENES))] if numbered else list(SCENES)
    root = SCENE15.root(files, f"{folders[0]}/")
    present = folders_in(files, root, folders)
    names = {folder: images_in(files, f"{root}{folder}/") for folder in present}
    labels = [SCENES[folders.index(folder)] for folder in present for _ in names[folder]]
    return ImageSet(files, [name for folder in present for name in names[folder]], np.array(labels))


SPORTS = ("RockClimbing", "badminton", "bocce", "croquet", "polo", "rowing", "sailing", "snowboarding")
UIUC_SPORTS = PublishedSet(
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
    files = UIUC_SPORTS.open(path)
    root = UIUC_SPORTS.root(files, "badminton/")
    present = folders_in(files, root, SPORTS)
    names = {folder: images_in(files, f"{root}{folder}/") for folder in present}
    labels = [folder for folder in present for _ in names[folder]]
    return ImageSet(files, [name for folder in present for name in names[folder]], np.array(labels))
