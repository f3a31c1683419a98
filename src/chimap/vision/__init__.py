"""From images to histograms: descriptors on a grid, visual words, coding, spatial pyramids.

``ImageHistograms`` is all of it; what it gives are rows for ``HistogramClassifier``. OpenCV and scikit-image are
loaded when they are first needed: ``pip install "chimap[vision]"``.
"""

from chimap.learning.model_file import register
from chimap.vision.coding import CATALOGUE as CODINGS
from chimap.vision.coding import HardCoding, SoftCoding
from chimap.vision.descriptors import CATALOGUE as DESCRIPTORS
from chimap.vision.descriptors import HOG, LBP, PHOG, SIFT, ColourHistogram
from chimap.vision.detector import Detection, WindowDetector
from chimap.vision.histograms import ImageHistograms
from chimap.vision.pyramid import Pyramid
from chimap.vision.vocabulary import Vocabulary, learn_vocabulary, reservoir

__all__ = [
    "ImageHistograms",
    "SIFT",
    "HOG",
    "PHOG",
    "ColourHistogram",
    "LBP",
    "Vocabulary",
    "learn_vocabulary",
    "reservoir",
    "HardCoding",
    "SoftCoding",
    "Pyramid",
    "WindowDetector",
    "Detection",
]

register(ImageHistograms, Vocabulary)
register(*(type(d) for d in DESCRIPTORS.values()), *(type(c) for c in CODINGS.values()))
