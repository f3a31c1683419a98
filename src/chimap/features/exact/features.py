"""Kernel values with all training rows, for machines that are exact."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _threads
from chimap._types import ArrayLike, MatrixLike, RandomState, Rows
from chimap._validation import DataError, validated_rows
from chimap.features.additive import OptimalMap
from chimap.features.additive.base import AdditiveMap, check_map, mapped
from chimap.features.additive.identity import IdentityMap
from chimap.features.exact.products import KeptRows, Spread
from chimap.kernels import AdditiveKernel, Exponential, Kernel, as_kernel
from chimap.kernels.plain import Linear
from chimap.model_files import Transformer
from chimap.moments import rows_by_weight

if TYPE_CHECKING:
    from sklearn.utils import Tags


_ROWS = 1024  # whose values are computed together where a kernel has no map
_ROUNDED_MEAN = 30  # eps that a mean of rows may be off by
_CLEAR = 3  # times the rounding of mapped rows: a mean distance beyond it is one of the data


class ExactFeatures(ClassNamePrefixFeaturesOutMixin, Transformer, BaseEstimator):
    """z(x) = (K(x, x_1), .., K(x, x_n)): values of the kernel with all rows that it is fitted on.

    Of an exponential kernel over an additive one they are exp(-gamma |Psi(x) - Psi(x_j)|^2), by one matrix product of
    mapped rows; of an additive kernel Psi(x)'Psi(x_j) (its mean over the rows apart); of others, kernel by kernel.
    The map is part of the kernel's definition: what it says is positive definite whatever its error.

    Parameters
    ----------
    kernel : a name ("exp-chi2", "chi2", "gaussian", "jensen_shannon+pq", ...) or a kernel object.
    gamma : of the exponential kernels: a number or "mean", 1 / mean of |Psi(x) - Psi(y)|^2.
    map : an additive map (unfitted), or None for ``OptimalMap(n_terms=n_terms)``.
    n_terms : features a bin of that map.
    random_state : int, RandomState or None: draws the rows whose mean distance is taken.

    Attributes
    ----------
    kernel_ : with its parameters set to numbers.
    map_ : the fitted map, None for kernels without one.
    rows_ : the training rows, mapped (``KeptRows``) or as they are.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=50)
    >>> features = ExactFeatures("exp-chi2", n_terms=6).fit(X)
    >>> bool(abs(features.transform(X) - features.kernel_(X)).max() < 1e-2)
    True
    """

    n_features_in_: int
    kernel_: Kernel
    map_: AdditiveMap | IdentityMap | None
    rows_: Annotated[Any, KeptRows | Rows]  # KeptRows where there is a map, else the rows themselves

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        *,
        gamma: float | str = "mean",
        map: AdditiveMap | None = None,
        n_terms: int = 2,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.n_terms = n_terms
        self.random_state = random_state

    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ExactFeatures:
        """Map and keep rows X (n, bins); y is not used.

        sample_weight (n,): by which rows are drawn that map and gamma are fitted on; None: on all rows.

        Raises DataError for entries that the kernel does not take, and for gamma="mean" where all rows are equal.
        """
        kernel = as_kernel(self.kernel, self.gamma)
        rows = validated_rows(self, X, reset=True, signed=kernel.is_signed)
        n = self._n_features_out = rows.shape[0]
        drawn = None if sample_weight is None else rows_by_weight(np.asarray(sample_weight), n, 0)
        sample = rows if drawn is None else _arrays.take_rows(rows, drawn)
        if not has_map(kernel):
            self.map_, self.rows_ = None, rows
            self.kernel_ = kernel.fitted(sample, check_random_state(self.random_state).randint(2**31))
            return self
        self.map_ = fitted_map(kernel, sample, self.n_terms, self.map)
        self.rows_ = KeptRows(mapped(self.map_, rows))
        self.kernel_ = kernel
        if isinstance(kernel, Exponential):
            kept = self.rows_ if drawn is None else KeptRows(mapped(self.map_, sample))
            self.kernel_ = with_mean_gamma(kernel, kept, kept.spread())
        return self

    def with_gamma(self, gamma: float) -> None:
        """Set gamma of a fitted exponential kernel; the rows stay."""
        self.kernel_ = replace(self.kernel_, gamma=float(gamma))  # type: ignore[type-var]

    # --- kernel values

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Values (m, n) of rows X (m, bins) with the training rows."""
        check_is_fitted(self)
        rows = validated_rows(self, X, reset=False, signed=self.kernel_.is_signed)
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype)
        self.features_into(rows, out)
        return out

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Values minus ``shift`` of checked rows into ``out`` (m, n), of their dtype."""
        if self.map_ is None:
            kept = _arrays.as_rows(self.rows_, out.dtype)
            _threads.over_rows(
                rows.shape[0], kept.shape[0],
                lambda part: out.__setitem__(part, self.kernel_(_arrays.view_rows(rows, part), kept)),
            )  # fmt: skip
        else:
            self.rows_.values_into(mapped(self.map_, rows), self._gamma, out)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def take(self, rows: np.ndarray) -> ExactFeatures:
        """The same with some of the training rows."""
        some = copy(self)
        some.rows_ = self.rows_.take(rows) if self.map_ is not None else _arrays.take_rows(self.rows_, rows)
        some._n_features_out = rows.size
        return some

    def gram_into(self, square: np.ndarray) -> np.ndarray:
        """K(x_i, x_j) of the training rows below the diagonal of ``square`` (n, n); returns the diagonal, (n,).

        Of additive kernels both are less the means. What lies above the diagonal is spoilt.
        """
        if self.map_ is not None:
            return self.rows_.gram_into(square, self._gamma)
        n = self._n_features_out
        for first in range(0, n, _ROWS):
            own = slice(first, min(first + _ROWS, n))
            square[own, : own.stop] = self.kernel_(
                _arrays.view_rows(self.rows_, own), _arrays.view_rows(self.rows_, slice(0, own.stop))
            )
        return np.diagonal(square).astype(np.float64)

    @property
    def _gamma(self) -> float | None:
        """Of mapped rows; None for their plain products."""
        return self.kernel_.gamma if isinstance(self.kernel_, Exponential) else None  # type: ignore[return-value]

    def describe(self) -> str:
        """'values of the kernel with 342 rows'."""
        return f"values of the kernel with {self._n_features_out:,} rows"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not as_kernel(self.kernel, self.gamma).is_signed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def has_map(kernel: Kernel) -> bool:
    """Whether its values are products of mapped rows, or exponentials of their distances."""
    return isinstance(kernel, AdditiveKernel | Linear) or (
        isinstance(kernel, Exponential) and isinstance(kernel.kernel, AdditiveKernel | Linear)
    )


def fitted_map(
    kernel: Kernel, rows: Rows, n_terms: int, like: AdditiveMap | None = None
) -> AdditiveMap | IdentityMap:
    """The map of a kernel that has one, fitted on rows: an optimal one of so many terms, or one such as another.

    Raises DataError for entries that the kernel does not take.
    """
    base = kernel.kernel if isinstance(kernel, Exponential) else kernel
    if isinstance(base, Linear):
        return IdentityMap().fit(rows)
    if like is None:
        return OptimalMap(base, n_terms).fit(rows)
    check_map(like)
    return type(like)(**like.get_params(deep=False)).set_params(kernel=base).fit(rows)


def with_mean_gamma(kernel: Exponential, rows: KeptRows, spread: Spread) -> Exponential:
    """The kernel with gamma a number: "mean" is 1 / mean squared distance of mapped rows, those that are kept and those
    of the spread."""
    if not isinstance(kernel.gamma, str):
        return kernel
    mean = spread.mean_distance
    # mapped rows are off by half an eps of their dtype; equal ones are equal but for the mean, in float64, taken off
    eps = np.finfo(rows.squares.dtype).eps + _ROUNDED_MEAN * np.finfo(np.float64).eps
    rounding = _CLEAR * eps * np.linalg.norm(rows.means)
    if not mean > rounding**2:
        if spread.n_rows != 1:
            raise DataError(
                "gamma='mean': all rows are equal, or as close as rounding tells apart, so that there is no mean "
                "distance. Check that the data vary; take what they have in common off them, use precision='float64', "
                "or pass gamma as a number."
            )
        mean = 1.0  # a single row has no pairs: any gamma serves
    return kernel.of_mean_distance(mean, spread.n_rows)
