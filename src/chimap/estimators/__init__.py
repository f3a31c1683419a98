"""Estimators that follow scikit-learn's conventions."""

from chimap.estimators.compiled import CompiledClassifier, CompiledRegressor
from chimap.estimators.from_moments import MomentsGroupLasso, MomentsLasso, MomentsRidge, MomentsRidgeClassifier
from chimap.estimators.histogram import HistogramClassifier, HistogramRegressor
from chimap.estimators.kernel_machine import KernelClassifier, with_features
from chimap.features.families import gather_features
from chimap.model_files.model_file import load, register, save

__all__ = [
    "CompiledClassifier",
    "CompiledRegressor",
    "HistogramClassifier",
    "HistogramRegressor",
    "KernelClassifier",
    "MomentsGroupLasso",
    "MomentsLasso",
    "MomentsRidge",
    "MomentsRidgeClassifier",
    "load",
    "save",
]

register(HistogramClassifier, HistogramRegressor, migrate=gather_features)
register(CompiledClassifier, CompiledRegressor)
register(KernelClassifier, migrate=with_features)
register(MomentsRidge, MomentsRidgeClassifier, MomentsLasso, MomentsGroupLasso)
