"""Estimators that follow scikit-learn's conventions."""

from chimap.estimators.compiled import CompiledClassifier, CompiledRegressor
from chimap.estimators.histogram import HistogramClassifier, HistogramRegressor
from chimap.model_files.model_file import load, register, save

__all__ = ["CompiledClassifier", "CompiledRegressor", "HistogramClassifier", "HistogramRegressor", "load", "save"]

register(HistogramClassifier, HistogramRegressor)
register(CompiledClassifier, CompiledRegressor)
