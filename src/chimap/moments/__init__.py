"""Moments: sums over rows that merge and subtract, and contain all that a quadratic loss needs."""

from chimap.moments.folds import DealtFolds, DoublingParts, FoldMoments, GivenFolds, RowFolds, fold_of_rows
from chimap.moments.moments import Moments, provisional_mean
from chimap.moments.symmetric import BatchProduct, Symmetric
from chimap.moments.targets import (
    OneVersusAll,
    RowWeights,
    Targets,
    WeightedTargets,
    as_counts,
    of_entries,
    of_rows,
    rows_by_weight,
    split,
    unit_of,
    weighted,
)

__all__ = [
    "FoldMoments",
    "Moments",
    "OneVersusAll",
    "BatchProduct",
    "Symmetric",
    "Targets",
    "fold_of_rows",
    "provisional_mean",
    "DealtFolds",
    "DoublingParts",
    "GivenFolds",
    "RowFolds",
    "RowWeights",
    "as_counts",
    "of_entries",
    "of_rows",
    "WeightedTargets",
    "rows_by_weight",
    "unit_of",
    "split",
    "weighted",
]
