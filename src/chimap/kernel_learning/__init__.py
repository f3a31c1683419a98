"""Kernels that are learned with the weights of the model: their widths, and the weights of several."""

from chimap.kernel_learning.estimators import (
    FourierKernelLearner,
    FourierKernelRegressor,
    MultipleKernelLearner,
    MultipleKernelRegressor,
)
from chimap.kernel_learning.exact_kernel import ExactKernelLearner, ExactKernelRegressor
from chimap.model_files.model_file import register

__all__ = [
    "ExactKernelLearner",
    "ExactKernelRegressor",
    "FourierKernelLearner",
    "FourierKernelRegressor",
    "MultipleKernelLearner",
    "MultipleKernelRegressor",
]

register(ExactKernelLearner, ExactKernelRegressor)
register(FourierKernelLearner, FourierKernelRegressor, MultipleKernelLearner, MultipleKernelRegressor)
