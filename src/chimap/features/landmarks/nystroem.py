"""Landmark features: Nystrom's approximation of any kernel."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _blas
from chimap._types import Array, ArrayLike, MatrixLike, RandomState, Rows, Transformed
from chimap._validation import (
    check_choice,
    check_positive,
    validated_rows,
)
from chimap.features.landmarks.choosing import CATALOGUE, given_landmarks
from chimap.kernels import Kernel, as_kernel
from chimap.model_files import Transformer

if TYPE_CHECKING:
    from sklearn.utils import Tags


_DOMINATED = 1e-3  # share of the Gram matrix about its mean below which single precision does not do
_BLOCK_NUMBERS = 2**21  # kernel values with the landmarks that are in memory together


class NystroemFeatures(ClassNamePrefixFeaturesOutMixin, Transformer, BaseEstimator):
    """z(x) = diag(e)^(-1/2) U' (K(x, l_1), .., K(x, l_m)), with the eigenpairs (e, U) of the kernel of landmarks l_i.

    z(x) . z(y) is the kernel exactly where x or y is a landmark, and never above it on the diagonal. Works for every
    kernel, at O(m bins) a row for the kernel values and O(m^2) for the product.

    Parameters
    ----------
    kernel : a name ("exp-chi2", "intersection", "jensen_shannon+pq", ...) or a kernel object.
    n_components : m, landmarks. With fewer distinct rows than that, all of them are taken (with a warning).
    gamma : of the exponential kernels: a number or "mean".
    landmarks : "rpcholesky" (randomly pivoted Cholesky: rows drawn by what of their kernel is not yet explained; the
        smallest error, O(n m^2) for n rows of the fit), "uniform" (rows at random), "kmeans" (centres of k-means), or
        rows (m, bins).
    cutoff : eigenvalues below cutoff times the largest are left out, and their features with them; None is the
        rounding of the dtype of X times the sum of all. Duplicated or nearly dependent landmarks end there instead of
        as noise.
    random_state : int, RandomState or None.

    Learned: ``kernel_`` (parameters set to numbers), ``landmarks_`` (m, bins) of the kind and dtype of X,
    ``eigenvalues_`` and ``projection_`` (m, n_features_out).

    Source: Williams and Seeger, Using the Nystrom method to speed up kernel machines; Chen, Epperly, Tropp and Webber,
    Randomly pivoted Cholesky; Zhang and Kwok, Clustered Nystrom method (k-means).

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=200)
    >>> features = NystroemFeatures("exp-chi2", n_components=100, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(abs(Z @ Z.T - features.kernel_(X)).mean() < 0.01)
    True
    """

    n_features_in_: int
    kernel_: Kernel
    landmarks_: Rows
    eigenvalues_: np.ndarray
    projection_: np.ndarray
    _n_features_out: int

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        n_components: int = 256,
        gamma: float | str = "mean",
        landmarks: str | MatrixLike = "rpcholesky",
        cutoff: float | None = None,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.gamma = gamma
        self.landmarks = landmarks
        self.cutoff = cutoff
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> NystroemFeatures:
        """Choose landmarks among rows X (n, bins) and solve their eigenproblem; y is not used.

        Raises DataError for entries that the kernel does not take and for given landmarks that repeat each other.
        """
        kernel = as_kernel(self.kernel, self.gamma)
        check_positive(self.n_components, "n_components", integer=True)
        if self.cutoff is not None:
            check_positive(self.cutoff, "cutoff")
        rows = validated_rows(self, X, reset=True, signed=kernel.is_signed)
        random = check_random_state(self.random_state)
        self.kernel_ = kernel.fitted(rows, random.randint(2**31))
        self.landmarks_ = self._landmarks(rows, np.random.default_rng(random.randint(2**31)))
        self._solve(rows.dtype)
        return self

    def _landmarks(self, rows: Rows, rng: np.random.Generator) -> Rows:
        if not isinstance(self.landmarks, str):
            return given_landmarks(self.landmarks, rows, type(self).__name__)
        check_choice(self.landmarks, "landmarks", tuple(CATALOGUE))
        wanted = min(self.n_components, rows.shape[0])
        chosen = _arrays.like(CATALOGUE[self.landmarks](self.kernel_, rows, wanted, rng), rows)
        if chosen.shape[0] < self.n_components:
            warnings.warn(
                f"n_components={self.n_components} landmarks are wanted, and of {rows.shape[0]} rows only "
                f"{chosen.shape[0]} differ enough for the kernel: those are taken.",
                stacklevel=3,
            )
        return chosen

    def _solve(self, dtype: np.dtype) -> None:
        gram = self.kernel_(_arrays.as_rows(self.landmarks_, np.float64))
        values, vectors = eigh(gram)
        # What all landmarks share is no signal: a mean that dominates must not raise the cut-off above what tells rows
        # apart, and single precision would round that away. (m eps times the largest eigenvalue was tried: thousands
        # of landmarks then lost small eigenvalues by the hundred.)
        shared = gram.sum() / gram.shape[0]
        apart = max(float(np.trace(gram) - shared), 0.0)
        noise = float(np.finfo(dtype).eps) * apart + 16 * np.finfo(np.float64).eps * values[-1]
        kept = values > (self.cutoff * max(values[-1], 0.0) if self.cutoff else max(noise, 0.0))
        if not kept.any():  # a kernel that is zero among the landmarks explains nothing
            kept[-1], values[-1] = True, np.inf
        order = np.flatnonzero(kept)[::-1]
        self.eigenvalues_ = values[order]
        precise = np.dtype(np.float64) if apart < _DOMINATED * shared else dtype
        self.projection_ = (vectors[:, order] / np.sqrt(self.eigenvalues_)).astype(precise)
        self._n_features_out = order.size

    def transform(self, X: MatrixLike) -> Transformed:
        """Features (n, n_features_out), dense, in the floating type of X; n_features_out <= n_components. Those of a
        tensor of torch (or an array of cupy) come on its device."""
        check_is_fitted(self)
        rows = validated_rows(self, X, reset=False, signed=self.kernel_.is_signed, on_device=True)
        if _arrays.is_on_device(rows):
            return self.array_features(rows)
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype)
        self.features_into(rows, out)
        return out

    def array_features(self, rows: Array) -> Array:
        """Features of checked dense rows of any kind of array: kernel values by the loops here, their product there."""
        host = np.ascontiguousarray(_arrays.to_host(rows))
        out = np.empty((host.shape[0], self._n_features_out), host.dtype)
        self.features_into(host, out)
        return _arrays.beside(out, rows)

    def describe(self) -> str:
        """'100 landmarks, rpcholesky', of fitted features."""
        way = self.landmarks if isinstance(self.landmarks, str) else "given"
        return f"{self.landmarks_.shape[0]:,} landmarks, {way}"

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Features minus ``shift`` of checked rows into ``out`` (n, n_features_out), of their dtype."""
        # in double precision where the mean dominates
        dtype = np.result_type(out.dtype, self.projection_.dtype)
        landmarks = _arrays.as_rows(self.landmarks_, dtype)
        projection = self.projection_.astype(dtype, copy=False)
        shift = np.zeros(out.shape[1]) if shift is None else shift
        size = max(1, _BLOCK_NUMBERS // max(1, landmarks.shape[0]))
        for first in range(0, rows.shape[0], size):
            part = slice(first, first + size)
            values = self.kernel_(_arrays.as_rows(_arrays.take_rows(rows, part), dtype), landmarks)
            if dtype == out.dtype:
                _blas.multiply(values, projection, out[part])
                out[part] -= shift.astype(dtype, copy=False)
            else:
                out[part] = values @ projection - shift

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not as_kernel(self.kernel, self.gamma).is_signed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
