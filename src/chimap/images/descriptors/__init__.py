"""Descriptors: what an image looks like at its points, one method a file."""

from chimap.images.descriptors.base import (
    Coded,
    CodedDescriptor,
    Descriptor,
    LocalDescriptor,
    OnGrids,
    OnPixels,
    Points,
)
from chimap.images.descriptors.hog import HOG, HOGBlocks
from chimap.images.descriptors.pixels import LBP, PHOG, ColourHistogram
from chimap.images.descriptors.sift import SIFT

CATALOGUE: dict[str, LocalDescriptor | CodedDescriptor] = {
    "sift": SIFT(),
    "sift-rgb": SIFT(colour="rgb"),
    "sift-hsv": SIFT(colour="hsv"),
    "sift-opponent": SIFT(colour="opponent"),
    "hog": HOG(),
    "hog-blocks": HOGBlocks(),
    "phog": PHOG(),
    "colour": ColourHistogram(),
    "lbp": LBP(),
}

__all__ = [
    "CATALOGUE",
    "Coded",
    "CodedDescriptor",
    "ColourHistogram",
    "Descriptor",
    "HOG",
    "HOGBlocks",
    "LBP",
    "LocalDescriptor",
    "OnGrids",
    "OnPixels",
    "PHOG",
    "Points",
    "SIFT",
]
