"""DaimlerChrysler pedestrians: small gray windows with and without a pedestrian."""

from __future__ import annotations

import os

import numpy as np

from chimap.images.reading.image_set import ImageSet
from chimap.images.sets._origin import PublishedSet, folders_in, images_in

PARTS = ("1", "2", "3", "T1", "T2")
FOLDERS = {"ped_examples": "pedestrian", "non-ped_examples": "non-pedestrian"}
ORIGIN = PublishedSet(
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
    files = ORIGIN.open(path)
    root = ORIGIN.root(files, "1/ped_examples/")
    names, labels, splits = [], [], []
    for part in folders_in(files, root, PARTS):
        for folder, label in FOLDERS.items():
            listed = images_in(files, f"{root}{part}/{folder}/")
            names += listed
            labels += [label] * len(listed)
            splits += [part] * len(listed)
    return ImageSet(files, names, np.array(labels), np.array(splits))
