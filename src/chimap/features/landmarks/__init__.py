"""Features of a kernel from its values with some rows, the landmarks."""

from chimap.features.landmarks.landmark_features import LandmarkFeatures
from chimap.features.landmarks.nystroem import NystroemFeatures

__all__ = ["LandmarkFeatures", "NystroemFeatures"]
