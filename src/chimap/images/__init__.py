"""Turn images into histograms: descriptors on a grid, visual words, coding and spatial pyramids.

``ImageHistograms`` combines all of these and returns rows for ``HistogramClassifier``. OpenCV and scikit-image are
imported when they are first needed: ``pip install "chimap[vision]"``.
"""

from chimap.images.descriptors import CATALOGUE as DESCRIPTORS
from chimap.images.descriptors import HOG, LBP, PHOG, SIFT, ColourHistogram, HOGBlocks
from chimap.images.histograms import ImageHistograms
from chimap.images.pyramid import Pyramid
from chimap.images.reading import ImageError, ImageReader, ImageSet, open_images
from chimap.images.vocabulary import CODINGS, HardCoding, SoftCoding, Vocabulary, learn_vocabulary, reservoir
from chimap.model_files.model_file import register

__all__ = [
    "ImageHistograms",
    "open_images",
    "ImageSet",
    "ImageReader",
    "ImageError",
    "SIFT",
    "HOG",
    "HOGBlocks",
    "PHOG",
    "ColourHistogram",
    "LBP",
    "Vocabulary",
    "learn_vocabulary",
    "reservoir",
    "HardCoding",
    "SoftCoding",
    "Pyramid",
]

register(ImageHistograms, Vocabulary)
register(*(type(d) for d in DESCRIPTORS.values()), *(type(c) for c in CODINGS.values()))
