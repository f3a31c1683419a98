"""Landmark features of the exponential kernels, by one matrix product in mapped space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import lapack
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _blas, _cholesky, _loops, _threads
from chimap._errors import InputError
from chimap._onnx import Value
from chimap._types import CSR, Array, ArrayLike, ArrayMap, MatrixLike, RandomState, Rows, Shape
from chimap._validation import check_choice, check_positive, validated_rows
from chimap.features.additive import check_map
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.base import FittedFeatures, Footprint, LinearForm
from chimap.features.landmarks.choosing import CATALOGUE, PIECE_ROWS, block_rows, given_landmarks, sample_rows
from chimap.features.mapped_functions import GaussianExpansion, MappedModel, dense
from chimap.features.over_map import FeaturesOverMap, fitted_map
from chimap.kernels import Exponential, Gaussian, Kernel


@dataclass(frozen=True, eq=False)
class GaussianFactor:
    """A factor exp(-gamma D^2) over some columns (None for all), and the map with these squared distances D^2."""

    kernel: Exponential
    columns: np.ndarray | None
    map: AdditiveMap | IdentityMap


@dataclass(frozen=True, eq=False)
class UnitGaussianMap:
    """The map u(x) = scale (Psi(x) - centre) with K(x, y) = exp(-|u(x) - u(y)|^2 / 2).

    Psi are the mapped bins of all factors of the kernel side by side, and ``scale`` (p,) is sqrt(2 gamma) of the factor
    of each mapped bin. Subtracting the ``centre`` (p,) removes what all rows share, which would make |u|^2 and u.v
    cancel. It is 0 for mapped bins that are empty in half of the rows or more, whose mean is no larger than their
    spread, so that zeros stay zeros. ``centre`` and ``scale`` are float64; ``centred`` lists the mapped bins whose
    centre is not 0.
    """

    factors: list[GaussianFactor]
    centre: Annotated[np.ndarray, Shape("p")]
    scale: Annotated[np.ndarray, Shape("p")]
    centred: np.ndarray

    @property
    def n_mapped(self) -> int:
        """Number of mapped bins, p."""
        return int(self.centre.size)

    def describe(self) -> str:
        """Return a short description of the maps, such as "OptimalMap, 1 term per bin"."""
        return ", ".join(dict.fromkeys(factor.map.describe() for factor in self.factors))

    def mapped(self, rows: Rows) -> Rows:
        """Return Psi of checked rows, (n, p): CSR of CSR rows, in new memory."""
        parts = [mapped_by(factor.map, _columns_of(rows, factor.columns)) for factor in self.factors]
        return parts[0] if len(parts) == 1 else _arrays.stack_columns(parts)

    def products(self, rows: Rows, others: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write u(x_i) . others[:, j] into out[i, j] for checked rows x_i, and return |u|^2 / 2.

        ``others`` (p, m) have the dtype of the rows.
        """
        if _arrays.is_sparse(rows):
            return self._sparse_products(rows, others, out)
        u = _arrays.to_dense(self.mapped(rows))
        centre, scale = self._numbers(u.dtype)
        halves = np.empty(u.shape[0], u.dtype)
        _threads.over_rows(
            u.shape[0], u.shape[1], lambda part: _loops.centre_rows(centre, scale, halves[part], u[part])
        )
        _blas.project(u, others, u, out)
        return halves

    def _sparse_products(self, rows: CSR, others: np.ndarray, out: np.ndarray) -> np.ndarray:
        u, dense, halves = self.split(rows)
        _blas.sparse_product(u, others, out)
        if dense.shape[1]:
            _blas.multiply(dense, np.ascontiguousarray(others[self.centred]), out, add=True)
        return halves

    def split(self, rows: CSR) -> tuple[CSR, np.ndarray, np.ndarray]:
        """Return u of CSR rows as CSR without the centred bins, these bins (n, centred), dense, and |u|^2 / 2, (n,)."""
        u = _arrays.to_sparse(self.mapped(rows))
        data = u.data.copy() if np.shares_memory(u.data, rows.data) else u.data
        u = _arrays.csr(data, u.indices, u.indptr, u.shape)
        centre, scale = self._numbers(u.dtype)
        places = np.full(self.n_mapped, -1, np.int32)
        places[self.centred] = np.arange(self.centred.size)
        dense = np.tile(-(scale * centre)[self.centred], (u.shape[0], 1))
        halves = np.empty(u.shape[0], u.dtype)
        _loops.centre_sparse(u.data, u.indices, u.indptr, places, centre, scale, dense, halves)
        return u, dense, halves

    def values(self, rows: Rows) -> Rows:
        """Return u of checked rows, (n, p), dense or CSR like the rows."""
        if not _arrays.is_sparse(rows):
            centre, scale = self._numbers(rows.dtype)
            return np.asarray((self.mapped(rows) - centre) * scale)
        u, dense, _ = self.split(rows)
        n, k = dense.shape
        centred = _arrays.csr(dense.reshape(-1), np.tile(self.centred, n), k * np.arange(n + 1), u.shape)
        return _arrays.as_rows(u + centred)

    def on_device(self, like: Array) -> ArrayMap:
        """Return the map to u for arrays such as ``like``, by operations of its library, on its device."""
        xp = _arrays.namespace(like)
        centre, scale = _arrays.as_like(self.centre, like), _arrays.as_like(self.scale, like)
        chosen = [
            None if factor.columns is None else xp.asarray(factor.columns, device=like.device)
            for factor in self.factors
        ]

        def values(rows: Array) -> Array:
            parts = [
                factor.map.array_features(rows if columns is None else xp.take(rows, columns, axis=1))
                for factor, columns in zip(self.factors, chosen, strict=True)
            ]
            psi = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
            return (psi - centre) * scale

        return values

    def _numbers(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        return self.centre.astype(dtype), self.scale.astype(dtype)

    def onnx(self, x: Value) -> Value:
        """Return the mapped rows (n, p), scaled and centred, as nodes of an ONNX graph, in float64.

        Kernel values minus 1 suffer cancellation, and whitening magnifies the rounding.
        """
        columns = [x if factor.columns is None else x.take(factor.columns, 1) for factor in self.factors]
        mapped = [factor.map.onnx(own) for factor, own in zip(self.factors, columns, strict=True)]
        return x.graph.concatenated(mapped, 1).cast(np.float64) * self.scale + -(self.centre * self.scale)


def unit_gaussian_map(
    kernel: Kernel, rows: Rows, template: AdditiveMap | None, n_terms: int
) -> tuple[UnitGaussianMap, Kernel]:
    """Return the map for a kernel, fitted to checked rows, and the kernel with its gammas as numbers.

    gamma="mean" is 1 / mean D^2 of the mapped rows. ``template`` is the additive map, unfitted; None is ``OptimalMap``.
    Raises DataError for "mean" if all rows are equal.
    """
    factors, centres, scales = [], [], []
    for exponential, columns in kernel.factors() or ():
        block = _columns_of(rows, columns)
        psi = fitted_map(exponential, block, n_terms, template)
        mean, filled, variance = _spread(mapped_by(psi, block))
        # The mean of |a - b|^2 over pairs of rows is twice their variance, so no distances are needed.
        exponential = exponential.of_mean_distance(2 * variance, block.shape[0])
        factors.append(GaussianFactor(exponential, columns, psi))
        centres.append(np.where(filled > 0.5, mean, 0.0))
        scales.append(np.full(mean.size, np.sqrt(2.0 * float(exponential.gamma))))
    centre = np.concatenate(centres)
    fitted = kernel.with_factors(factor.kernel for factor in factors)
    return UnitGaussianMap(factors, centre, np.concatenate(scales), np.flatnonzero(centre)), fitted


def mapped_by(psi: AdditiveMap | IdentityMap, rows: Rows) -> Rows:
    """Return Psi of checked rows: CSR for CSR rows, dense for dense ones."""
    if _arrays.is_sparse(rows):
        return psi.transform_sparse(rows)
    out = np.empty((rows.shape[0], psi._n_features_out), rows.dtype)
    psi.transform_into(rows, out)
    return out


def _columns_of(rows: Rows, columns: np.ndarray | None) -> Rows:
    return rows if columns is None else _arrays.take_columns(rows, columns)


def _spread(u: Rows) -> tuple[np.ndarray, np.ndarray, float]:
    """Return means (p,) of mapped rows, shares of non-zero rows (p,), and the variance summed over columns."""
    n, p = u.shape
    if _arrays.is_sparse(u):
        u = _arrays.without_zeros(u)
        filled = np.bincount(u.indices, minlength=p)
        mean = np.bincount(u.indices, u.data, minlength=p) / n
        squares = np.square(u.data - mean[u.indices]).sum() + ((n - filled) * mean**2).sum()
    else:
        filled = np.count_nonzero(u, axis=0)
        mean = u.mean(axis=0, dtype=np.float64)
        size = max(1, _NUMBERS // p)
        differences = (u[part] - mean for part in _arrays.slices(n, size))
        squares = sum(float(np.einsum("ij,ij->", block, block)) for block in differences)
    return mean, filled / n, float(squares) / max(1, n - 1)


_NUMBERS = 2**17  # differences from the mean that are in memory at once


_GRAM_COLUMNS = 2048  # mapped bins of the landmarks that are in float64 at once
_GRAM_ROWS = 256  # rows whose kernel values are mirrored at once


def exponentials(half_rows: np.ndarray, half_landmarks: np.ndarray, products: np.ndarray) -> None:
    """Replace products u.l (n, m) by exp(u.l - |u|^2/2 - |l|^2/2) - 1, given the halves of the squares."""
    _threads.over_rows(
        products.shape[0],
        products.shape[1],
        lambda part: _loops.kernel_less_one(half_rows[part], half_landmarks, products[part]),
    )


def add_to_all(row: np.ndarray, n_rows: int, out: np.ndarray) -> None:
    """Add a row (m,) to each of the first n_rows of ``out``, on all threads."""
    _threads.over_rows(n_rows, out.shape[1], lambda part: _loops.add_to_rows(row, out[part]))


def less_one(u: np.ndarray) -> np.ndarray:
    """Return exp(-|u_i - u_j|^2 / 2) - 1 for rows u (m, p), float64.

    It is computed for some columns and rows at a time, without a full copy.
    """
    m = u.shape[0]
    gram = np.zeros((m, m))
    for first in range(0, u.shape[1], _GRAM_COLUMNS):
        columns = np.ascontiguousarray(u[:, first : first + _GRAM_COLUMNS].T, dtype=np.float64)
        _blas.add_square(columns, gram, add=True)
    halves = gram.diagonal() / 2
    for first in range(0, m, _GRAM_ROWS):
        rows = slice(first, first + _GRAM_ROWS)
        block = gram[rows, first:]
        block -= halves[rows, None]
        block -= halves[first:]
        np.expm1(np.minimum(block, 0, out=block), out=block)
        corner = np.triu(block[:, :_GRAM_ROWS], 1)
        block[:, :_GRAM_ROWS] = corner + corner.T
        gram[first + block.shape[0] :, rows] = block[:, _GRAM_ROWS:].T
    return gram


@dataclass(frozen=True)
class Whitening:
    """The whitening z(x) = kap(x) T of kernel values kap(x) (m,) with m landmarks; T inverts their Cholesky factor.

    ``kept`` are the landmarks in use, in the order of the factor. ``triangle`` is T, upper triangular. ``ones`` is (1,
    .., 1) T in float64, so that z(x) is (kap(x) - 1) T + ones.
    """

    kept: np.ndarray
    triangle: np.ndarray
    ones: np.ndarray


def whitening(less_one: np.ndarray, dtype: np.dtype) -> Whitening:
    """Return the whitening for K_LL - 1 (m, m), float64; the triangle has the dtype of the kernel values to whiten.

    K_LL = R'R by Cholesky. The first landmark is a pivot in closed form. With e = K - 1, the remainder of entry i, j is

        K_ij - K_i1 K_1j = e_ij - e_i1 - e_1j - e_i1 e_1j,

    the Gram matrix of the landmarks about the first. So kernels that are nearly 1 throughout keep all of their digits.
    Landmarks whose remainder is below the rounding of the dtype times the trace of that matrix are left out: dividing
    by it would make rounding errors a feature.

    All is computed in the memory of ``less_one``, C-contiguous: at 4096 landmarks each further matrix would be 128 MiB.
    """
    first = less_one[0, 1:].copy()
    about = _packed(less_one, 1, first.size)
    for row, value in zip(about, first, strict=True):
        row -= value
        row -= first
        row -= value * first
    least = float(np.finfo(dtype).eps) * float(np.trace(about))
    factor, kept = _factor(about, least)
    n = kept.size
    if n:
        _cholesky.invert(factor)
    for place, row in enumerate(factor):
        row[:place] = 0
    ones = np.ones(n + 1)
    ones[1:] = -first[kept] @ factor
    triangle = np.empty((n + 1, n + 1), dtype)
    triangle[:, 0] = np.eye(n + 1, 1)[:, 0]
    triangle[0, 1:] = ones[1:] - factor.sum(axis=0)
    triangle[1:, 1:] = factor
    return Whitening(np.concatenate([[0], kept + 1]), triangle, ones)


def _factor(gram: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return R in the upper triangle, where gram = R'R, and the rows that it has.

    These are all rows in order; or, where a pivot would be below ``least``, the rows that complete pivoting finds above
    it. R is in the memory of the matrix, C-contiguous.
    """
    n = gram.shape[0]
    if not n or not least > 0:
        return gram[:0, :0], np.zeros(0, np.int64)
    diagonal = gram.diagonal().copy()
    if _cholesky.factorise(gram) and np.square(gram.diagonal()).min() > least:
        return gram, np.arange(n)
    for place, row in enumerate(gram):  # the failed factorisation left the lower triangle intact
        row[place + 1 :] = gram[place + 1 :, place]
    np.fill_diagonal(gram, diagonal)
    with _threads.blas_alone():  # C order is the transpose of Fortran order
        _, pivots, rank, _ = lapack.dpstrf(gram.T, tol=least, lower=1, overwrite_a=1)
    return _packed(gram, 0, rank), pivots[:rank] - 1


def _packed(matrix: np.ndarray, first: int, size: int) -> np.ndarray:
    """Return the square of rows and columns from ``first`` on, moved to the start of the matrix's memory.

    Its rows lie one after the other.
    """
    square = matrix.reshape(-1)[: size * size].reshape(size, size)
    for place, row in enumerate(square):
        row[:] = matrix[first + place, first : first + size]
    return square


_FOLDED_ROWS = 512  # rows of the triangle that are in float64 at once


class KernelLessOne(FittedFeatures):
    """Features K(x, l) - 1 for the landmarks l of other features, which prediction uses without whitening."""

    def __init__(self, features: LandmarkFeatures):
        self.landmark_features = features

    @property
    def _n_features_out(self) -> int:
        return int(self.landmark_features._n_features_out)

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write K(x, l) - 1 minus ``shift`` of checked rows into ``out`` (n, m), of their dtype."""
        for _ in self.landmark_features._kernel_blocks(rows, out):
            pass
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)


class LandmarkFeatures(FeaturesOverMap):
    """Features from the kernel values with m landmarks, for the exponential kernels.

        z(x) = R^-T (K(x, l_1), .., K(x, l_m)), with K_LL = R'R the kernel of the landmarks l_i.

    z(x) . z(y) is the kernel where x or y is a landmark, and never above it on the diagonal. The values of an
    exponential kernel K(x, y) = exp(-gamma |Psi(x) - Psi(y)|^2) with all landmarks are one product of mapped rows
    (n, p) and mapped landmarks (p, m): each row takes 2 p m + m^2 operations. One landmark is worth five to ten random
    features.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        "exp-chi2", "exp-intersection", "exp-jensen_shannon", "exp-hellinger", "gaussian", an ``Exponential``, or a
        product of these over different columns (``OnColumns``, ``Anisotropic``): one set of landmarks then serves all
        descriptors, each with its width.
    n_components : int or None, default=None
        m, the number of landmarks; with fewer distinct rows all of them are taken.
        None is 1000, or the number of the estimator that is given the features.
    gamma : float or str, default="mean"
        A number; "mean", 1 / mean D^2 over pairs of the rows; or a multiple of that, such as "2*mean". A kernel object
        has its own gamma.
    map : AdditiveMap or None, default=None
        Psi, unfitted; None is ``OptimalMap(n_terms=n_terms)``. It becomes part of the kernel's definition, so one term
        for each bin is as good as more, and cheaper.
    n_terms : int, default=1
        Terms for each bin of that default map.
    landmarks : str or array of shape (m, bins), default="kmeans"
        "kmeans" (centres of a few rounds of k-means on mapped rows), "uniform" (rows at random), "rpcholesky" (randomly
        pivoted Cholesky), or the landmarks as rows.
    random_state : int, RandomState or None, default=None
        Seed or generator for the sample of rows and the landmarks. None differs at each fit.

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, its gamma a number.
    landmarks_ : ndarray of shape (m, mapped bins)
        The landmarks as scaled, centred mapped rows u, in which the kernel is exp(-|u - v|^2 / 2).
    projection_ : ndarray of shape (m, m)
        R^-1, upper triangular.
    n_landmarks_ : int
        Landmarks in use: fewer than ``n_components`` where rows are few, or so alike that their floating type cannot
        distinguish more.
    n_features_in_ : int
        Number of bins.

    Raises
    ------
    ValueError
        For kernels without a map (``NystroemFeatures`` takes every kernel) and parameters out of range.
    DataError
        From ``fit`` and ``transform``, for entries that the kernel does not take; for gamma="mean" if all rows are
        equal.

    References
    ----------
    Williams and Seeger, Using the Nystrom method to speed up kernel machines. Zhang and Kwok, Clustered Nystrom method.
    Epperly, Tropp and Webber, Embrace rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=200)
    >>> features = LandmarkFeatures("exp-chi2", n_components=100, n_terms=3, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(abs(Z @ Z.T - features.kernel_(X)).mean() < 0.01)
    True
    """

    family = "landmarks"
    has_distances = True

    n_features_in_: int
    kernel_: Kernel
    unit_map_: UnitGaussianMap
    projection_: Annotated[np.ndarray, Shape("_n_features_out", "_n_features_out")]
    _mapped: Annotated[np.ndarray, Shape("p", "_n_features_out")]
    _half_norms: Annotated[np.ndarray, Shape("_n_features_out")]
    _ones: Annotated[np.ndarray, Shape("_n_features_out")]
    n_landmarks_: int
    _n_features_out: int

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        n_components: int | None = None,
        *,
        gamma: float | str = "mean",
        map: AdditiveMap | None = None,
        n_terms: int = 1,
        landmarks: str | MatrixLike = "kmeans",
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.gamma = gamma
        self.map = map
        self.n_terms = n_terms
        self.landmarks = landmarks
        self.random_state = random_state

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: exponential kernels over an additive or the linear kernel, and products of such kernels."""
        return kernel.factors() is not None

    def footprint(self, n_bins: int) -> Footprint:
        """Count mapped landmarks as a matrix of frequencies, and whitening as one more over m further mapped bins.

        Landmarks that the user gives are not rows of the sample."""
        m = self._size
        sampled_landmarks = m if isinstance(self.landmarks, str) else 0
        return Footprint(m, self.mapped_bins(n_bins) + m, m, sample_rows=sample_rows(m), landmarks=sampled_landmarks)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the larger of what the map takes and what choosing and factorising landmarks takes.

        The latter are the mapped rows and their differences from the mean, products of each thread with
        the centres, the kernel of the landmarks, in whose memory its factor is inverted, and the triangle."""
        m = self._size
        mapped = 2 * int(n_rows * row_bytes) * self.mapped_bins(1)
        products = itemsize * m * min(n_rows, PIECE_ROWS * _threads.count())
        return max(super().fitting_bytes(n_rows, row_bytes, itemsize), mapped + products + (8 + itemsize) * m * m)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> LandmarkFeatures:
        """Fit the map and gamma on a sample of rows, choose landmarks and factorise their kernel."""
        kernel = self._check_parameters()
        rows = validated_rows(self, X, reset=True, signed=kernel.is_signed)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        wanted = sample_rows(self._size)
        if rows.shape[0] > wanted:
            rows = _arrays.take_rows(rows, np.sort(rng.choice(rows.shape[0], wanted, replace=False)))
        self.unit_map_, self.kernel_ = unit_gaussian_map(kernel, rows, self.map, self.n_terms)
        self._factorise(self._choose(rows, rng))
        return self

    @property
    def _size(self) -> int:
        return 1000 if self.n_components is None else self.n_components

    def _check_parameters(self) -> Kernel:
        check_positive(self._size, "n_components", integer=True)
        check_positive(self.n_terms, "n_terms", integer=True)
        if self.map is not None:
            check_map(self.map)
        if isinstance(self.landmarks, str):
            check_choice(self.landmarks, "landmarks", tuple(CATALOGUE))
        kernel = self.exact_kernel
        if not self.takes(kernel):
            raise InputError(
                f"LandmarkFeatures takes exponential kernels, such as 'exp-chi2' and 'gaussian', and products of them; "
                f"got {kernel.name!r}. NystroemFeatures takes every kernel."
            )
        return kernel

    def _choose(self, rows: Rows, rng: np.random.Generator) -> np.ndarray:
        """Return the landmarks as mapped rows (m, p), dense."""
        if not isinstance(self.landmarks, str):
            rows_given = given_landmarks(self.landmarks, rows, type(self).__name__)
            return np.asarray(_arrays.to_dense(self.unit_map_.values(rows_given)))
        u = self.unit_map_.values(rows)
        chosen = CATALOGUE[self.landmarks](Gaussian(0.5), u, min(self._size, u.shape[0]), rng)
        return np.asarray(_arrays.to_dense(chosen))

    @property
    def gamma_(self) -> float | None:
        """gamma of the kernel; None where the kernel has several."""
        return getattr(self.kernel_, "gamma", None)

    @property
    def largest_(self) -> np.ndarray:
        """Largest magnitude of each bin in the rows of ``fit``, (bins,); 1 where the map does not keep it."""
        out = np.zeros(self.n_features_in_)
        for factor in self.unit_map_.factors:
            columns = np.arange(out.size) if factor.columns is None else factor.columns
            out[columns] = np.maximum(out[columns], getattr(factor.map, "largest_", 1.0))
        return out

    def describe(self) -> str:
        """Return a short description, such as "1,000 landmarks, kmeans, over OptimalMap, 1 term per bin"."""
        how = self.landmarks if isinstance(self.landmarks, str) else "given"
        wanted = self._size if isinstance(self.landmarks, str) else self.n_landmarks_
        fewer = f" (of {wanted:,} wanted)" if self.n_landmarks_ < wanted else ""
        return f"{self.n_landmarks_:,} landmarks{fewer}, {how}, over {self.unit_map_.describe()}"

    # --- evaluation

    def _factorise(self, landmarks: np.ndarray) -> None:
        dtype = landmarks.dtype
        whitened = whitening(less_one(landmarks), dtype)
        # transposed to (p, m), so that a product with sparse rows reads it row by row
        self._mapped = np.ascontiguousarray(landmarks[whitened.kept].T)
        self._half_norms = (np.square(self._mapped, dtype=np.float64).sum(axis=0) / 2).astype(dtype)
        self.projection_ = whitened.triangle
        self._ones = whitened.ones
        self.n_landmarks_ = self._n_features_out = int(whitened.kept.size)

    @property
    def landmarks_(self) -> np.ndarray:
        """Landmarks as scaled, centred mapped rows (m, mapped bins)."""
        check_is_fitted(self)
        return self._mapped.T

    def squared_distances(self, rows: Rows) -> np.ndarray:
        """See ``FittedFeatures``: distances to the landmarks."""
        less_one = np.empty((rows.shape[0], self._n_features_out), rows.dtype)
        for _ in self._kernel_blocks(rows, less_one):
            pass
        return less_one.astype(np.float64) * -2

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        triangle = self.projection_.astype(out.dtype, copy=False)
        # subtracted in float64, so that the difference keeps its digits where the mean dominates
        constant = (self._ones if shift is None else self._ones - shift).astype(out.dtype)
        for part, block in self._kernel_blocks(rows, out):
            _blas.multiply_triangle(part, triangle)
            add_to_all(constant, block, part)

    def _kernel_blocks(self, rows: Rows, out: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
        """Fill ``out`` with kernel values less 1, block by block; yield each block and its number of rows."""
        landmarks = self._mapped.astype(out.dtype, copy=False)
        halves = self._half_norms.astype(out.dtype, copy=False)
        size = block_rows(landmarks.shape[1])
        for first in range(0, rows.shape[0], size):
            part = out[first : first + size]
            block = rows if part.shape[0] == rows.shape[0] else rows[first : first + size]
            exponentials(self.unit_map_.products(block, landmarks, part), halves, part)
            yield part, part.shape[0]

    def merged_into_weights(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """Return the linear model z(x) . coef + intercept without whitening: kernel values less 1 times R^-1 coef."""
        coef = np.ascontiguousarray(coef, np.float64)
        weights = np.empty_like(coef)
        for rows in _arrays.slices(coef.shape[0], _FOLDED_ROWS):
            weights[rows] = self.projection_[rows].astype(np.float64) @ coef
        return LinearForm(KernelLessOne(self), weights, intercept + self._ones @ coef)

    def on_device(self, like: Array) -> ArrayMap:
        """Return the map from rows to features for arrays such as ``like``, with the landmarks on its device.

        For numpy arrays the compiled ``features_into`` is faster.
        """
        xp = _arrays.namespace(like)
        values = self.unit_map_.on_device(like)
        learned = (self._mapped, self._half_norms, self.projection_, self._ones)
        landmarks, halves, triangle, ones = (_arrays.as_like(array, like) for array in learned)

        def features(rows: Array) -> Array:
            u = values(rows)
            exponents = u @ landmarks
            exponents -= halves
            exponents -= xp.sum(u * u, axis=1)[:, None] / 2
            less_one = xp.expm1(xp.minimum(exponents, xp.zeros_like(exponents[:1, :1])))
            features = less_one @ triangle
            features += ones
            return features

        return features

    @property
    def n_inputs(self) -> int:
        """Length of a mapped row."""
        return self.unit_map_.n_mapped

    def onnx(self, x: Value) -> Value:
        u = self.unit_map_.onnx(x)
        exponents = u @ self._mapped.astype(np.float64) + -self._half_norms.astype(np.float64)
        exponents = exponents + (u * u).sum(1, keep=True) * np.full(1, -0.5)
        less_one = exponents.apply("Exp") + np.full(1, -1.0)
        return (less_one @ self.projection_.astype(np.float64) + self._ones).cast(x.dtype)

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
        merged = self.merged_into_weights(coef, intercept)  # a model of kernel values less 1
        u = self.unit_map_
        bins = np.concatenate([_bins_of(f.map, f.columns, self.n_features_in_) for f in u.factors])
        function = GaussianExpansion(
            self.landmarks_.astype(np.float64), merged.coef, merged.intercept - merged.coef.sum(axis=0)
        )
        return MappedModel(lambda X: dense(u.values(X)), bins, function)


def _bins_of(psi: AdditiveMap | IdentityMap, columns: np.ndarray | None, n_bins: int) -> np.ndarray:
    bins = np.arange(n_bins) if columns is None else columns
    return bins[np.arange(psi._n_features_out) % bins.size]
