"""Moments: sums over rows that merge, subtract and are all that a quadratic loss needs."""

from chimap.moments.covariance import Moments
from chimap.moments.folds import FoldMoments, fold_of_rows
from chimap.moments.pca import PCA
from chimap.moments.symmetric import Symmetric

__all__ = ["FoldMoments", "Moments", "PCA", "Symmetric", "fold_of_rows"]
