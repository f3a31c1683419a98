"""Every training row a landmark: values of the kernel itself with all of them."""

from chimap.features.exact.features import ExactFeatures
from chimap.features.exact.products import KeptRows

__all__ = ["ExactFeatures", "KeptRows"]
