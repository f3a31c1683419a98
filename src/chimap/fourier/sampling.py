"""Frequencies of a Gaussian kernel: independent, or orthogonal in blocks.

``CATALOGUE`` maps the word of the ``sampling`` parameter to its function. Each returns (n_inputs, n_frequencies)
whose columns have the distribution N(0, I): scaled by sqrt(2 gamma) they are the frequencies of exp(-gamma |x-y|^2).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, qr
from scipy.linalg.blas import dtrsm, strsm

_BLOCK = 2048  # columns orthogonalised together; beyond that the cost grows with the square for little gain


def iid(n_inputs: int, n_frequencies: int, rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Entries independent N(0, 1). Source: Rahimi and Recht, Random features for large-scale kernel machines."""
    return rng.standard_normal((n_inputs, n_frequencies), dtype=dtype)


def orthogonal(n_inputs: int, n_frequencies: int, rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Columns orthogonal within blocks of at most n_inputs, with the lengths of independent Gaussian columns.

    Unbiased for the Gaussian kernel and of smaller variance than ``iid``. Source: Yu, Suresh, Choromanski,
    Holtmann-Rice and Kumar, Orthogonal random features.
    """
    out = np.empty((n_inputs, n_frequencies), dtype=dtype)
    for first in range(0, n_frequencies, min(n_inputs, _BLOCK)):
        width = min(n_inputs, _BLOCK, n_frequencies - first)
        directions = _orthonormal(rng.standard_normal((n_inputs, width), dtype=dtype))
        lengths = np.sqrt(rng.chisquare(n_inputs, size=width))
        np.multiply(directions, lengths, out=out[:, first : first + width], casting="same_kind")
    return out


def _orthonormal(G: np.ndarray) -> np.ndarray:
    """Q of G = QR with a positive diagonal of R, which makes the columns uniform; G is overwritten or shared."""
    n, width = G.shape
    if n >= 2 * width:
        # A tall Gaussian matrix is well conditioned (below 6), so Q = G R^-1 with R'R = G'G loses no digits, and
        # it runs at the rate of GEMM where Householder reflections do not.
        triangle = cholesky((G.T @ G).astype(np.float64), check_finite=False)
        trsm = strsm if G.dtype == np.float32 else dtrsm
        # in Fortran's eyes: R'^-1 G' from the left
        return trsm(1.0, triangle.T.astype(G.dtype), G.T, lower=1, overwrite_b=1).T
    Q, triangle = qr(G, mode="economic", overwrite_a=True, check_finite=False)
    Q *= np.where(np.diag(triangle) < 0, -1, 1).astype(G.dtype)
    return Q


CATALOGUE = {"iid": iid, "orthogonal": orthogonal}
