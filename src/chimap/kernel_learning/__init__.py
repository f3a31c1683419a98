"""Kernels that are learned with the weights of the model: their widths, and the weights of several."""

from chimap.kernel_learning.exact_kernel import ExactKernelLearner, ExactKernelRegressor
from chimap.kernel_learning.kernel_learning import FourierKernelLearner, FourierKernelRegressor
from chimap.kernel_learning.multiple_kernels import MultipleKernelLearner, MultipleKernelRegressor
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
