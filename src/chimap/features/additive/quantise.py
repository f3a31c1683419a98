"""Quantisation of values on a line: the best anchors of a sample, and rates and borders that assign a value to one."""

from __future__ import annotations

import numpy as np

from chimap import _loops, _threads

_SAMPLE_VALUES = 2**20  # quantiles that k-means uses, of all bins together


def kmeans_anchors(values: np.ndarray, starts: np.ndarray, n_anchors: int) -> np.ndarray:
    """Return anchors (bins, n_anchors) for the positive values of each bin: 0, then the centres of the best k-means.

    The best k-means is the one with a centre held at 0. The values of bin i are at starts[i]:starts[i + 1]; anchors are
    infinite where a bin has fewer distinct values. (ckwrap and ckmeans-1d-dp wrap the same dynamic programme, but
    neither holds a centre at 0.)
    """
    n_bins = starts.size - 1
    anchors = np.full((n_bins, n_anchors), np.inf)
    anchors[:, 0] = 0
    limit = max(4 * n_anchors, _SAMPLE_VALUES // max(1, n_bins))

    def fill(part: slice) -> None:
        for i in range(part.start, part.stop):
            atoms, counts = np.unique(
                _quantiles(values[starts[i] : starts[i + 1]], limit), return_counts=True
            )
            if atoms.size >= n_anchors:
                scale = atoms[-1]  # the squares of scaled values neither overflow nor underflow
                atoms = scale * _loops.kmeans_on_line(atoms / scale, counts.astype(np.float64), n_anchors)
            anchors[i, 1 : 1 + atoms.size] = atoms

    _threads.over_rows(n_bins, values.size // max(1, n_bins) * n_anchors, fill)
    return anchors


def kmeans_bytes(n_values: int, n_rows: int, n_anchors: int) -> int:
    """Return the bytes that ``kmeans_anchors`` takes beside the values of n_rows rows, on all threads.

    Each thread holds the sorted values of a bin and, of those it uses, their counts and sums in a dozen numbers and the
    best borders for any number of anchors.
    """
    n_bins = max(
        1, n_values // max(1, 2 * n_rows)
    )  # a lower bound: an entry of CSR counts as up to two values
    limit = min(n_rows, max(4 * n_anchors, _SAMPLE_VALUES // n_bins))
    return _threads.count() * (8 * n_rows + (12 * 8 + 4 * n_anchors) * limit)


def _quantiles(values: np.ndarray, limit: int) -> np.ndarray:
    """Return the values if there are at most ``limit``, else about that many of them by rank, with the largest."""
    if values.size <= limit:
        return values
    return np.sort(values)[::-1][:: -(-values.size // limit)]


def steps_per_unit(scale: np.ndarray, n_steps: int) -> np.ndarray:
    """Return n_steps / scale, or 0 where the scale is 0; finite, so that its product with 0 is 0."""
    with np.errstate(over="ignore"):
        rates = n_steps / np.where(scale > 0, scale, np.inf)
    return np.minimum(rates, np.finfo(np.float64).max)


def rounded_down(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the largest numbers of the dtype that are not above float64 values, so that x > value stays the same."""
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    above = rounded > values
    rounded[above] = np.nextafter(rounded[above], dtype.type(-np.inf))
    return rounded
