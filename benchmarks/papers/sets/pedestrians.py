"""Windows of pedestrians: INRIA person, with its scenes and the boxes of their people, and DaimlerChrysler."""

from __future__ import annotations

import os
import re

import numpy as np

from benchmarks.papers.sets.origin import PublishedSet, folders_in, images_in, lines_of
from chimap._validation import DataError
from chimap.images.reading.files import ImageFiles
from chimap.images.reading.image_set import ImageSet

WIDTH, HEIGHT = 64, 128
# In the archive, train_64x128_H96/pos is a link to the first of these; unpacked elsewhere, it may be the only one.
PEOPLE = {
    "train": ("96X160H96/Train/pos/", "train_64x128_H96/pos/"),
    "test": ("70X134H96/Test/pos/", "test_64x128_H96/pos/"),
}
SCENES = {"train": "Train/neg/", "test": "Test/neg/"}
WITH_PEOPLE = {"train": "Train/pos/", "test": "Test/pos/"}
_NUMBERS = r"\((-?\d+),\s*(-?\d+)\)"
_BOX = re.compile(rf"Bounding box for object .*:\s*{_NUMBERS}\s*-\s*{_NUMBERS}")
_CORNER = re.compile(rf"Top left pixel co-ordinates\s*:\s*{_NUMBERS}")
INRIA = PublishedSet(
    "the INRIA person data set",
    "INRIAPerson/96X160H96/Train/pos/crop001001a.png",
    "https://web.archive.org/web/2012/http://pascal.inrialpes.fr/data/human/",
    "Dalal and Triggs, Histograms of oriented gradients for human detection, 2005",
)


def inria_person(path: str | os.PathLike[str], windows_a_scene: int = 10, random_state: int | None = 0) -> ImageSet:
    """Open INRIA person as windows of 64 x 128 pixels, "person" and "background", with the splits "train" and "test".

    A window of a person is the middle of a crop, without its margin of 16 pixels (3 in the test part). Windows of the
    background are drawn at random from each scene without people, as the paper does for its first round of training;
    scenes smaller than a window are skipped. Scenes are opened to read their size, so this takes some seconds.

    Parameters
    ----------
    path : str or Path
        The folder or an archive of it.
    windows_a_scene : int, default=10
        Number of windows drawn from each scene.
    random_state : int or None, default=0
        Seed of the windows; None differs at each call.
    """
    files = INRIA.open(path)
    root = INRIA.root(files, SCENES["train"])
    rng = np.random.default_rng(random_state)
    names: list[str] = []
    boxes: list[tuple[int, int, int, int]] = []
    labels: list[str] = []
    splits: list[str] = []
    for split in ("train", "test"):
        examples = [(name, _middle(size)) for name, size in _sizes(files, _people(files, root, split))]
        scenes = _sizes(files, images_in(files, root + SCENES[split]))
        examples += [(n, _random(size, rng)) for n, size in scenes if _fits(size) for _ in range(windows_a_scene)]
        for name, box in examples:
            names.append(name)
            boxes.append(box)
            labels.append("background" if name.startswith(root + SCENES[split]) else "person")
            splits.append(split)
    return ImageSet(files, names, np.array(labels), np.array(splits), windows=np.array(boxes))


def inria_scenes(path: str | os.PathLike[str]) -> ImageSet:
    """Open INRIA person as whole photographs, "person" and "background", with the splits "train" and "test".

    The images of "background" contain no people: a detector must not find any windows in them. ``inria_people`` returns
    the boxes of people in an image.

    Parameters
    ----------
    path : str or Path
        The folder or an archive of it.
    """
    files = INRIA.open(path)
    root = INRIA.root(files, SCENES["train"])
    names, labels, splits = [], [], []
    for split in ("train", "test"):
        for label, folders in (("person", WITH_PEOPLE), ("background", SCENES)):
            listed = images_in(files, root + folders[split])
            if not listed:
                raise INRIA.absent(files, folders[split])
            names += listed
            labels += [label] * len(listed)
            splits += [split] * len(listed)
    return ImageSet(files, names, np.array(labels), np.array(splits))


def inria_people(images: ImageSet, i: int) -> list[tuple[int, int, int, int]]:
    """Return the boxes of the people in image i of ``inria_scenes``; an empty list for a scene without people.

    Parameters
    ----------
    images : ImageSet
        The set from ``inria_scenes``.
    i : int
        Index of the image.

    Returns
    -------
    list of tuple of int
        (left, top, right, bottom) in pixels from 0; right and bottom are excluded.

    Raises
    ------
    DataError
        If the annotation is damaged.
    """
    assert images.labels is not None
    if images.labels[i] != "person":
        return []
    folder, _, name = images.names[i].rpartition("pos/")
    path = f"{folder}annotations/{name.rpartition('.')[0]}.txt"
    text = "\n".join(lines_of(images.files, path))
    corner = _CORNER.search(text)
    x, y = (int(side) for side in corner.groups()) if corner else (0, 0)
    boxes = [tuple(map(int, sides)) for sides in _BOX.findall(text)]
    if not boxes or any(right < left or bottom < top for left, top, right, bottom in boxes):
        raise DataError(
            f"{images.files.where(path)}: no 'Bounding box for object' with numbers in order, so it is not an "
            "annotation of INRIA person. Copy it again."
        )
    return [(left - x, top - y, right - x + 1, bottom - y + 1) for left, top, right, bottom in boxes]


def _people(files: ImageFiles, root: str, split: str) -> list[str]:
    for folder in PEOPLE[split]:
        if names := images_in(files, root + folder):
            return names
    raise INRIA.absent(files, PEOPLE[split][0])


def _sizes(files: ImageFiles, names: list[str]) -> list[tuple[str, tuple[int, int]]]:
    """Return (name, (width, height)) of each image, from the headers."""
    images = ImageSet(files, names)
    return [(name, images.open(i)[0].size) for i, name in enumerate(names)]


def _fits(size: tuple[int, int]) -> bool:
    return size[0] >= WIDTH and size[1] >= HEIGHT


def _middle(size: tuple[int, int]) -> tuple[int, int, int, int]:
    left, top = (size[0] - WIDTH) // 2, (size[1] - HEIGHT) // 2
    return left, top, left + WIDTH, top + HEIGHT


def _random(size: tuple[int, int], rng: np.random.Generator) -> tuple[int, int, int, int]:
    left, top = int(rng.integers(size[0] - WIDTH + 1)), int(rng.integers(size[1] - HEIGHT + 1))
    return left, top, left + WIDTH, top + HEIGHT


PARTS = ("1", "2", "3", "T1", "T2")
FOLDERS = {"ped_examples": "pedestrian", "non-ped_examples": "non-pedestrian"}
DAIMLER = PublishedSet(
    "the DaimlerChrysler pedestrian classification benchmark",
    "DC-ped-dataset_base/1/ped_examples/img_00000.pgm",
    "http://www.gavrila.net/Datasets/Daimler_Pedestrian_Benchmark_D/daimler_pedestrian_benchmark_d.html",
    "Munder and Gavrila, An experimental study on pedestrian classification, 2006",
)


def daimler_pedestrians(path: str | os.PathLike[str]) -> ImageSet:
    """Open the DaimlerChrysler pedestrians: windows of 18 x 36 pixels.

    ``splits`` names the parts: "1", "2" and "3" for training, "T1" and "T2" for testing. Papers train on two of the
    three parts and test on each of the two, and report the mean of these six numbers.

    Parameters
    ----------
    path : str or Path
        The folder or an archive of it.
    """
    files = DAIMLER.open(path)
    root = DAIMLER.root(files, "1/ped_examples/")
    names, labels, splits = [], [], []
    for part in folders_in(files, root, PARTS):
        for folder, label in FOLDERS.items():
            listed = images_in(files, f"{root}{part}/{folder}/")
            names += listed
            labels += [label] * len(listed)
            splits += [part] * len(listed)
    return ImageSet(files, names, np.array(labels), np.array(splits))
