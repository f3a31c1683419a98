"""How much work a separate fit of a race was, by the operations that it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._types import Rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_EACH = 0.07  # seconds of a fit that are not counted as operations

# Operations per second of two cores: on kernel matrices, on features and their sums, and entries that LIBLINEAR visits.
# The second rate covers what the estimate leaves out: landmarks or frequencies that are chosen, traces, refinement.
_ON_KERNELS, _ON_FEATURES, _VISITS = 5e10, 2.2e10, 6e8

# Passes of LIBLINEAR for a target at a strength: on features of landmarks and frequencies it converges more slowly.
_DENSE_PASSES, _SPARSE_PASSES = 19, 10
_READING = 3e-3  # seconds by which a pass over features in memory exceeds its products

# Entries of dense rows that take as long as an entry of sparse ones: in a kernel matrix, and in products with features
_SPARSE_IN_KERNEL, _SPARSE_IN_FEATURES = 20, 50


def work_of_fit(fitted: BaseEstimator, rows: Rows) -> float:
    """Return the estimated seconds of a fit of n rows on two cores: the same number on every machine.

    An exact machine with p bins, s strengths and g gammas takes 2 g n^2 p operations for kernel values and s n^3/3 for
    factors. Other machines with D features take 2 n p D for the features, n D^2 for their sums, and s D^3/3 for factors
    or 4 n D t for a pass over t targets. LIBLINEAR visits the entries of the features that are not zero.

    With the strength chosen by the default rule, the estimate is within a factor of about two of the time.

    Parameters
    ----------
    fitted : estimator
        The fitted estimator.
    rows : array or sparse matrix of shape (n, bins)
        The rows that it was fitted on.
    """
    # Folds share the strengths, but each takes a factor.
    n_scored = 1 if fitted.selection_ is None else max(np.shape(fitted.selection_.scores))
    if hasattr(fitted, "row_numbers_"):  # only exact machines number their rows
        return _EACH + _of_kernel_matrix(fitted, rows, n_scored) / _ON_KERNELS
    n, n_features = float(rows.shape[0]), float(fitted.features_._n_features_out)
    # A map that keeps zeros works bin by bin, which takes no time beside what follows.
    is_sparse = fitted.features_.keeps_zeros
    mapped = 0.0 if is_sparse else 2 * n * _bins(rows, _SPARSE_IN_FEATURES) * n_features
    outputs = n * n_features * fitted.coef_.size / fitted.coef_.shape[-1]
    if fitted.n_passes_ == 0:  # LIBLINEAR counts none
        entries = _SPARSE_PASSES * _density(rows) if is_sparse else _DENSE_PASSES
        return _EACH + mapped / _ON_FEATURES + (n_scored + 1) * entries * outputs / _VISITS
    sums = n * n_features**2 + n_scored * n_features**3 / 3
    passes = fitted.n_passes_
    return _EACH + (mapped + sums + 4 * passes * outputs) / _ON_FEATURES + _READING * passes


def _of_kernel_matrix(fitted: BaseEstimator, rows: Rows, n_scored: int) -> float:
    """Return the operations of an exact machine."""
    n, settings = float(rows.shape[0]), {} if fitted.selection_ is None else fitted.selection_.settings
    n_gammas = max(1, np.unique(settings.get("gamma", [])).size)
    return 2 * n_gammas * n**2 * _bins(rows, _SPARSE_IN_KERNEL) + n_scored * n**3 / 3


def _bins(rows: Rows, sparse_entry: float) -> float:
    """Return how many bins of dense rows take as long as those of ``rows``."""
    if not _arrays.is_sparse(rows):
        return float(rows.shape[1])
    return min(float(rows.shape[1]), sparse_entry * rows.nnz / rows.shape[0])


def _density(rows: Rows) -> float:
    """Return the share of bins that are not 0."""
    return float(np.count_nonzero(_arrays.stored_values(rows)) / (rows.shape[0] * rows.shape[1]))
