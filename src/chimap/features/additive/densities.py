"""How often values occur: counts over all entries of rows, and the histograms and densities that maps are fitted on."""

from __future__ import annotations

import numpy as np

from chimap import _arrays, _loops
from chimap._types import Rows

MOST_ALIKE = 2**14  # most entries that are kept exactly, and about how many cells stand for more of them
VALUE_BYTES = 128  # memory for each of them while they are sorted, counted and assigned to bins


def value_counts(rows: Rows, lowest: float, highest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the magnitudes (m,) of all non-zero entries, ascending, and how often each occurs (m,), both float64.

    If there are more than ``MOST_ALIKE`` entries, those in one of about as many cells of the binary representation
    (2^-10 of a value wide, if they range over 16 doublings) are represented by their mean. The smallest and the largest
    are exact, and so is a value that is alone in its cell. Every entry counts: a sample of a heavy tail would miss what
    carries most of the kernel.

    ``lowest`` and ``highest`` are the smallest and the largest of these magnitudes.
    """
    stored = _arrays.stored_values(rows)
    if np.count_nonzero(stored) <= MOST_ALIKE:
        return counted(np.abs(_arrays.nonzero_values(rows)))
    first, last = np.array([lowest, highest]).view(np.int64).tolist()
    drop = max(0, (last - first).bit_length() - MOST_ALIKE.bit_length() + 1)  # low bits that a cell ignores
    first >>= drop
    counts = np.zeros((last >> drop) - first + 3)  # the smallest and the largest value have their own cells
    values, excess = np.empty_like(counts), np.zeros_like(counts)
    for part in _arrays.pieces(stored):
        magnitudes = np.abs(part, dtype=np.float64)
        bits = magnitudes.view(np.int64)
        _loops.count_cells(magnitudes, bits, drop, first, lowest, highest, counts, values, excess)
    filled = counts > 0
    return values[filled] + excess[filled] / counts[filled], counts[filled]


def counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values among positive ones, ascending, and how often each occurs, both float64."""
    different, counts = np.unique(values.astype(np.float64, copy=False), return_counts=True)
    return different, counts.astype(np.float64)


def log_histogram(values: np.ndarray, counts: np.ndarray, n_bins: int = 256) -> tuple[np.ndarray, np.ndarray]:
    """Return centres and counts (both float64, at most n_bins) of positive values in logarithmically spaced bins.

    The values are distinct and ascend. If there are no more than n_bins of them they are returned unchanged (counts,
    quantised pixels). A centre is the mean of the values in its bin; empty bins are left out.
    """
    return _histogram(values, counts, n_bins, by_range_alone=True)


def density(values: np.ndarray, counts: np.ndarray, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most n_points points and counts, like ``log_histogram`` but by range, rows and mass at once.

    Logarithmic bins alone are too coarse where the values crowd together (the white pixels of a scan), and bins of
    equal count are too coarse where values are few but large, although those carry most of the kernel. So the position
    of a value is the mean of its positions on the three scales.
    """
    return _histogram(values, counts, n_points, by_range_alone=False)


def _histogram(
    values: np.ndarray, counts: np.ndarray, n_bins: int, *, by_range_alone: bool
) -> tuple[np.ndarray, np.ndarray]:
    if values.size == 0:
        return np.ones(1), np.ones(1)
    if values.size <= n_bins:
        return values, counts
    logs, masses = np.log(values), counts * values
    places = (logs - logs[0]) / (logs[-1] - logs[0])
    if not by_range_alone:
        places = (places + _shares_below(counts) + _shares_below(masses)) / 3
    bins = np.minimum((places * n_bins).astype(np.intp), n_bins - 1)
    counts, sums = (np.bincount(bins, weights, n_bins) for weights in (counts, masses))
    filled = counts > 0
    return sums[filled] / counts[filled], counts[filled]


def _shares_below(weights: np.ndarray) -> np.ndarray:
    """Return the share of the weights below the middle of each value, from 0 at the first to 1 at the last."""
    below = np.cumsum(weights) - weights / 2
    return np.asarray((below - below[0]) / (below[-1] - below[0]))
