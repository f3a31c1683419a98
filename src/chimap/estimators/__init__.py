"""Estimators that follow scikit-learn's conventions."""

from chimap.estimators.histogram import HistogramClassifier, HistogramRegressor
from chimap.model_files.model_file import load, register, register_addresses, save

__all__ = ["HistogramClassifier", "HistogramRegressor", "load", "save"]

register(HistogramClassifier, HistogramRegressor)
register_addresses(
    {
        "CompiledClassifier": "chimap.estimators.compiled:CompiledClassifier",
        "CompiledRegressor": "chimap.estimators.compiled:CompiledRegressor",
        "LineTables": "chimap.tables:LineTables",
    }
)
