"""Why a model says what it says: contributions of bins, bins that matter, rows that a prediction rests on."""

from chimap.explain.contributions import Explanation, contributions_of
from chimap.explain.importance import gradient_importance, permutation_importance
from chimap.explain.neighbours import Neighbours, nearest_landmarks

__all__ = [
    "Explanation",
    "Neighbours",
    "contributions_of",
    "gradient_importance",
    "nearest_landmarks",
    "permutation_importance",
]
