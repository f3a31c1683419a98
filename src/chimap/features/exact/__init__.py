"""Features with every training row as a landmark: values of the kernel itself with all of them."""

from chimap.features.exact.blocks import ExactBlocks
from chimap.features.exact.features import MOST_ROWS, ExactFeatures, with_mean_gamma
from chimap.features.exact.row_kernel import RowKernel
from chimap.model_files import register
from chimap.moments.kept_rows import KeptRows, Spread, exponentials, exponentials_below

__all__ = [
    "ExactBlocks",
    "ExactFeatures",
    "KeptRows",
    "MOST_ROWS",
    "RowKernel",
    "Spread",
    "exponentials",
    "exponentials_below",
    "with_mean_gamma",
]

register(ExactBlocks, ExactFeatures, KeptRows)
