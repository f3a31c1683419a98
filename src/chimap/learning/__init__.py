"""Estimators in scikit-learn's manner."""

from chimap.learning.compiled import CompiledClassifier, CompiledRegressor
from chimap.learning.exact_kernel import ExactKernelLearner, ExactKernelRegressor
from chimap.learning.histogram import HistogramClassifier, HistogramRegressor
from chimap.learning.kernel_learning import FourierKernelLearner, FourierKernelRegressor
from chimap.learning.kernel_machine import KernelClassifier
from chimap.learning.lookup import LookupClassifier
from chimap.learning.model_file import load, register
from chimap.learning.moments_models import MomentsRidge, MomentsRidgeClassifier
from chimap.learning.multiple_kernels import MultipleKernelLearner, MultipleKernelRegressor
from chimap.learning.online import OnlineIntersectionClassifier
from chimap.learning.sparse_models import MomentsGroupLasso, MomentsLasso

__all__ = [
    "ExactKernelLearner",
    "ExactKernelRegressor",
    "CompiledClassifier",
    "CompiledRegressor",
    "FourierKernelLearner",
    "FourierKernelRegressor",
    "HistogramClassifier",
    "HistogramRegressor",
    "KernelClassifier",
    "LookupClassifier",
    "MomentsGroupLasso",
    "MomentsLasso",
    "MomentsRidge",
    "MomentsRidgeClassifier",
    "MultipleKernelLearner",
    "MultipleKernelRegressor",
    "OnlineIntersectionClassifier",
    "load",
]

register(HistogramClassifier, HistogramRegressor, CompiledClassifier, CompiledRegressor)
register(FourierKernelLearner, FourierKernelRegressor, MultipleKernelLearner, MultipleKernelRegressor)
