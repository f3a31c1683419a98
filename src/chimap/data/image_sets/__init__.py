"""Data sets of images as they are laid out when they have been downloaded; nothing is downloaded here.

A loader is a function of the path of the folder (or archive) and a line in ``CATALOGUE``; where the data set is
missing, its message tells where to get it. ``open_images(path, layout="caltech101")`` calls it. ``Ilsvrc2010Bow`` is a
source of histograms, which come instead of images there.

>>> sorted(CATALOGUE)[:3]
['caltech101', 'daimler_pedestrians', 'imagenet']
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chimap.data.image_set import ImageSet
from chimap.data.image_sets.caltech101 import caltech101
from chimap.data.image_sets.daimler import daimler_pedestrians
from chimap.data.image_sets.ilsvrc2010_bow import Ilsvrc2010Bow
from chimap.data.image_sets.imagenet import imagenet, synset_names
from chimap.data.image_sets.inria import inria_person
from chimap.data.image_sets.pascal_voc import VocObject, voc_classification, voc_objects, voc_segmentation
from chimap.data.image_sets.scene15 import scene15
from chimap.data.image_sets.uiuc_sports import uiuc_sports

__all__ = [
    "CATALOGUE",
    "caltech101",
    "daimler_pedestrians",
    "imagenet",
    "synset_names",
    "inria_person",
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
    "scene15": scene15,
    "uiuc_sports": uiuc_sports,
    "voc2007": voc_classification,
    "voc2012": partial(voc_classification, year=2012),
    "voc2007_segmentation": voc_segmentation,
    "voc2012_segmentation": partial(voc_segmentation, year=2012),
}
