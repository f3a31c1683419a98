"""Images in folders that are named after their classes, the layout of most data sets."""

from __future__ import annotations

import numpy as np

from chimap._validation import DataError
from chimap.data.image_names import ENDINGS, is_image_name
from chimap.images.reading.files import ImageFiles
from chimap.images.reading.image_set import ImageSet

# folders at the top that are splits of a data set rather than classes
SPLITS = {
    "train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test",
    "testing": "test",
}  # fmt: skip


def class_folders(files: ImageFiles) -> ImageSet:
    """Return the images of CLASS/IMAGE, or of SPLIT/CLASS/IMAGE with splits called train, val or test.

    A folder around all of these is skipped. The class is the first folder; deeper ones are ignored. If no image is in a
    folder, there are no labels. Raises DataError if there are no images, and if some are in class folders and others
    are not.
    """
    names = [path for path in files.paths if is_image_name(path)]
    if not names:
        raise DataError(
            f"{files.name}: no images in it, of {len(files.paths)} files. Images end in {', '.join(ENDINGS)}; put them "
            "into one folder for each class."
        )
    steps = [name.split("/") for name in _inside(names)]
    splits = None
    if all(len(s) > 1 and s[0].lower() in SPLITS for s in steps):
        splits = np.array([SPLITS[s[0].lower()] for s in steps])
        steps = [s[1:] for s in steps]
    return ImageSet(files, names, _classes(files, names, steps), splits)


def _inside(names: list[str]) -> list[str]:
    """Return the paths without the folders that hold everything, as long as a folder remains for the class."""
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
            "into one, or pass a CSV file of paths and labels."
        )
    return np.array([s[0] for s in steps])
