"""How far the dot product of features is from the exact kernel, and the smallest error that is possible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh

from chimap import _arrays
from chimap._types import Rows
from chimap.features.additive.base import AdditiveMap
from chimap.kernels import AdditiveKernel, Kernel

_WORK = 4e9  # bins compared for the exact Gram matrix: some seconds
_MOST = 2000  # rows of the matrix, whose eigenvalues take some seconds
_VALUES = 1000  # single values that maps are compared on
_COLUMNS = 2048  # features that are dense float64 at the same time


class KernelError(NamedTuple):
    """Errors of features Psi against a kernel K.

    ``mean`` and ``worst`` are of |Psi(x).Psi(y) - K(x, y)| over pairs of different rows, in units of the mean of K(x,
    x). ``relative`` is the Frobenius norm of the error of the Gram matrix over that of the matrix.
    """

    mean: float
    worst: float
    relative: float


class GramOracle:
    """The exact Gram matrix of held-out rows, in float64, with its eigenvalues.

    Of all sets of n features, none has a smaller error in the Frobenius norm than the root of the sum of the squares of
    all eigenvalues but the n largest (Eckart and Young). For n >= rows that is zero.
    """

    def __init__(self, kernel: Kernel, rows: Rows):
        m = rows.shape[0]
        entries = max(1.0, rows.nnz / m if _arrays.is_sparse(rows) else float(rows.shape[1]))
        self.rows = _arrays.take_rows(rows, slice(min(m, _MOST, max(100, int(np.sqrt(_WORK / entries))))))
        self.gram = kernel(_arrays.as_rows(self.rows, np.float64))
        self._scale = float(np.diagonal(self.gram).mean()) or 1.0
        self._norm = float(np.linalg.norm(self.gram)) or 1.0
        self._tails = _tails(eigvalsh(self.gram))

    def error(self, Z: Rows) -> KernelError:
        """Return the error of features ``Z`` of ``rows``, dense or CSR."""
        difference = -self.gram
        # In dense blocks: a product of two sparse matrices that are not very sparse takes ten times as long.
        for first in range(0, Z.shape[1], _COLUMNS):
            block = _arrays.to_dense(Z[:, first : first + _COLUMNS]).astype(np.float64)
            difference += block @ block.T
        np.abs(difference, out=difference)
        relative = float(np.linalg.norm(difference)) / self._norm
        np.fill_diagonal(difference, 0)
        n_pairs = difference.size - difference.shape[0]
        return KernelError(
            float(difference.sum()) / n_pairs / self._scale, float(difference.max()) / self._scale, relative
        )

    def bound(self, n_features: int) -> float:
        """Return the smallest ``relative`` error that ``n_features`` features in all can have."""
        return float(self._tails[min(n_features, self._tails.size - 1)])


class ValueOracle:
    """The exact kernel of single values: non-zero entries drawn from all bins of held-out rows.

    A map that is the same in every bin is a map of these values. Of all maps with n terms, none has a smaller relative
    error in the Frobenius norm over pairs of values than the eigenvalues of the matrix of values give.
    """

    def __init__(self, kernel: AdditiveKernel, rows: Rows, seed: int = 0):
        values = np.abs(_arrays.nonzero_values(rows)).astype(np.float64)
        if values.size > _VALUES:
            values = np.random.default_rng(seed).choice(values, _VALUES, replace=False)
        self.values = values if values.size else np.ones(1)
        self.gram = kernel(self.values[:, None])
        self._tails = _tails(eigvalsh(self.gram))
        self._norm = float(np.linalg.norm(self.gram))

    def error(self, psi: AdditiveMap, n_bins: int) -> float | None:
        """Return the relative error of a fitted map; None if it differs between bins and is not a map of values."""
        first, last = (self._features(psi, n_bins, bin) for bin in (0, n_bins - 1))
        if not np.allclose(first, last, rtol=1e-9, atol=0):
            return None
        return float(np.linalg.norm(first @ first.T - self.gram)) / self._norm

    def bound(self, n_terms: int) -> float:
        """Return the smallest relative error that ``n_terms`` terms can have."""
        return float(self._tails[min(n_terms, self._tails.size - 1)])

    def _features(self, psi: AdditiveMap, n_bins: int, bin: int) -> np.ndarray:
        """Return Psi of the values as entries of one bin, (values, terms)."""
        m = self.values.size
        places = np.full(m, bin, np.int32)
        rows = sp.csr_matrix((self.values, places, np.arange(m + 1, dtype=np.int32)), shape=(m, n_bins))
        return _arrays.to_dense(psi.transform(rows)[:, bin::n_bins])


def _tails(eigenvalues: np.ndarray) -> np.ndarray:
    """Return the root of the share of the squares beyond the n largest, n = 0 .. rows; summed from the smallest on."""
    squares = np.sort(np.square(eigenvalues))
    sums = np.concatenate([[0.0], np.cumsum(squares)])
    return np.sqrt(sums / (sums[-1] or 1.0))[::-1]
