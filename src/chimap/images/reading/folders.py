"""Images in folders that are named after their class, the layout of most data sets."""

from __future__ import annotations

import numpy as np

from chimap._validation import DataError
from chimap.data.image_names import ENDINGS, is_image_name
from chimap.images.reading.files import ImageFiles
from chimap.images.reading.image_set import ImageSet

# folders of a first level that holds parts of a data set rather than classes
SPLITS = {
    "train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test",
    "testing": "test",
}  # fmt: skip


def class_folders(files: ImageFiles) -> ImageSet:
    """CLASS/IMAGE, or SPLIT/CLASS/IMAGE with splits called train, val or test; a folder around it all is passed over.

    The class is the first folder; deeper ones do not matter. Images in no folder at all have no labels. Raises
    DataError where there are no images, and where some lie in folders and some beside them.
    """
    names = [path for path in files.paths if is_image_name(path)]
    if not names:
        raise DataError(
            f"{files.name}: no images in it, of {len(files.paths)} files. Images end in {', '.join(ENDINGS)}; put them "
            "into a folder for each class."
        )
    steps = [name.split("/") for name in _inside(names)]
    splits = None
    if all(len(s) > 1 and s[0].lower() in SPLITS for s in steps):
        splits = np.array([SPLITS[s[0].lower()] for s in steps])
        steps = [s[1:] for s in steps]
    return ImageSet(files, names, _classes(files, names, steps), splits)


def _inside(names: list[str]) -> list[str]:
    """Paths without the folders that hold everything, as long as a folder is left for the class."""
    while all(name.count("/") >= 2 for name in names) and len({n.partition("/")[0] for n in names}) == 1:
        if names[0].partition("/")[0].lower() in SPLITS:
            break
        names = [name.partition("/")[2] for name in names]
    return names


def _classes(files: ImageFiles, names: list[str], steps: list[list[str]]) -> np.ndarray | None:
    loose = [name for name, s in zip(names, steps, strict=True) if len(s) == 1]
    if len(loose) == len(names):
        return None
    if loose:
        raise DataError(
            f"{files.where(loose[0])}: in no folder of a class, as {len(names) - len(loose)} other images are. Move it "
            "into one, or give a CSV file of paths and labels."
        )
    return np.array([s[0] for s in steps])
