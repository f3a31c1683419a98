"""Frequencies of a Gaussian kernel: independent, or orthogonal in blocks.

``CATALOGUE`` maps the word of the ``sampling`` parameter to its function. Each returns (n_inputs, n_frequencies)
whose columns have the distribution N(0, I): scaled by sqrt(2 gamma) they are the frequencies of exp(-gamma |x-y|^2).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

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
        directions, triangle = qr(
            rng.standard_normal((n_inputs, width), dtype=dtype), mode="economic", overwrite_a=True,
            check_finite=False,
        )  # fmt: skip
        # LAPACK fixes the signs; uniform directions need them as the Gaussian matrix had them
        directions *= np.where(np.diag(triangle) < 0, -1, 1)
        out[:, first : first + width] = directions * np.sqrt(rng.chisquare(n_inputs, size=width))
    return out


CATALOGUE = {"iid": iid, "orthogonal": orthogonal}
