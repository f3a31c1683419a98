"""The map of the Dirichlet whitening kernel."""

from __future__ import annotations

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from chimap import _arrays, _loops, _threads
from chimap._errors import InputError
from chimap._onnx import Value
from chimap._types import Array, ArrayLike, ArrayMap, MatrixLike, Rows
from chimap._validation import check_row_sums, validated_rows
from chimap.features.base import Features, Footprint
from chimap.features.mapped_functions import LinearFunction, MappedModel, dense
from chimap.kernels import DirichletKernel, Kernel, as_kernel

_BLOCK_NUMBERS = 2**20  # entries of a block of sparse rows that is made dense at once


class DirichletMap(OneToOneFeatureMixin, Features):
    """Map rows so that the dot product is the Dirichlet whitening kernel exactly, with as many features as bins.

        Psi(x) = A (ln(x / |x|_1 + f) - mu).

    A'A = G^-1, so that under the Dirichlet distribution the features are uncorrelated, of mean 0 and variance 1 (for f
    = 0). A = (I + a u u' / |u|^2) diag(u) takes O(bins) operations for each row; ``kernels.dirichlet_likelihood`` gives
    mu, u and a. ln(0 + f) is not 0, so that sparse rows give dense features; an empty row is ln(0 + f) in every bin.
    float32 stays float32; integers become float64.

    Parameters
    ----------
    kernel : str or DirichletKernel, default="dirichlet"
        "dirichlet", or a ``DirichletKernel`` with its beta and offset f; each of them is a number or fitted on the
        rows.

    Attributes
    ----------
    kernel_ : DirichletKernel
        The kernel with beta and offset as numbers.
    beta_ : ndarray of shape (bins,)
        Parameters of the Dirichlet distribution.
    offset_ : float
        f.
    n_features_in_ : int
        Number of bins.

    References
    ----------
    Gui, Chi, Zhang and Bao, A probability distribution kernel based on whitening transformation, eq. 22.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet([1.0, 2.0, 0.5], size=50)
    >>> psi = DirichletMap().fit(X)
    >>> Z = psi.transform(X)
    >>> Z.shape, bool(abs(Z @ Z.T - psi.kernel_(X)).max() < 1e-10)
    ((50, 3), True)
    """

    n_features_in_: int
    kernel_: DirichletKernel

    def __init__(self, kernel: str | Kernel = "dirichlet"):
        self.kernel = kernel

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: Dirichlet kernels."""
        return isinstance(kernel, DirichletKernel)

    def footprint(self, n_bins: int) -> Footprint:
        """See ``Features``."""
        return Footprint(n_bins)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes of proportions, of flags for positive entries, and of logarithms or squares."""
        return 24 * int(n_rows * row_bytes / itemsize)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> DirichletMap:
        """Fit beta and the offset on rows, in one pass over them.

        Raises DataError also for fewer than two bins or non-empty rows.
        """
        kernel = as_kernel(self.kernel)
        if not isinstance(kernel, DirichletKernel):
            raise InputError(
                f"DirichletMap takes the kernel 'dirichlet'; got {kernel.name!r}. Use OptimalMap for additive kernels "
                "and FourierFeatures for exponential ones."
            )
        rows = validated_rows(self, X, reset=True, signed=False)
        kernel.check_width(rows.shape[1])
        self.kernel_ = kernel.fitted(rows)
        return self

    @property
    def beta_(self) -> np.ndarray:
        """Parameters of the distribution, of shape (bins,)."""
        return np.array(self.kernel_.beta)

    @property
    def offset_(self) -> float:
        """The offset f that is added to rows of sum 1."""
        return float(self.kernel_.offset)

    def array_features(self, rows: Array) -> Array:
        """Return the features of checked dense rows by operations of the rows' array library."""
        xp, w = _arrays.namespace(rows), self.kernel_.whitening
        sums = xp.sum(rows, axis=1, keepdims=True)
        if not bool(xp.all(xp.isfinite(sums))):
            check_row_sums(_arrays.to_host(sums[:, 0]))
        scale, mean = _arrays.as_like(w.scale, rows), _arrays.as_like(w.mean, rows)
        offset = max(self.offset_, float(xp.finfo(rows.dtype).smallest_normal))
        shares = rows / xp.where(sums > 0, sums, xp.ones_like(sums))
        Z = scale * (xp.log(shares + offset) - mean)
        return Z + float(w.common) * xp.sum(scale * Z, axis=1, keepdims=True) * scale

    def bound(self, like: Array) -> ArrayMap:
        """Return ``array_features`` as a function for arrays such as ``like``."""
        return self.array_features

    def describe(self) -> str:
        """Return a short description of the map, "DirichletMap, one term per bin"."""
        return "DirichletMap, one term per bin"

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the features of checked rows, minus a shift, into an array."""
        size = max(1, _BLOCK_NUMBERS // rows.shape[1]) if _arrays.is_sparse(rows) else max(1, rows.shape[0])
        for first in range(0, rows.shape[0], size):
            part = slice(first, first + size)
            self._dense_into(_arrays.to_dense(_arrays.take_rows(rows, part)), out[part], first)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def _dense_into(self, rows: np.ndarray, out: np.ndarray, first_row: int) -> None:
        kind, w = out.dtype.type, self.kernel_.whitening
        # The loop's logarithm does not take subnormal numbers of this type.
        offset = kind(max(self.offset_, np.finfo(kind).tiny))
        scale, mean, common = w.scale.astype(kind), w.mean.astype(kind), kind(w.common)
        sums = np.empty(rows.shape[0], dtype=kind)
        _threads.over_rows(
            rows.shape[0],
            rows.shape[1],
            lambda part: _loops.dirichlet_features(rows[part], offset, scale, mean, common, out[part], sums[part]),
        )
        check_row_sums(sums, first_row=first_row)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)

    def onnx(self, x: Value) -> Value:
        """See ``FittedFeatures``."""
        w, z = self.kernel_.whitening, self.kernel_.onnx_logs(x)
        return z + (z * w.scale).sum(1, keep=True) * w.common * w.scale

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
        """See ``FittedFeatures``: z = A v is linear in the scaled logarithms v of the bins, A = I + common s s'."""
        w = self.kernel_.whitening
        by_bin = coef + w.common * np.outer(w.scale, w.scale @ coef)
        turned = np.eye(coef.shape[0]) + w.common * np.outer(w.scale, w.scale)

        def rows(X: Rows) -> np.ndarray:
            return np.asarray(np.linalg.solve(turned, dense(self.mapped(X)).T).T)

        return MappedModel(rows, np.arange(coef.shape[0]), LinearFunction(by_bin, intercept))
