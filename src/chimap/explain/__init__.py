"""Explanations of predictions: contributions of bins, important bins, and the landmarks behind a prediction."""

from chimap.explain.background import RowStatistics, rows_like
from chimap.explain.contributions import Explanation, contributions_of
from chimap.explain.effects import BinEffect
from chimap.explain.importance import Importance, gradient_importance, permutation_importance, variance_importance
from chimap.explain.neighbours import Neighbours, nearest_landmarks
from chimap.explain.removal import removal_importance

__all__ = [
    "RowStatistics",
    "BinEffect",
    "Explanation",
    "Importance",
    "Neighbours",
    "contributions_of",
    "gradient_importance",
    "nearest_landmarks",
    "permutation_importance",
    "removal_importance",
    "rows_like",
    "variance_importance",
]
