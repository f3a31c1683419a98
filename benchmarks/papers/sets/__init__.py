"""Loaders of published data sets of images, in the layout in which they are downloaded; nothing is downloaded here.

A loader is a function of the path of the folder or archive, with an entry in ``CATALOGUE``; if the data set is missing,
its message says where to get it. ``Ilsvrc2010Bow`` is a source of histograms, because that data set has histograms
instead of images.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.papers.sets.class_folders import caltech101, scene15, uiuc_sports
from benchmarks.papers.sets.imagenet import Ilsvrc2010Bow, imagenet, synset_names
from benchmarks.papers.sets.pascal_voc import VocObject, voc_classification, voc_objects, voc_segmentation
from benchmarks.papers.sets.pedestrians import daimler_pedestrians, inria_people, inria_person, inria_scenes
from chimap.images.reading.image_set import ImageSet

__all__ = [
    "CATALOGUE",
    "caltech101",
    "daimler_pedestrians",
    "imagenet",
    "synset_names",
    "inria_person",
    "inria_scenes",
    "inria_people",
    "voc_classification",
    "voc_segmentation",
    "voc_objects",
    "VocObject",
    "scene15",
    "uiuc_sports",
    "Ilsvrc2010Bow",
]

CATALOGUE: dict[str, Callable[..., ImageSet]] = {
    "caltech101": caltech101,
    "daimler_pedestrians": daimler_pedestrians,
    "imagenet": imagenet,
    "inria_person": inria_person,
    "inria_scenes": inria_scenes,
    "scene15": scene15,
    "uiuc_sports": uiuc_sports,
    "voc2007": voc_classification,
    "voc2012": partial(voc_classification, year=2012),
    "voc2007_segmentation": voc_segmentation,
    "voc2012_segmentation": partial(voc_segmentation, year=2012),
}
