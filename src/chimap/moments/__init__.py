"""Moments: sums over rows that merge and subtract, and contain all that a quadratic loss needs."""

from chimap.moments.covariance import Moments, provisional_mean
from chimap.moments.folds import DealtFolds, DoublingParts, FoldMoments, GivenFolds, RowFolds, fold_of_rows
from chimap.moments.pca import PCA
from chimap.moments.product import BatchProduct
from chimap.moments.symmetric import Symmetric
from chimap.moments.targets import OneVersusAll, Targets, WeightedTargets, split, weighted
from chimap.moments.weights import RowWeights, as_counts, of_entries, of_rows, rows_by_weight, unit_of

__all__ = [
    "FoldMoments",
    "Moments",
    "OneVersusAll",
    "PCA",
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
