"""The optimal map: the best n_terms features of a kernel under the density of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Annotated, Any

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.linalg import eigh

from chimap import _arrays, _loops, _threads
from chimap._onnx import Value, stacked
from chimap._types import JSON, Array, Shape
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.densities import density
from chimap.features.base import Features
from chimap.kernels import AdditiveKernel, Kernel

_GRID = 512  # points of the density; the discretisation error is of second order in their spacing
_FINE = 4096  # points of the finer density that weighs the functions found on the grid
_SPAN = 48  # least number of grid functions whose combinations are searched
_BLOCK = 256  # values whose kernel with all points is in memory at once
_SEGMENTS = 64  # for each doubling of x: polynomials on them reach the rounding of the dtype
_SMOOTH_POINTS = 24  # for each doubling of x: a polynomial through them is exact for an analytic kernel
_BELOW, _ABOVE = 2.0**-8, 2.0**4  # how far the table extends beyond the range of the sample
_DEGREE = {np.dtype(np.float32): 2, np.dtype(np.float64): 5}


class OptimalMap(AdditiveMap):
    """Map bins to the n_terms leading eigenfunctions of the kernel under the density p of the non-zero bins.

    Among all maps of n_terms features for each bin it has the smallest mean square error of k over pairs of values of
    the data (the Eckart-Young bound). With points t_i and weights w_i of the density and the eigenpairs (e_q, u_q) of
    sqrt(w_i) k(t_i, t_j) sqrt(w_j):

        Psi_q(x) = e_q^(-1/2) sum_i sqrt(w_i) u_iq k(x, t_i).

    Psi is tabulated as piecewise polynomials over the binary representation of x (64 pieces for each doubling), so that
    evaluation takes no logarithm and no division, whatever the kernel. Entries more than 2^8 below the smallest value
    of the sample are taken as 0, entries more than 2^4 above the largest as equal to that end.

    The eigenfunctions are those of Nystrom's approximation (Vedaldi and Zisserman, sec. 4.1) in one dimension.

    Parameters
    ----------
    kernel : str or AdditiveKernel, default="chi2"
        Any additive kernel, with any gamma, signed or not.
    n_terms : int, default=3
        Features for each bin. Terms whose eigenvalue is below the rounding of float64 are zero.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_terms,)
        Eigenvalues e_q, largest first.
    points_, weights_ : ndarray of shape (points,)
        Points and weights of the density.
    range_ : tuple of (float, float)
        First and last point.
    kernel_ : AdditiveKernel
        The exact kernel.

    References
    ----------
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, sec. 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=100)
    >>> Z = OptimalMap("jensen_shannon", n_terms=4).fit_transform(X)
    >>> from chimap import jensen_shannon
    >>> bool(abs(Z @ Z.T - jensen_shannon(X)).max() < 2e-3)
    True
    """

    points_: Annotated[np.ndarray, Shape("m")]
    weights_: Annotated[np.ndarray, Shape("m")]
    range_: tuple[float, float]
    eigenvalues_: Annotated[np.ndarray, Shape("n_terms")]
    _coefficients: Annotated[np.ndarray, Shape("m", "n_terms")]

    def __init__(self, kernel: str | Kernel = "chi2", n_terms: int = 3):
        self.kernel = kernel
        self.n_terms = n_terms

    @classmethod
    def of(cls, kernel: Kernel, *, n_terms: int = 2, map: AdditiveMap | None = None, **asked: Any) -> Features:
        """See ``Features``. Another ``map`` that is asked for is taken in place of this one."""
        return cls(kernel, n_terms) if map is None else map.changed(kernel=kernel)

    def _fit_values(self, values: np.ndarray, counts: np.ndarray) -> None:
        self.points_, weights = density(values, counts, _GRID)
        self.weights_ = weights / weights.sum()
        self.range_ = (float(self.points_[0]), float(self.points_[-1]))
        with _threads.blas_alone():  # on some hundred points, threads would wait longer than they work
            self._solve(*density(values, counts, _FINE))

    def _solve(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Combine eigenfunctions on the points into the best ones under the density of ``values``, and keep n_terms.

        More eigenfunctions are computed than are kept. The points suffice to span the smooth functions, but where the
        density has heavy tails they are too few to weigh the functions by.
        """
        n, roots = self.points_.size, np.sqrt(self.weights_)
        n_functions = min(n, max(_SPAN, 2 * self.n_terms))
        basis, eigenvalues = self._basis(roots, n_functions)
        if values.size > n:
            moments = np.zeros((n_functions, n_functions))
            for part in _arrays.slices(values.size, _BLOCK):
                block = self._kernel(values[part, None], self.points_[:, None]) @ basis
                moments += (block.T * counts[part]) @ block
            eigenvalues, rotation = eigh(moments / counts.sum())
            eigenvalues, basis = eigenvalues[::-1], basis @ rotation[:, ::-1]
        kept = min(self.n_terms, n_functions)
        usable = eigenvalues[:kept] > 16 * np.finfo(float).eps * eigenvalues[0]
        self.eigenvalues_ = np.zeros(self.n_terms)
        self.eigenvalues_[:kept] = np.maximum(eigenvalues[:kept], 0)
        self._coefficients = np.zeros((n, self.n_terms))
        self._coefficients[:, :kept] = np.where(usable, basis[:, :kept], 0.0)
        # The sign of an eigenvector is arbitrary: make each feature positive at the largest value.
        ends = self._kernel(self.points_[-1:, None], self.points_[:, None]) @ self._coefficients
        self._coefficients *= np.where(ends < 0, -1.0, 1.0)
        self._tables: dict[np.dtype, tuple[np.ndarray, int, int]] = {}

    def _basis(self, roots: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (n, wanted) of the leading eigenfunctions on the points, and eigenvalues, descending."""
        gram = self._kernel(self.points_[:, None])
        gram *= roots[:, None]
        gram *= roots
        n = roots.size
        # LAPACK wants columns; the transpose of a symmetric matrix lets it overwrite the matrix without a copy.
        values, vectors = eigh(gram.T, subset_by_index=[n - wanted, n - 1], overwrite_a=True)
        values, vectors = values[::-1], vectors[:, ::-1]
        # The eigenproblem rounds by eps e_0; a function below that would be noise amplified by e_q^(-1/2).
        usable = values > 16 * np.finfo(float).eps * max(values[0], np.finfo(float).tiny)
        scale = np.where(usable, 1 / np.sqrt(np.where(usable, values, 1.0)), 0.0)
        return roots[:, None] * vectors * scale, values

    @property
    def _n_terms_out(self) -> int:
        return int(self.eigenvalues_.size)

    @property
    def _kernel(self) -> AdditiveKernel:
        return replace(self.kernel_, is_signed=False)

    def _fitting_bytes(self, n_values: int, n_rows: int, itemsize: int) -> int:
        # the kernel among the points, or the values while they are counted
        return max(super()._fitting_bytes(n_values, n_rows, itemsize), 9 * min(_GRID, n_values) ** 2)

    def eigenfunctions(self, x: np.ndarray) -> np.ndarray:
        """Return Psi at magnitudes, computed from the sum over the points rather than from the tables.

        Parameters
        ----------
        x : ndarray of shape (m,)
            Magnitudes.

        Returns
        -------
        ndarray of shape (m, n_terms)
            Eigenfunctions, float64.
        """
        kernel, x = self._kernel, np.asarray(x, np.float64)
        out = np.empty((x.size, self._n_terms_out))
        for part in _arrays.slices(x.size, _BLOCK):
            out[part] = kernel(x[part, None], self.points_[:, None]) @ self._coefficients
        return out

    def _prepare(self, dtype: np.dtype) -> None:
        if dtype not in self._tables:
            smooth = self._kernel.is_analytic
            self._tables[dtype] = tabulate(self.eigenfunctions, *self.range_, dtype, smooth=smooth)

    def _formula(self, xp: ModuleType, x: Array) -> Array:
        dtype = np.dtype(np.float32 if x.dtype == xp.float32 else np.float64)
        self._prepare(dtype)
        values, drop, first = self._tables[dtype]
        tables, bits = _arrays.as_like(values, x), _arrays.float_bits(x)
        segment = xp.astype(xp.clip((bits >> drop) - first, 0, values.shape[2] - 1), xp.int64)
        t = xp.astype(bits & ((1 << drop) - 1), x.dtype) / (1 << drop)
        terms = []
        for table in tables:
            polynomial = table[-1][segment]
            for p in range(values.shape[1] - 2, -1, -1):
                polynomial = table[p][segment] + t * polynomial
            terms.append(polynomial)
        return xp.stack(terms, axis=1)

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        tables, drop, first = self._tables[magnitudes.dtype]
        bits = magnitudes.view(np.int32 if magnitudes.itemsize == 4 else np.int64)
        segment, t = np.empty(bins.size, np.uint32), np.empty(bins.size, magnitudes.dtype)
        fill = _loops.table_features(tables.shape[1] - 1)
        fill(bits, tables, bits.dtype.type(drop), bits.dtype.type(first), segment, t, out)

    def __getstate__(self) -> JSON:
        # Building the tables again takes less time than sending them.
        return {k: v for k, v in super().__getstate__().items() if k != "_tables"}

    def __setstate__(self, state: JSON) -> None:
        super().__setstate__(state)
        self._tables = {}

    def _onnx_terms(self, x: Value) -> Value:
        self._prepare(x.dtype)
        tables, drop, first = self._tables[x.dtype]
        info, last = np.finfo(x.dtype), tables.shape[2] - 1
        integer = np.int32 if info.bits == 32 else np.int64
        # The first and the last segment are constant, so any number within them gives their value.
        ends = np.array([((first + 1) << drop) - 1, (first + last) << drop], dtype=integer)
        low, high = ends.view(x.dtype)
        x = x.at_least(low).at_most(high)
        per_doubling = 1 << (info.nmant - drop)
        lowest = int(np.floor(np.log2(float(low)))) - 1
        powers = x.graph.constant(np.exp2(np.arange(lowest, int(np.floor(np.log2(float(high)))) + 3.0)).astype(x.dtype))
        # The exponent of x: rounding of the logarithm may make it too high or too low by one near powers of two.
        place = (x.cast(np.float64).apply("Log") / np.log(2.0)).apply("Floor") - lowest
        ratio = x / powers.take(place.cast(np.int64), 0)
        place = place - (ratio < 1.0).cast(np.float64) + (ratio > np.nextafter(x.dtype.type(2), 0)).cast(np.float64)
        mantissa = (x / powers.take(place.cast(np.int64), 0) - 1.0) * per_doubling
        inner = mantissa.apply("Floor")
        t = mantissa - inner
        bias = (lowest + info.maxexp - 1) * per_doubling - first
        segment = (place * per_doubling + inner.cast(np.float64) + bias).at_least(0.0).at_most(last).cast(np.int64)
        values = []
        for coefficients in tables:
            value = x.graph.constant(coefficients[-1]).take(segment, 0)
            for a in coefficients[-2::-1]:
                value = value * t + x.graph.constant(a).take(segment, 0)
            values.append(value)
        return stacked(values)


def tabulate(
    function: Callable[[np.ndarray], np.ndarray],
    lowest: float,
    highest: float,
    dtype: np.dtype,
    *,
    smooth: bool = False,
) -> tuple[np.ndarray, int, int]:
    """Tabulate a function of x > 0 as piecewise polynomials over segments of the binary representation of x.

    The segments cover [lowest / 2^8, highest * 2^4]; a segment of zeros lies below them (x = 0 falls there) and a
    constant one above. In each segment the polynomial in t, the position within the segment, meets the function at
    Chebyshev points. For a function that is ``smooth``, analytic except for x <= 0, the values at these points come
    from a sixteenth as many evaluations (``_doublings``).

    Returns the tables (n_terms, degree + 1, n_segments), the number of bits to drop and the number of the first
    segment, as ``_loops.table_features`` takes them.
    """
    info = np.finfo(dtype)
    drop = info.nmant - _SEGMENTS.bit_length() + 1
    low, high = np.clip([lowest * _BELOW, highest * _ABOVE], info.tiny, info.max / 4).astype(dtype)
    integer = np.int32 if info.bits == 32 else np.int64
    first, last = (int(v.view(integer)) >> drop for v in (low, high))
    borders = np.left_shift(np.arange(first, last + 2, dtype=np.int64), drop)
    starts = borders.astype(integer).view(dtype).astype(np.float64)
    degree = _DEGREE[dtype]
    t = 0.5 - 0.5 * np.cos((np.arange(degree + 1) + 0.5) * np.pi / (degree + 1))
    x = starts[:-1, None] + np.diff(starts)[:, None] * t
    samples = _doublings(function, x) if smooth else function(x.reshape(-1)).reshape(*x.shape, -1)
    inner = np.einsum("pt,stq->qps", np.linalg.inv(np.vander(t, increasing=True)), samples)
    tables = np.zeros((inner.shape[0], degree + 1, inner.shape[2] + 2))
    tables[:, :, 1:-1] = inner
    tables[:, 0, -1] = function(starts[-1:])[0]
    return np.ascontiguousarray(tables, dtype=dtype), drop, first - 1


def _doublings(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return the function at points x (segments, points) of all segments, by one polynomial for each doubling.

    The result has shape (*x.shape, terms). On a doubling [a, 2a], whose nearest singularity is 0, Chebyshev
    coefficients fall as (3 + sqrt 8)^-n.
    """
    n = _SMOOTH_POINTS
    nodes, order = chebpts1(n), np.arange(n)
    start, n_doublings = x[0, 0], -(-x.shape[0] // _SEGMENTS)
    node_x = np.ldexp(start * (1.5 + 0.5 * nodes), np.arange(n_doublings)[:, None])
    at_nodes = function(node_x.reshape(-1)).reshape(*node_x.shape, -1)
    # Each doubling repeats the segments of the one before at twice the length, so positions among nodes repeat too.
    places = 2 * x[:_SEGMENTS].reshape(-1) / start - 3
    to_series = chebvander(nodes, n - 1).T * np.where(order == 0, 1 / n, 2 / n)[:, None]
    samples = chebvander(places, n - 1) @ to_series @ at_nodes
    return samples.reshape(-1, x.shape[1], at_nodes.shape[2])[: x.shape[0]]
