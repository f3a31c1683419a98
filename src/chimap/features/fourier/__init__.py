"""Random features: exponential histogram kernels as Gaussian kernels of mapped rows."""

from chimap.features.fourier.features import FourierFeatures
from chimap.features.fourier.projection import Hadamard, Matrix
from chimap.features.fourier.skewed import SkewedFourierFeatures
from chimap.features.fourier.widths import WidthFeatures
from chimap.model_files import register

__all__ = ["FourierFeatures", "SkewedFourierFeatures", "WidthFeatures"]

register(FourierFeatures, SkewedFourierFeatures, Matrix, Hadamard)
