"""Values on a line: the best anchors of a sample, and rates and borders that put a value among them."""

from __future__ import annotations

import numpy as np

from chimap import _loops, _threads

_SAMPLE_VALUES = 2**20  # of all bins together, by rank, that k-means looks at


def kmeans_anchors(values: np.ndarray, starts: np.ndarray, n_anchors: int) -> np.ndarray:
    """Anchors (bins, n_anchors) of the positive values of each bin: 0, then the other centres of its best k-means.

    values of bin i at starts[i]:starts[i + 1]; infinite where a bin has fewer distinct values. (ckwrap and
    ckmeans-1d-dp wrap the same dynamic programme, but neither holds a centre at 0.)
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
                scale = atoms[-1]  # squares of scaled values neither overflow nor vanish
                atoms = scale * _loops.kmeans_on_line(atoms / scale, counts.astype(np.float64), n_anchors)
            anchors[i, 1 : 1 + atoms.size] = atoms

    _threads.over_rows(n_bins, values.size // max(1, n_bins) * n_anchors, fill)
    return anchors


def kmeans_bytes(n_values: int, n_rows: int, n_anchors: int) -> int:
    """What ``kmeans_anchors`` takes beside the values of n_rows rows, on all threads.

    Each has the values of a bin in order, and those that it looks at: with their counts and sums in a dozen numbers,
    and the best borders of any number of anchors.
    """
    n_bins = max(1, n_values // max(1, 2 * n_rows))  # at least: an entry of CSR counts for up to two values
    limit = min(n_rows, max(4 * n_anchors, _SAMPLE_VALUES // n_bins))
    return _threads.count() * (8 * n_rows + (12 * 8 + 4 * n_anchors) * limit)


def _quantiles(values: np.ndarray, limit: int) -> np.ndarray:
    """The values if they are no more than ``limit``, or else about so many of them by rank, the largest included."""
    if values.size <= limit:
        return values
    return np.sort(values)[::-1][:: -(-values.size // limit)]


def steps_per_unit(scale: np.ndarray, n_steps: int) -> np.ndarray:
    """n_steps / scale, 0 where the scale is 0; finite, so that its product with 0 is 0."""
    with np.errstate(over="ignore"):
        rates = n_steps / np.where(scale > 0, scale, np.inf)
    return np.minimum(rates, np.finfo(np.float64).max)


def rounded_down(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The largest numbers of the dtype that are not above float64 values: x > value means the same in both."""
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    above = rounded > values
    rounded[above] = np.nextafter(rounded[above], dtype.type(-np.inf))
    return rounded
