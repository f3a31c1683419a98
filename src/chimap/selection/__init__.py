"""Rules that choose a setting (strength, components, candidates), and the result that all of them return."""

from chimap.selection.base import SelectionResult, fold_count
from chimap.selection.components import score_leading, score_principal
from chimap.selection.folds import choose_alpha, score_path
from chimap.selection.gcv import choose_by_gcv
from chimap.selection.learning_curve import LearningCurve

__all__ = [
    "LearningCurve",
    "SelectionResult",
    "choose_alpha",
    "choose_by_gcv",
    "fold_count",
    "score_leading",
    "score_path",
    "score_principal",
]
