"""Random features: a Gaussian kernel on mapped rows is an exponential histogram kernel."""

from chimap.fourier.features import FourierFeatures
from chimap.fourier.skewed import SkewedFourierFeatures

__all__ = ["FourierFeatures", "SkewedFourierFeatures"]
