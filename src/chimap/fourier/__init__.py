"""Random features: a Gaussian kernel on mapped rows is an exponential histogram kernel."""

from chimap.fourier.features import FourierFeatures
from chimap.fourier.skewed import SkewedFourierFeatures
from chimap.fourier.widths import WidthFeatures

__all__ = ["FourierFeatures", "SkewedFourierFeatures", "WidthFeatures"]
