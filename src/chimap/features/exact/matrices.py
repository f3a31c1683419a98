"""Values with all training rows that no map of the kernel gives: by its formula, given ones, or those of any map."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin, clone

from chimap import _arrays
from chimap._messages import Message
from chimap._types import ArrayLike, MatrixLike, RandomState, Rows
from chimap._validation import DataError, validated_rows
from chimap.features.additive.identity import IdentityMap
from chimap.features.base import Features, FittedFeatures, Folded, Footprint
from chimap.features.exact.features import MOST_ROWS, ExactFeatures
from chimap.kernels import Kernel, Linear
from chimap.kernels.plain import Precomputed
from chimap.moments import rows_by_weight
from chimap.moments.kept_rows import KeptRows


class FormulaValues(ExactFeatures):
    """Features (K(x, x_1), .., K(x, x_n)) by the formula of the kernel; the parameters are those of ``ExactFeatures``.

    Examples
    --------
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=50)
    >>> features = FormulaValues("chi2").fit(X)
    >>> bool((features.transform(X) == features.kernel_(X)).all())
    True
    """

    map = None
    n_terms = 1
    _has_map: ClassVar[bool] = False

    def __init__(self, kernel: str | Kernel, *, gamma: float | str = "mean", random_state: RandomState = None):
        self.kernel = kernel
        self.gamma = gamma
        self.random_state = random_state

    @classmethod
    def of_rows(cls, kernel: Kernel, rows: Rows) -> Self:
        """Return the values of a fitted kernel with these rows."""
        features = cls(kernel)
        features.kernel_, features.map_, features.rows_ = kernel, None, rows
        features._n_features_out, features.n_features_in_ = rows.shape
        return features


class PrecomputedValues(IdentityMap):
    """Features (K(x, x_1), .., K(x, x_n)) that are the entries of the row x: those of the fit are the kernel matrix."""

    kernel = Precomputed()  # type: ignore[assignment]
    kernel_: Precomputed  # type: ignore[assignment]
    rows_: np.ndarray

    @classmethod
    def of_size(cls, n_rows: int) -> Self:
        """Return the features that ``n_rows`` rows of a fit give, without their values."""
        features = cls()
        features.kernel_, features.n_features_in_ = cls.kernel, n_rows
        return features

    def fit(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Take the kernel matrix (n, n). Raise DataError unless it is square."""
        self.kernel_, rows = self.kernel, validated_rows(self, X, reset=True, signed=True)
        if rows.shape[0] != rows.shape[1]:
            raise DataError(
                Message("{kernel='precomputed'} takes the kernel matrix (n, n) of n labelled rows; got {}.", rows.shape)
            )
        self.rows_ = _arrays.to_dense(rows)
        return self

    def gram_into(self, square: np.ndarray) -> np.ndarray:
        """Write the kernel matrix into ``square``; return its diagonal, (n,)."""
        square[:] = self.rows_
        return self.rows_.diagonal()

    def simplified(self, coef: np.ndarray, intercept: np.ndarray) -> Folded:
        """See ``FittedFeatures``: new rows bring their values, and those of the fit are not kept."""
        return Folded(self.of_size(self.n_features_in_), coef, intercept)

    def describe(self) -> str:
        """Return "values that are given"."""
        return "values that are given"


class TransformerFeatures(FittedFeatures):
    """Features of a fitted transformer of scikit-learn."""

    kernel_ = Linear()
    n_features_in_ = _n_features_out = 0

    def __init__(self, transformer: TransformerMixin, n_bins: int, n_features: int):
        self.transformer, self.n_features_in_, self._n_features_out = transformer, n_bins, n_features

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """See ``FittedFeatures``."""
        out[:] = _arrays.to_dense(self.transformer.transform(rows))
        if shift is not None:
            out -= shift


class MapProducts(ExactFeatures):
    """Features (z(x) . z(x_1), .., z(x) . z(x_n)) for the features z of an unfitted map, or of any transformer."""

    def __init__(self, map: Features | TransformerMixin):
        self.map = map

    @property
    def exact_kernel(self) -> Kernel:
        """The kernel of the map, which says what rows it takes; any transformer checks that itself."""
        return self.map.exact_kernel if isinstance(self.map, Features) else Linear()

    @property
    def _takes_signs(self) -> bool:
        return self.exact_kernel.is_signed

    def footprint(self, n_bins: int) -> Footprint:
        """See ``ExactFeatures``."""
        return Footprint(MOST_ROWS, n_bins)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the map, and keep the rows as mapped; see ``ExactFeatures.fit``."""
        rows = validated_rows(self, X, reset=True, signed=self._takes_signs)
        n = self._n_features_out = rows.shape[0]
        drawn = slice(None) if sample_weight is None else rows_by_weight(np.asarray(sample_weight), n, 0)
        fitted = clone(self.map).fit(_arrays.take_rows(rows, drawn))
        if not isinstance(fitted, FittedFeatures):
            width = fitted.transform(_arrays.take_rows(rows, slice(1))).shape[1]
            fitted = TransformerFeatures(fitted, rows.shape[1], width)
        self.map_, self.kernel_, self.rows_ = fitted, Linear(), KeptRows(fitted.mapped(rows))
        return self
