"""Every training row a landmark: values of the kernel itself with all of them."""

from chimap.features.exact.features import ExactFeatures, has_map, with_mean_gamma
from chimap.features.exact.products import KeptRows, exponentials, exponentials_below
from chimap.model_files import register

__all__ = ["ExactFeatures", "KeptRows", "exponentials", "exponentials_below", "has_map", "with_mean_gamma"]

register(ExactFeatures, KeptRows)
