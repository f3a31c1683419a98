"""Estimators in scikit-learn's manner."""

from chimap.learning.histogram import HistogramClassifier, HistogramRegressor
from chimap.learning.lookup import LookupClassifier
from chimap.learning.model_file import load

__all__ = ["HistogramClassifier", "HistogramRegressor", "LookupClassifier", "load"]
