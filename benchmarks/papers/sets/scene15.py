"""Scene-15: fifteen indoor and outdoor scenes, in gray."""

from __future__ import annotations

import os

import numpy as np

from chimap.images.reading.image_set import ImageSet
from chimap.images.sets._origin import PublishedSet, folders_in, images_in

# In the order of the folders 00 to 14 of the later copy.
CLASSES = (
    "bedroom", "CALsuburb", "industrial", "kitchen", "livingroom", "MITcoast", "MITforest", "MIThighway",
    "MITinsidecity", "MITmountain", "MITopencountry", "MITstreet", "MITtallbuilding", "PARoffice", "store",
)  # fmt: skip
ORIGIN = PublishedSet(
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
    files = ORIGIN.open(path)
    numbered = any(f"/{p}".find("/00/") >= 0 for p in files.paths)
    folders = [f"{i:02}" for i in range(len(CLASSES))] if numbered else list(CLASSES)
    root = ORIGIN.root(files, f"{folders[0]}/")
    present = folders_in(files, root, folders)
    names = {folder: images_in(files, f"{root}{folder}/") for folder in present}
    labels = [CLASSES[folders.index(folder)] for folder in present for _ in names[folder]]
    return ImageSet(files, [name for folder in present for name in names[folder]], np.array(labels))
