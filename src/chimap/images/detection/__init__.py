"""Models that scan images: scores of windows, detections, and rates of missed objects."""

from chimap.images.detection.curve import MissRates, matched
from chimap.images.detection.detector import WindowDetector
from chimap.images.detection.evaluation import scene_miss_rates, window_miss_rates
from chimap.images.detection.mining import hard_negatives, mined_detector
from chimap.images.detection.overlap import Detection, best_of, shared_areas

__all__ = [
    "Detection",
    "MissRates",
    "WindowDetector",
    "best_of",
    "hard_negatives",
    "matched",
    "mined_detector",
    "scene_miss_rates",
    "shared_areas",
    "window_miss_rates",
]
