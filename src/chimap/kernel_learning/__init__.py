"""Kernels that are learned with the weights of the model: their widths, and the weights of several."""

from chimap.kernel_learning.estimators import (
    FourierKernelLearner,
    FourierKernelRegressor,
    MultipleKernelLearner,
    MultipleKernelRegressor,
)
from chimap.model_files.model_file import register

__all__ = ["FourierKernelLearner", "FourierKernelRegressor", "MultipleKernelLearner", "MultipleKernelRegressor"]

register(FourierKernelLearner, FourierKernelRegressor, MultipleKernelLearner, MultipleKernelRegressor)
