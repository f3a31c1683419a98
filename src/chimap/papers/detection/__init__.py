"""Models that scan images: scores of windows, detections, and rates of missed objects."""

from chimap.papers.detection.detector import Detection, WindowDetector, best_of, shared_areas
from chimap.papers.detection.mining import hard_negatives, mined_detector
from chimap.papers.detection.miss_rates import MissRates, matched, scene_miss_rates, window_miss_rates

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
