"""Estimators that follow scikit-learn's conventions."""

from chimap.estimators.compiled import CompiledClassifier, CompiledRegressor
from chimap.estimators.exact_kernel import ExactKernelLearner, ExactKernelRegressor
from chimap.estimators.histogram import HistogramClassifier
from chimap.estimators.histogram_regressor import HistogramRegressor
from chimap.estimators.kernel_learning import FourierKernelLearner, FourierKernelRegressor
from chimap.estimators.kernel_machine import KernelClassifier
from chimap.estimators.lookup import LookupClassifier
from chimap.estimators.multiple_kernels import MultipleKernelLearner, MultipleKernelRegressor
from chimap.estimators.online import OnlineIntersectionClassifier
from chimap.estimators.ridge_from_moments import MomentsRidge, MomentsRidgeClassifier
from chimap.estimators.sparse_from_moments import MomentsGroupLasso, MomentsLasso
from chimap.model_files.model_file import load, register, save

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
    "save",
]

register(HistogramClassifier, HistogramRegressor, CompiledClassifier, CompiledRegressor)
register(ExactKernelLearner, ExactKernelRegressor, KernelClassifier, LookupClassifier)
register(MomentsRidge, MomentsRidgeClassifier, MomentsLasso, MomentsGroupLasso, OnlineIntersectionClassifier)
register(FourierKernelLearner, FourierKernelRegressor, MultipleKernelLearner, MultipleKernelRegressor)
