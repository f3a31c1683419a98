"""Frequencies: independent, orthogonal in blocks, structured, or quasi-Monte-Carlo.

``CATALOGUE`` maps values of the parameter ``sampling`` to functions. Each takes (n_inputs, n_frequencies, rng, dtype)
and returns a projection onto frequencies with the distribution N(0, I): scaled by sqrt(2 gamma) they are those of
exp(-gamma |x-y|^2). The functions in ``BY_QUANTILE`` serve other distributions too and take their quantile: orthogonal
directions with independent lengths need a distribution that is rotationally symmetric, and only the Gaussian is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky, qr
from scipy.linalg.blas import dtrsm, strsm
from scipy.special import ndtri

from chimap._errors import InputError
from chimap._messages import Message
from chimap.features.fourier.projection import Hadamard, Matrix, Projection


def gaussian(u: np.ndarray) -> np.ndarray:
    """Return the quantiles of N(0, 1).

    >>> round(float(gaussian(np.array(0.01))), 6)
    -2.326348
    """
    return ndtri(u)


def sech(u: np.ndarray) -> np.ndarray:
    """Return the quantiles (2/pi) ln tan(pi u / 2) of the density sech(pi w / 2) / 2, the transform of sech(t).

    >>> round(float(sech(np.array(0.3))), 6)
    -0.429257
    """
    # Taking the tangent on the smaller side keeps the digits of u near 1.
    smaller = np.minimum(u, 1 - u)
    return np.where(u < 0.5, 1.0, -1.0) * (2 / np.pi) * np.log(np.tan(0.5 * np.pi * smaller))


def cauchy(u: np.ndarray) -> np.ndarray:
    """Return the quantiles tan(pi (u - 1/2)) of the density 1 / (pi (1 + w^2)), the transform of exp(-|t|).

    >>> round(float(cauchy(np.array(0.3))), 6)
    -0.726543
    """
    return np.tan(np.pi * (np.asarray(u) - 0.5))


Quantile = Callable[[np.ndarray], np.ndarray]
_BLOCK = 2048  # columns orthogonalised together; beyond, the cost grows with the square for little gain
_SMALL_BLOCK = 64  # inputs; up to it blocks are so many and small that calls would take longer than the work
_FEW_INPUTS = 16  # up to it a matrix is as cheap as transforms, which then reach too few directions to be uniform
_SOBOL_INPUTS = 21201  # dimensions for which scipy's Sobol sequence has direction numbers


def iid(
    n_inputs: int, n_frequencies: int, rng: np.random.Generator, dtype: np.dtype, quantile: Quantile = gaussian
) -> Matrix:
    """Draw independent entries. Source: Rahimi and Recht, Random features for large-scale kernel machines."""
    if quantile is gaussian:
        return Matrix(rng.standard_normal((n_inputs, n_frequencies), dtype=dtype))
    return Matrix(quantile(_inside(rng.random((n_inputs, n_frequencies)))).astype(dtype))


def qmc(
    n_inputs: int, n_frequencies: int, rng: np.random.Generator, dtype: np.dtype, quantile: Quantile = gaussian
) -> Matrix:
    """Take frequencies at the quantiles of a scrambled Sobol sequence, with a point for each frequency.

    The dimensions of a point are the inputs. The estimate is unbiased, and the points are more even than independent
    ones where the inputs are few (tens); with hundreds of inputs an affordable number of points fills so little of the
    cube that nothing is gained.

    Source: Avron, Sindhwani, Yang and Mahoney, Quasi-Monte Carlo feature maps for shift-invariant kernels.
    """
    from scipy.stats.qmc import Sobol  # importing scipy.stats takes longer than importing this whole package

    if n_inputs > _SOBOL_INPUTS:
        raise InputError(
            Message(
                "{sampling='qmc'} takes at most {} inputs (bins times terms); got {}. Use 'orthogonal' or "
                "'structured'.",
                _SOBOL_INPUTS,
                n_inputs,
            )
        )
    points = Sobol(n_inputs, scramble=True, rng=rng).random_base2(max(0, int(n_frequencies - 1).bit_length()))
    return Matrix(np.ascontiguousarray(quantile(_inside(points[:n_frequencies])).T.astype(dtype)))


def orthogonal(n_inputs: int, n_frequencies: int, rng: np.random.Generator, dtype: np.dtype) -> Matrix:
    """Draw columns that are orthogonal within blocks of at most n_inputs, as long as independent Gaussian columns.

    They are unbiased for the Gaussian kernel, with a smaller variance than ``iid``.

    Source: Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, Orthogonal random features.
    """
    if n_inputs <= _SMALL_BLOCK:
        return Matrix(_small_blocks(n_inputs, n_frequencies, rng, dtype))
    out = np.empty((n_inputs, n_frequencies), dtype=dtype)
    for first in range(0, n_frequencies, min(n_inputs, _BLOCK)):
        width = min(n_inputs, _BLOCK, n_frequencies - first)
        directions = _orthonormal(rng.standard_normal((n_inputs, width), dtype=dtype))
        lengths = np.sqrt(rng.chisquare(n_inputs, size=width))
        np.multiply(directions, lengths, out=out[:, first : first + width], casting="same_kind")
    return Matrix(out)


def _small_blocks(n_inputs: int, n_frequencies: int, rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Draw frequencies as ``orthogonal`` does, with all blocks factorised by one call.

    A block of 4 inputs takes 3 us instead of 100.
    """
    n_blocks = -(-n_frequencies // n_inputs)
    G = np.zeros((n_blocks, n_inputs, n_inputs), dtype)
    lengths = np.zeros((n_blocks, 1, n_inputs))
    for b in range(n_blocks):
        width = min(n_inputs, n_frequencies - b * n_inputs)
        G[b, :, :width] = rng.standard_normal((n_inputs, width), dtype=dtype)
        lengths[b, 0, :width] = np.sqrt(rng.chisquare(n_inputs, size=width))
    Q, triangle = np.linalg.qr(G)
    Q *= np.where(np.diagonal(triangle, axis1=1, axis2=2) < 0, -1, 1)[:, None] * lengths
    columns = Q.transpose(1, 0, 2).reshape(n_inputs, -1)[:, :n_frequencies]
    return np.ascontiguousarray(columns, dtype=dtype)


def structured(n_inputs: int, n_frequencies: int, rng: np.random.Generator, dtype: np.dtype) -> Projection:
    """Draw Hadamard transforms between random signs: time and memory no longer grow with inputs times frequencies.

    They are unbiased to a few thousandths, with the variance of ``orthogonal``. For up to 16 inputs return frequencies
    of ``orthogonal``: so few signs reach so few directions that kernel values would be off by 0.2 (three inputs).
    """
    if n_inputs <= _FEW_INPUTS:
        return orthogonal(n_inputs, n_frequencies, rng, dtype)
    p = 1 << (n_inputs - 1).bit_length()
    blocks = -(-n_frequencies // p)
    signs = rng.integers(0, 2, (blocks, 3, p), dtype=np.int8) * np.int8(2) - np.int8(1)
    # Three unnormalised transforms multiply lengths by p^(3/2).
    lengths = np.sqrt(rng.chisquare(p, size=n_frequencies)) / p**1.5
    return Hadamard(signs, lengths.astype(dtype), n_inputs)


def _inside(u: np.ndarray) -> np.ndarray:
    """Return numbers of [0, 1) clipped away from both ends, where quantiles are infinite."""
    return np.clip(u, 2.0**-40, 1 - 2.0**-40)


def _orthonormal(G: np.ndarray) -> np.ndarray:
    """Return Q of G = QR with a positive diagonal of R, which makes the columns uniform; G is overwritten or shared."""
    n, width = G.shape
    if n >= 2 * width:
        # A tall Gaussian matrix is well conditioned (below 6), so Q = G R^-1 with R'R = G'G loses no digits. It runs
        # at the speed of GEMM, which Householder reflections do not reach.
        triangle = cholesky((G.T @ G).astype(np.float64), check_finite=False)
        trsm = strsm if G.dtype == np.float32 else dtrsm
        # In Fortran order this is R'^-1 G' from the left.
        return trsm(1.0, triangle.T.astype(G.dtype), G.T, lower=1, overwrite_b=1).T
    Q, triangle = qr(G, mode="economic", overwrite_a=True, check_finite=False)
    Q *= np.where(np.diag(triangle) < 0, -1, 1).astype(G.dtype)
    return Q


BY_QUANTILE: dict[str, Callable[..., Matrix]] = {"iid": iid, "qmc": qmc}

CATALOGUE: dict[str, Callable[..., Projection]] = {
    "orthogonal": orthogonal,
    "structured": structured,
    "iid": iid,
    "qmc": qmc,
}
