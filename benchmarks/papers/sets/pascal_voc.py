"""PASCAL VOC: images with several objects each, their boxes, and masks for some of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from benchmarks.papers.sets.origin import PublishedSet, lines_of
from chimap._validation import DataError, check_choice
from chimap.images.reading.files import ImageFiles
from chimap.images.reading.image_set import ImageSet

CLASSES = (
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
)
SPLITS = ("train", "val", "test")


class VocObject(NamedTuple):
    """An object of an annotation.

    Parameters
    ----------
    name : str
        Its class.
    box : tuple of int
        (left, top, right, bottom) in pixels from 0; right and bottom are excluded.
    difficult : bool
        Whether it is marked as difficult.
    """

    name: str
    box: tuple[int, int, int, int]
    difficult: bool


def origin(year: int) -> PublishedSet:
    """Return the origin of PASCAL VOC of a year."""
    return PublishedSet(
        f"PASCAL VOC {year}",
        f"VOCdevkit/VOC{year}/JPEGImages, /Annotations and /ImageSets",
        f"http://host.robots.ox.ac.uk/pascal/VOC/voc{year}/",
        "Everingham, Van Gool, Williams, Winn and Zisserman, The PASCAL visual object classes challenge, 2010",
    )


def voc_classification(path: str | os.PathLike[str], year: int = 2007) -> ImageSet:
    """Open the images listed in ``ImageSets/Main`` of PASCAL VOC, with labels (n, 20) in the order of ``CLASSES``.

    A label is 1 if the class is in the image, -1 if not, and 0 if all its objects are marked as difficult, so that the
    image does not count for the class. Labels come from the lists ``CLASS_SPLIT.txt``, or from the XML annotations
    where lists are missing; test images with neither are left out. The splits are "train", "val" and "test".

    Parameters
    ----------
    path : str or Path
        The folder or an archive of it.
    year : int, default=2007
        Year of the challenge.
    """
    data = origin(year)
    files = data.open(path)
    root = _root(files, year, data)
    paths = set(files.paths)
    ids: list[str] = []
    splits: list[str] = []
    labels: list[np.ndarray] = []
    for split in _lists(files, paths, root, "Main", data):
        listed = [line.split()[0] for line in lines_of(files, f"{root}ImageSets/Main/{split}.txt")]
        examples = _from_lists(files, paths, root, split, listed)
        known = listed if examples is not None else [i for i in listed if f"{root}Annotations/{i}.xml" in paths]
        ids += known
        splits += [split] * len(known)
        labels += [examples if examples is not None else _from_xml(files, root, known)]
    names = [f"{root}JPEGImages/{i}.jpg" for i in ids]
    y = np.concatenate(labels)
    return ImageSet(files, names, y, np.array(splits))


def one_against_rest(images: ImageSet, class_name: str) -> ImageSet:
    """Return the set with the labels of one of ``CLASSES``: 1 and -1, without the images that are too hard to count."""
    assert images.labels is not None
    check_choice(class_name, "class_name", CLASSES)
    column = images.labels[:, CLASSES.index(class_name)].astype(np.int64)
    kept = np.flatnonzero(column)
    return replace(images.take(kept), labels=column[kept])


def voc_segmentation(path: str | os.PathLike[str], year: int = 2007, masks: str = "class") -> ImageSet:
    """Open the images listed in ``ImageSets/Segmentation`` of PASCAL VOC, with masks (``ImageSet.mask``) but no labels.

    In a mask, 255 marks borders and what is too hard; these pixels are ignored.

    Parameters
    ----------
    path : str or Path
        The folder or an archive of it.
    year : int, default=2007
        Year of the challenge.
    masks : str, default="class"
        "class": 0 is background and k is the k-th of ``CLASSES``. "object": masks hold the numbers of the objects.
    """
    check_choice(masks, "masks", ("class", "object"))
    data = origin(year)
    files = data.open(path)
    root = _root(files, year, data)
    folder = "SegmentationClass" if masks == "class" else "SegmentationObject"
    paths = set(files.paths)
    triples = [
        (f"{root}JPEGImages/{i.strip()}.jpg", f"{root}{folder}/{i.strip()}.png", split)
        for split in _lists(files, paths, root, "Segmentation", data)
        for i in lines_of(files, f"{root}ImageSets/Segmentation/{split}.txt")
    ]
    triples = [triple for triple in triples if triple[1] in paths]  # some test masks are not published
    if not triples:
        raise data.absent(files, folder)
    names, mask_names, splits = (list(column) for column in zip(*triples, strict=True))
    return ImageSet(files, names, splits=np.array(splits), masks=mask_names)


def voc_objects(images: ImageSet, i: int) -> list[VocObject]:
    """Return the objects of image i of a VOC set, from its XML annotation.

    Parameters
    ----------
    images : ImageSet
        The set.
    i : int
        Index of the image.

    Returns
    -------
    list of VocObject
        The objects.

    Raises
    ------
    DataError
        If the annotation is damaged.
    """
    return _objects(images.files, images.names[i].replace("JPEGImages/", "Annotations/").removesuffix(".jpg") + ".xml")


def _root(files: ImageFiles, year: int, data: PublishedSet) -> str:
    """Return the part of the paths before JPEGImages/; "" if the path is the folder of the year itself."""
    folder = f"VOC{year}"
    if files.name.rstrip("/").endswith(folder) and any(p.startswith("JPEGImages/") for p in files.paths):
        return ""
    return data.root(files, f"{folder}/JPEGImages/") + f"{folder}/"


def _lists(files: ImageFiles, paths: set[str], root: str, task: str, data: PublishedSet) -> list[str]:
    """Return the splits that have a list."""
    lists = [split for split in SPLITS if f"{root}ImageSets/{task}/{split}.txt" in paths]
    if not lists:
        raise data.absent(files, f"{root}ImageSets/{task}/train.txt")
    return lists


def _from_lists(files: ImageFiles, paths: set[str], root: str, split: str, ids: Sequence[str]) -> np.ndarray | None:
    """Return labels (n, 20) from the lists of the classes; None if a list is missing."""
    lists = [f"{root}ImageSets/Main/{name}_{split}.txt" for name in CLASSES]
    if not set(lists) <= paths:
        return None
    columns = []
    for path in lists:
        pairs = dict(line.split() for line in lines_of(files, path))
        missing = [i for i in ids if i not in pairs]
        if missing:
            raise DataError(
                f"{files.where(path)}: no line for image {missing[0]}, which {split}.txt lists. Copy the lists again."
            )
        columns.append([int(pairs[i]) for i in ids])
    return np.array(columns, dtype=np.int8).T


def _from_xml(files: ImageFiles, root: str, ids: Sequence[str]) -> np.ndarray:
    labels = np.full((len(ids), len(CLASSES)), -1, dtype=np.int8)
    for row, i in enumerate(ids):
        for thing in _objects(files, f"{root}Annotations/{i}.xml"):
            if thing.name in CLASSES:
                column = CLASSES.index(thing.name)
                labels[row, column] = max(labels[row, column], 0 if thing.difficult else 1)
    return labels


def _objects(files: ImageFiles, path: str) -> list[VocObject]:
    try:
        elements = ElementTree.fromstring(files.read(path)).findall("object")
        return [_object(element) for element in elements]
    except (ElementTree.ParseError, ValueError, AttributeError) as error:
        raise DataError(f"{files.where(path)}: not an annotation of VOC ({error}). Copy it again.") from error


def _object(element: ElementTree.Element) -> VocObject:
    box = element.find("bndbox")
    left, top, right, bottom = (round(float(box.find(side).text)) for side in ("xmin", "ymin", "xmax", "ymax"))
    name = element.findtext("name", "")
    # annotations count pixels from 1 and include the last pixel
    return VocObject(name, (left - 1, top - 1, right, bottom), element.findtext("difficult", "0").strip() == "1")
