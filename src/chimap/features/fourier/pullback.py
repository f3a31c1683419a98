"""Gradients through the waves of random features, back to their inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap import _arrays, _blas
from chimap._types import Rows
from chimap.features.fourier.base import BLOCK_ROWS, RandomFeatures, waves

Slopes = np.ndarray | Callable[[slice, np.ndarray], np.ndarray]
"""dL/dpsi: an array (n, D), or a function that returns it for a slice of the rows and their features."""


def pull_back_to_inputs(features: RandomFeatures, rows: Rows, slopes: Slopes) -> np.ndarray:
    """Return sum over checked rows of phi_i (E W')_i for the inputs i, with E = dL/d angles, (inputs,) float64.

    phi are the inputs of a row, W the scaled frequencies. The rows are worked on in blocks.
    """
    dtype, n, D = rows.dtype, rows.shape[0], features.n_components
    W = features.projection_.astype(dtype).matrix
    m, block = W.shape[1], min(BLOCK_ROWS, n)
    inputs, back = np.empty((2, block, W.shape[0]), dtype)
    angles, z_buffer = np.empty((block, m), dtype), np.empty((block, 2 * m), dtype)
    scale, offset = dtype.type(np.sqrt(2.0 / D)), features.offset_.astype(dtype)
    total, no_shift = np.zeros(W.shape[0]), np.zeros(2 * m, dtype)
    for first in range(0, n, BLOCK_ROWS):
        part = slice(first, min(n, first + BLOCK_ROWS))
        size = part.stop - first
        u, a, z = inputs[:size], angles[:size], z_buffer[:size]
        projected = features._inputs(_arrays.take_rows(rows, part), u)
        if _arrays.is_sparse(projected):
            projected.toarray(out=u)
        _blas.multiply(u, W, z[:, :m])
        waves(scale, offset, no_shift, z)
        G = slopes(part, z[:, :D]) if callable(slopes) else slopes[part]
        # d cos = -sin for all angles; d sin = cos for angles whose sine is among the features
        np.multiply(z[:, m:], G[:, :m], out=a)
        np.negative(a, out=a)
        a[:, : D - m] += z[:, : D - m] * G[:, m:]
        _blas.multiply(a, W, back[:size], transpose=True)
        total += np.einsum("ij,ij->j", u, back[:size])
    return total
