"""Features made of kernel values with some rows, the landmarks."""

from chimap.features.landmarks.landmark_features import GaussianFactor, LandmarkFeatures, UnitGaussianMap
from chimap.features.landmarks.nystroem import NystroemFeatures
from chimap.model_files import register

__all__ = ["LandmarkFeatures", "NystroemFeatures"]

register(LandmarkFeatures, NystroemFeatures, GaussianFactor, UnitGaussianMap)
