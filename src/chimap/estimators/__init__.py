"""Estimators that follow scikit-learn's conventions."""

from chimap.estimators.compiled import CompiledClassifier, CompiledRegressor
from chimap.estimators.from_moments import MomentsGroupLasso, MomentsLasso, MomentsRidge, MomentsRidgeClassifier
from chimap.estimators.histogram import HistogramClassifier, HistogramRegressor
from chimap.model_files.model_file import load, register, save

__all__ = [
    "CompiledClassifier",
    "CompiledRegressor",
    "HistogramClassifier",
    "HistogramRegressor",
    "MomentsGroupLasso",
    "MomentsLasso",
    "MomentsRidge",
    "MomentsRidgeClassifier",
    "load",
    "save",
]

register(HistogramClassifier, HistogramRegressor)
register(CompiledClassifier, CompiledRegressor)
register(MomentsRidge, MomentsRidgeClassifier, MomentsLasso, MomentsGroupLasso)
