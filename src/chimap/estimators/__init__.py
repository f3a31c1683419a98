"""Estimators that follow scikit-learn's conventions."""

from chimap.estimators.compiled import CompiledClassifier, CompiledRegressor
from chimap.estimators.histogram import HistogramClassifier
from chimap.estimators.histogram_regressor import HistogramRegressor
from chimap.estimators.kernel_machine import KernelClassifier
from chimap.estimators.lookup import LookupClassifier
from chimap.estimators.online import OnlineIntersectionClassifier
from chimap.estimators.ridge_from_moments import MomentsRidge, MomentsRidgeClassifier
from chimap.estimators.sparse_from_moments import MomentsGroupLasso, MomentsLasso
from chimap.model_files.model_file import load, register, save

__all__ = [
    "CompiledClassifier",
    "CompiledRegressor",
    "HistogramClassifier",
    "HistogramRegressor",
    "KernelClassifier",
    "LookupClassifier",
    "MomentsGroupLasso",
    "MomentsLasso",
    "MomentsRidge",
    "MomentsRidgeClassifier",
    "OnlineIntersectionClassifier",
    "load",
    "save",
]

register(HistogramClassifier, HistogramRegressor, CompiledClassifier, CompiledRegressor)
register(KernelClassifier, LookupClassifier)
register(MomentsRidge, MomentsRidgeClassifier, MomentsLasso, MomentsGroupLasso, OnlineIntersectionClassifier)
