"""The map of the linear kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._types import CSR, Array, ArrayLike, ArrayMap, MatrixLike, Rows, Transformed
from chimap._validation import validated_rows
from chimap.kernels import Linear
from chimap.model_files import Transformer

if TYPE_CHECKING:
    from sklearn.utils import Tags


class IdentityMap(OneToOneFeatureMixin, Transformer, BaseEstimator):
    """Take the bins themselves as features, which is exact for the linear kernel.

    Entries may have either sign. Sparse rows stay sparse.

    Attributes
    ----------
    kernel_ : Linear
        The linear kernel.
    n_features_in_ : int
        Number of bins.

    Examples
    --------
    >>> import numpy as np
    >>> IdentityMap().fit_transform(np.array([[1.0, -2.0]]))
    array([[ 1., -2.]])
    """

    n_features_in_: int
    kernel_: Linear

    _keeps_zeros = True

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> IdentityMap:
        """Take the number of bins from rows X (n, bins); y is not used.

        Raises DataError for NaN and infinite entries.
        """
        validated_rows(self, X, reset=True, signed=True)
        self.kernel_ = Linear()
        return self

    def transform(self, X: MatrixLike) -> Transformed:
        """Return rows X (n, bins) as they are, checked: dense, CSR, or a tensor of torch (or an array of cupy)."""
        check_is_fitted(self)
        return validated_rows(self, X, reset=False, signed=True, on_device=True)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)

    def describe(self) -> str:
        """Return "the bins as they are"."""
        return "the bins as they are"

    def array_features(self, rows: Array) -> Array:
        """Return rows of any array library as they are."""
        return rows

    def bound(self, like: Array) -> ArrayMap:
        """Return ``array_features`` as a function for arrays such as ``like``."""
        return self.array_features

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write checked rows, dense or CSR, minus ``shift`` into ``out`` (n, bins) of their dtype."""
        self.transform_into(_arrays.to_dense(rows), out)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def transform_into(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Copy dense rows into ``out``."""
        out[:] = rows

    def transform_sparse(self, rows: CSR) -> CSR:
        """Return CSR rows as they are."""
        return _arrays.to_sparse(_arrays.as_rows(rows))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
