"""Random features: a Gaussian kernel on mapped rows is an exponential histogram kernel."""

from chimap.features.fourier.features import FourierFeatures
from chimap.features.fourier.skewed import SkewedFourierFeatures
from chimap.features.fourier.widths import WidthFeatures

__all__ = ["FourierFeatures", "SkewedFourierFeatures", "WidthFeatures"]
