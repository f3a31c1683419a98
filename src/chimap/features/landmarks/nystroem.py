"""Landmark features: Nystrom's approximation of any kernel."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Annotated, Any

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from chimap import _arrays, _blas
from chimap._messages import Message
from chimap._onnx import Value
from chimap._types import ArrayLike, MatrixLike, RandomState, Rows, Shape
from chimap._validation import check_choice, check_positive, validated_rows
from chimap.features.base import Features, Footprint, LinearForm, are_near, gamma_bytes, median_bytes
from chimap.features.landmarks.choosing import CATALOGUE, given_landmarks
from chimap.kernels import AdditiveKernel, Exponential, Kernel

_DOMINATED = 1e-3  # share of the Gram matrix about its mean below which float32 is not precise enough
_ROWS_MEASURED = 64  # landmarks whose outputs show whether float32 holds a model
_BLOCK_NUMBERS = 2**21  # kernel values with the landmarks that are in memory at once


class NystroemFeatures(Features):
    """Features from the kernel values with m landmarks, for every kernel (Nystrom's approximation).

        z(x) = diag(e)^(-1/2) U' (K(x, l_1), .., K(x, l_m)),

    with the eigenpairs (e, U) of the kernel of the landmarks l_i. z(x) . z(y) is the kernel exactly where x or y is a
    landmark, and never above it on the diagonal. Each row takes O(m bins) operations for the kernel values and O(m^2)
    for the product.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        A name ("exp-chi2", "intersection", "jensen_shannon+pq", ...) or a kernel object.
    n_components : int or None, default=None
        m, the number of landmarks; with fewer distinct rows all of them are taken, with a warning.
        None is 256, or the number of the estimator that is given the features.
    gamma : float or str, default="mean"
        gamma of the exponential kernels: a number, "mean", or a multiple of that, such as "2*mean".
    landmarks : str or array of shape (m, bins), default="rpcholesky"
        "rpcholesky" (randomly pivoted Cholesky: rows drawn by how much of their kernel is not yet explained; the
        smallest error, O(n m^2) for n rows of the fit), "uniform" (rows at random), "kmeans" (centres of k-means), or
        the landmarks as rows.
    random_state : int, RandomState or None, default=None
        Seed or generator for gamma and the landmarks. None differs at each fit.

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, its parameters set to numbers.
    landmarks_ : array or CSR matrix of shape (m, bins)
        The landmarks, of the kind and dtype of X.
    eigenvalues_ : ndarray of shape (n_features_out,)
        The eigenvalues e that are kept, largest first: those above the rounding of the dtype of X times the sum of
        the eigenvalues about the mean of the landmarks. Smaller ones, of duplicated or nearly dependent landmarks,
        would become noise.
    projection_ : ndarray of shape (m, n_features_out)
        U diag(e)^(-1/2).
    n_features_in_ : int
        Number of bins.

    References
    ----------
    Williams and Seeger, Using the Nystrom method to speed up kernel machines. Chen, Epperly, Tropp and Webber, Randomly
    pivoted Cholesky. Zhang and Kwok, Clustered Nystrom method (k-means).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=200)
    >>> features = NystroemFeatures("exp-chi2", n_components=100, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(abs(Z @ Z.T - features.kernel_(X)).mean() < 0.01)
    True
    """

    has_distances = True

    n_features_in_: int
    kernel_: Kernel
    landmarks_: Annotated[Rows, Shape("m", "n_features_in_")]
    eigenvalues_: np.ndarray
    projection_: Annotated[np.ndarray, Shape("m", "_n_features_out")]
    _n_features_out: int

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        n_components: int | None = None,
        gamma: float | str = "mean",
        landmarks: str | MatrixLike = "rpcholesky",
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.gamma = gamma
        self.landmarks = landmarks
        self.random_state = random_state

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: every kernel."""
        return True

    @classmethod
    def of(cls, kernel: Kernel, *, n_components: int = 1000, **asked: Any) -> Features:
        """See ``Features``. ``landmarks`` are ways of ``LandmarkFeatures``, so that its own stay."""
        asked.pop("landmarks", None)
        return super().of(kernel, n_components=n_components, **asked)

    def footprint(self, n_bins: int) -> Footprint:
        """Count kernel values in place of mapped bins; the landmarks are rows of the sample."""
        m = self._size
        return Footprint(m, m, m, sample_rows=2 * m, landmarks=m)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the larger of what the kernel's parameters take and what the landmarks take.

        The latter are the kernel values of all rows with the landmarks besides two float64 copies of the rows, and the
        eigenproblem of the landmarks."""
        kernel, m = self.exact_kernel, self._size
        copies = int(16 * n_rows * row_bytes / itemsize)
        if isinstance(kernel, Exponential | AdditiveKernel):
            parameters = gamma_bytes(kernel, n_rows, row_bytes, itemsize)
        else:
            parameters = max(median_bytes(kernel, n_rows, row_bytes, itemsize), copies)
        return max(parameters, copies + 8 * m * (n_rows + 3 * m))

    @property
    def _size(self) -> int:
        return 256 if self.n_components is None else self.n_components

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> NystroemFeatures:
        """Choose landmarks among rows and solve the eigenproblem of their kernel.

        Raises DataError also for given landmarks that repeat each other.
        """
        kernel = self.exact_kernel
        check_positive(self._size, "n_components", integer=True)
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
        wanted = min(self._size, rows.shape[0])
        chosen = _arrays.like(CATALOGUE[self.landmarks](self.kernel_, rows, wanted, rng), rows)
        if chosen.shape[0] < self._size <= rows.shape[0]:
            warnings.warn(
                Message(
                    "{} of the {} rows differ enough for the kernel: these are the landmarks, fewer than "
                    "{n_components=!s}.",
                    chosen.shape[0],
                    rows.shape[0],
                    self._size,
                ),
                stacklevel=3,
            )
        return chosen

    def _solve(self, dtype: np.dtype) -> None:
        gram = self.kernel_(_arrays.as_rows(self.landmarks_, np.float64))
        values, vectors = eigh(gram)
        # The part that all landmarks share is no signal. Where it dominates, it must not raise the cut-off above the
        # differences between rows, and float32 would round these away. (m eps times the largest eigenvalue was tried:
        # it dropped hundreds of small eigenvalues at thousands of landmarks.)
        shared = gram.sum() / gram.shape[0]
        own = max(float(np.trace(gram) - shared), 0.0)
        noise = float(np.finfo(dtype).eps) * own + 16 * np.finfo(np.float64).eps * values[-1]
        kept = values > max(noise, 0.0)
        if not kept.any():  # a kernel that is zero among the landmarks explains nothing
            kept[-1], values[-1] = True, np.inf
        order = np.flatnonzero(kept)[::-1]
        self.eigenvalues_ = values[order]
        precise = np.dtype(np.float64) if own < _DOMINATED * shared else dtype
        self.projection_ = (vectors[:, order] / np.sqrt(self.eigenvalues_)).astype(precise)
        self._n_features_out = order.size

    def describe(self) -> str:
        """Return a short description of the fitted features, such as "100 landmarks, rpcholesky"."""
        how = self.landmarks if isinstance(self.landmarks, str) else "given"
        return f"{self.landmarks_.shape[0]:,} landmarks, {how}"

    def squared_distances(self, rows: Rows) -> np.ndarray:
        """See ``FittedFeatures``: distances to the landmarks."""
        landmarks = _arrays.as_rows(self.landmarks_, rows.dtype)
        values = np.asarray(self.kernel_(rows, landmarks), dtype=np.float64)
        squares, kept = (np.asarray(self.kernel_.diagonal(some)) for some in (rows, landmarks))
        return np.maximum(squares[:, None] + kept - 2 * values, 0)

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        # in float64 where the mean dominates
        dtype = np.result_type(out.dtype, self.projection_.dtype)
        landmarks = _arrays.as_rows(self.landmarks_, dtype)
        projection = self.projection_.astype(dtype, copy=False)
        shift = np.zeros(out.shape[1]) if shift is None else shift
        size = max(1, _BLOCK_NUMBERS // max(1, landmarks.shape[0]))
        for part in _arrays.slices(rows.shape[0], size):
            values = self.kernel_(_arrays.as_rows(_arrays.take_rows(rows, part), dtype), landmarks)
            if dtype == out.dtype:
                _blas.multiply(values, projection, out[part])
                out[part] -= shift.astype(dtype, copy=False)
            else:
                out[part] = values @ projection - shift

    def merged_into_weights(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """See ``FittedFeatures``: values are in float64 where float32 would move the outputs of the landmarks."""
        if self.projection_.dtype == np.float64:
            return LinearForm(self, coef, intercept)
        double = copy(self)
        double.projection_ = self.projection_.astype(np.float64)
        rows = _arrays.as_rows(_arrays.take_rows(self.landmarks_, slice(0, _ROWS_MEASURED)), np.float32)
        alone, single, exact = (
            features.mapped(some).astype(np.float64) @ coef
            for features, some in ((self, rows[:1]), (self, rows), (double, rows))
        )
        is_near = are_near(np.vstack([alone, single]), np.vstack([exact[:1], exact]))
        return LinearForm(self if is_near else double, coef, intercept)

    def onnx(self, x: Value) -> Value:
        landmarks = _arrays.to_dense(self.landmarks_).astype(np.float64)
        return (self.kernel_.onnx(x.cast(np.float64), landmarks) @ self.projection_).cast(x.dtype)
