"""The map of the linear kernel."""

from __future__ import annotations

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from chimap import _arrays
from chimap._onnx import Value
from chimap._types import CSR, Array, ArrayLike, ArrayMap, MatrixLike, Rows
from chimap._validation import validated_rows
from chimap.features.base import Features, Footprint, linear_in_features, median_bytes
from chimap.features.mapped_functions import MappedModel
from chimap.kernels import Kernel, Linear

_END = 2.0**64  # where tables of straight lines end


class IdentityMap(OneToOneFeatureMixin, Features):
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

    keeps_zeros = True  # the bins are the features
    _takes_signs = True
    kernel = "linear"

    n_features_in_: int
    kernel_: Linear

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: the linear kernel."""
        return isinstance(kernel, Linear)

    def footprint(self, n_bins: int) -> Footprint:
        return Footprint(n_bins)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        return median_bytes(Linear(), n_rows, row_bytes, itemsize)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> IdentityMap:
        """Take the number of bins from rows, whose entries are finite."""
        validated_rows(self, X, reset=True, signed=True)
        self.kernel_ = Linear()
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)

    def describe(self) -> str:
        """Return "the bins as they are"."""
        return "the bins as they are"

    def exact_functions(self, coef: np.ndarray) -> tuple[str, np.ndarray, np.ndarray]:
        """Return straight lines from 0 to the power of two at which their table ends: its slopes are the weights."""
        ends = np.zeros((coef.shape[0], 2, 1))
        ends[:, 1] = _END
        return "linear", ends[:, :, 0], ends * np.asarray(coef, np.float64)[:, None]

    def array_features(self, rows: Array) -> Array:
        """Return rows of any array library as they are."""
        return rows

    def on_device(self, like: Array) -> ArrayMap:
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

    def onnx(self, x: Value) -> Value:
        return x

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
        return linear_in_features(self, coef, intercept)
