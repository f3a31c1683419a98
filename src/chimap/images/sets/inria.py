"""INRIA person: windows with upright people, and windows of scenes without."""

from __future__ import annotations

import os

import numpy as np

from chimap.images.reading.files import ImageFiles
from chimap.images.reading.image_set import ImageSet
from chimap.images.sets._origin import Origin, images_in

WIDTH, HEIGHT = 64, 128
# In the archive train_64x128_H96/pos is a link to the first of these; unpacked elsewhere it may be all there is.
PEOPLE = {
    "train": ("96X160H96/Train/pos/", "train_64x128_H96/pos/"),
    "test": ("70X134H96/Test/pos/", "test_64x128_H96/pos/"),
}
SCENES = {"train": "Train/neg/", "test": "Test/neg/"}
ORIGIN = Origin(
    "the INRIA person data set",
    "INRIAPerson/96X160H96/Train/pos/crop001001a.png",
    "https://web.archive.org/web/2012/http://pascal.inrialpes.fr/data/human/",
    "Dalal and Triggs, Histograms of oriented gradients for human detection, 2005",
)


def inria_person(
    path: str | os.PathLike[str], windows_a_scene: int = 10, random_state: int | None = 0
) -> ImageSet:
    """Windows of 64 x 128 pixels, "person" and "background", with the splits "train" and "test".

    Of each crop of a person the middle is taken, without the margin of 16 pixels (3 in the test part). Of each scene
    without people ``windows_a_scene`` are drawn by ``random_state``, as the paper does for its first round of training;
    scenes smaller than a window are passed over. Scenes are opened for their size, so this takes some seconds.
    """
    files = ORIGIN.open(path)
    root = ORIGIN.root(files, SCENES["train"])
    rng = np.random.default_rng(random_state)
    names: list[str] = []
    boxes: list[tuple[int, int, int, int]] = []
    labels: list[str] = []
    splits: list[str] = []
    for split in ("train", "test"):
        examples = [(name, _middle(size)) for name, size in _sizes(files, _people(files, root, split))]
        scenes = _sizes(files, images_in(files, root + SCENES[split]))
        examples += [
            (n, _random(size, rng)) for n, size in scenes if _fits(size) for _ in range(windows_a_scene)
        ]
        for name, box in examples:
            names.append(name)
            boxes.append(box)
            labels.append("background" if name.startswith(root + SCENES[split]) else "person")
            splits.append(split)
    return ImageSet(files, names, np.array(labels), np.array(splits), windows=np.array(boxes))


def _people(files: ImageFiles, root: str, split: str) -> list[str]:
    for folder in PEOPLE[split]:
        if names := images_in(files, root + folder):
            return names
    raise ORIGIN.absent(files, PEOPLE[split][0])


def _sizes(files: ImageFiles, names: list[str]) -> list[tuple[str, tuple[int, int]]]:
    """(name, (width, height)), from the headers."""
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
