"""Random features: a Gaussian kernel on mapped rows is an exponential histogram kernel."""

from chimap.fourier.features import FourierFeatures

__all__ = ["FourierFeatures"]
