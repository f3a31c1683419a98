"""The base class of maps of additive kernels: fit on values, transform dense and sparse rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Annotated, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops, _threads
from chimap._catalogue import Catalogue
from chimap._errors import InputError
from chimap._messages import Message
from chimap._onnx import Value
from chimap._types import CSR, Array, ArrayLike, ArrayMap, MatrixLike, Parameters, Rows, Shape
from chimap._validation import DataError, ParameterError, check_positive, validated_rows
from chimap.features.additive.densities import MOST_ALIKE, VALUE_BYTES, value_counts
from chimap.features.base import Features, Footprint, gamma_bytes, linear_in_features
from chimap.features.mapped_functions import MappedModel
from chimap.kernels import AdditiveKernel, Kernel, as_kernel
from chimap.kernels.additive import onnx_signature_power, signature_powers

_HEADROOM = 10  # powers of two below the largest number, for sums of a few bins, and of a bin and a node


def check_magnitudes(rows: Rows, largest: float) -> None:
    """Raise DataError for checked rows, dense or CSR, with magnitudes so large that kernel values overflow.

    ``largest`` is the largest of all magnitudes; the error names its place.
    """
    most = float(np.ldexp(np.finfo(rows.dtype).max, -_HEADROOM))
    if largest <= most:
        return
    column = int(np.argmax(_arrays.column_maxima(rows)))
    row = int(np.argmax(np.abs(_arrays.to_dense(_arrays.take_columns(rows, np.array([column])))[:, 0])))
    raise DataError(
        f"X, row {row}, column {column}: {largest:.3g} is above {most:.2g}, where kernel values overflow "
        f"({rows.dtype}). Scale the rows down."
    )


class AdditiveMap(Features):
    """A map Psi with K(x, y) ~ Psi(x) . Psi(y) for an additive kernel, with ``n_terms`` features for each bin.

    Columns are blocks by term: column q * n_bins + i is term q of bin i. Psi(0) = 0, so sparse rows give sparse
    features. float32 stays float32; integers become float64.

    A subclass lists the kernels that it approximates (``kernels``), fits on the non-zero magnitudes (``_fit_values``,
    or on the rows where bins differ: ``_fit_rows``) and evaluates magnitudes (``_evaluate``). Signs, the gamma variant
    (where the subclass maps the plain kernel), sparse rows and checks are handled by the base classes.

    Attributes
    ----------
    kernel_ : AdditiveKernel
        The exact kernel that the map approximates.
    n_features_in_ : int
        Number of bins.
    largest_ : ndarray of shape (bins,)
        Largest magnitude in each bin.
    smallest_ : float
        Smallest non-zero magnitude of all bins; 1 where all entries are 0.
    """

    keeps_zeros = True  # the features of 0 are 0
    # Subclasses whose _evaluate has gamma = 1 set this to True; the power is then applied here.
    _maps_plain_kernel = False

    kernels: ClassVar[tuple[str, ...] | None] = None  # names of the kernels it approximates, None for all

    kernel: str | Kernel
    n_terms: int
    n_features_in_: int
    kernel_: AdditiveKernel
    largest_: Annotated[np.ndarray, Shape("n_features_in_")]
    smallest_: float

    def prescription(self) -> Parameters:
        return {"features": "additive", "kernel": self.kernel, "map": self}

    def footprint(self, n_bins: int) -> Footprint:
        return Footprint(self._terms_at_most * n_bins)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes that fitting the map takes, or gamma before it if that takes more."""
        mapping = self._fitting_bytes(int(n_rows * row_bytes / itemsize), n_rows, itemsize)
        return max(gamma_bytes(self.exact_kernel, n_rows, row_bytes, itemsize), mapping)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> AdditiveMap:
        """Fit the map to the values in the rows and to how often each of them occurs.

        Raises DataError also where kernel values overflow at the largest magnitude.
        """
        self.kernel_ = self._checked_kernel()
        self._check_parameters()
        rows = validated_rows(self, X, reset=True, signed=self.kernel_.is_signed)
        self.largest_ = _arrays.column_maxima(rows)
        check_magnitudes(rows, float(self.largest_.max(initial=0.0)))
        smallest = _arrays.smallest_magnitude(rows)
        self.smallest_ = smallest if np.isfinite(smallest) else 1.0
        self._fit_rows(rows)
        return self

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return names "<bin>_term<q>" in the order of the columns.

        Parameters
        ----------
        input_features : sequence of str, default=None
            Names of the bins. None takes the column names that ``fit`` saw, or x0, x1, ....

        Returns
        -------
        ndarray of str
            A name for each feature.
        """
        check_is_fitted(self)
        names = self._bin_names(input_features)
        return np.array([f"{name}_term{q}" for q in range(self._n_terms_out) for name in names], dtype=object)

    def _bin_names(self, input_features: Sequence[str] | None) -> Sequence[str]:
        if input_features is not None:
            return input_features
        return getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])

    def describe(self) -> str:
        """Return a short description of the fitted map, such as "OptimalMap, 2 terms per bin"."""
        n = self._n_terms_out
        return f"{type(self).__name__}, {n} term{'s' if n != 1 else ''} per bin"

    @property
    def _n_terms_out(self) -> int:
        return self.n_terms

    @property
    def _differs_by_bin(self) -> bool:
        """Whether equal values of two bins may have different features."""
        return False

    @property
    def n_straight_pieces(self) -> int | None:
        """Number of equal pieces of a bin's range on which features are straight lines; None where they are curved."""
        return None

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: additive kernels, those of ``kernels`` if there are any, with any gamma, signed or not."""
        return isinstance(kernel, AdditiveKernel) and (cls.kernels is None or kernel.name in cls.kernels)

    @property
    def _terms_at_most(self) -> int:
        """Upper bound on the terms of a bin, known before fitting, to plan memory."""
        return self.n_terms

    def _fitting_bytes(self, n_values: int, n_rows: int, itemsize: int) -> int:
        """Return the bytes that fitting takes besides n_rows rows with n_values non-zero entries, to plan memory."""
        # values sorted and counted together; or a copy of the values of all bins
        pooled = VALUE_BYTES * min(MOST_ALIKE, n_values)
        return max(pooled, 8 * n_values) if self._fits_by_bin else pooled

    @property
    def _fits_by_bin(self) -> bool:
        """Whether fitting uses the values of each bin on its own."""
        return False

    def _checked_kernel(self) -> AdditiveKernel:
        kernel = as_additive(self.kernel, type(self).__name__)
        if not self.takes(kernel):
            able = [make.__name__ for make in CATALOGUE.values() if make.takes(kernel)]
            raise InputError(
                f"{type(self).__name__} approximates {' and '.join(self.kernels or ())}; got {kernel.name!r}. "
                f"Maps of {kernel.name!r}: {', '.join(able)}."
            )
        return kernel

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters out of range, before any row is read."""
        check_positive(self.n_terms, "n_terms", integer=True)

    def _fit_rows(self, rows: Rows) -> None:
        """Learn from checked rows, dense or CSR; by default from their non-zero magnitudes."""
        self._fit_values(*value_counts(rows, self.smallest_, float(self.largest_.max(initial=0.0))))

    def _fit_values(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Learn from positive magnitudes and how often each occurs, both float64; by default nothing.

        The magnitudes ascend, and there may be none.
        """

    @property
    def _n_features_out(self) -> int:
        return self._n_terms_out * self.n_features_in_

    def transform_into(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write the features of checked dense rows into an array, without checks or further allocation.

        Parameters
        ----------
        rows : ndarray of shape (n, bins)
            Checked, C-contiguous rows in float32 or float64.
        out : ndarray of shape (n, n_features_out)
            Array that receives the features, of the dtype of the rows.
        """
        n, n_bins = rows.shape
        self._evaluate_signed(rows, np.arange(n_bins), out.reshape(n, self._n_terms_out, n_bins))

    def array_features(self, rows: Array) -> Array:
        """Return the features of checked dense rows by operations of the rows' array library.

        All libraries with the Python array API are supported, including numpy, for which the compiled loops are much
        faster. A map without a formula for such arrays (``_formula``) runs its compiled loop on the host.
        """
        xp = _arrays.namespace(rows)
        magnitudes = xp.abs(rows) if self.kernel_.is_signed else rows
        features = self._formula(xp, magnitudes)
        if self._maps_plain_kernel and self.kernel_.gamma != 1:
            zero = xp.zeros_like(magnitudes)
            base = xp.where(magnitudes > 0, magnitudes, zero + 1)
            powers = xp.where(magnitudes > 0, base ** (0.5 * (self.kernel_.gamma - 1)), zero)
            features = features * powers[:, None, :]
        if self.kernel_.is_signed:
            features = features * xp.sign(rows)[:, None, :]
        return xp.reshape(features, (rows.shape[0], self._n_features_out))

    def on_device(self, like: Array) -> ArrayMap:
        """Return ``array_features`` as a function for arrays such as ``like``.

        Random features need this method to copy their frequencies to the device of ``like``; a map has nothing to copy.
        """
        return self.array_features

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the dense features of checked rows, minus a shift, into an array."""
        if _arrays.is_sparse(rows):
            self.transform_sparse(rows).toarray(out=out)
        else:
            self.transform_into(rows, out)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def transform_sparse(self, rows: CSR) -> CSR:
        # The entries are evaluated as one dense row; the CSR layout is built afterwards.
        features = np.empty((1, self._n_terms_out, rows.nnz), dtype=rows.dtype)
        self._evaluate_signed(rows.data.reshape(1, -1), rows.indices, features)
        nnz = self._n_terms_out * rows.nnz
        index = np.int32 if max(nnz, self._n_features_out) < 2**31 else np.int64
        data, indices = np.empty(nnz, dtype=rows.dtype), np.empty(nnz, dtype=index)
        _loops.interleave_sparse(features[0], rows.indices, rows.indptr, rows.shape[1], data, indices)
        indptr = rows.indptr.astype(index) * self._n_terms_out
        return _arrays.csr(data, indices, indptr, (rows.shape[0], self._n_features_out))

    def _prepare(self, dtype: np.dtype) -> None:
        """Build what evaluation in this dtype needs before threads share it; by default nothing."""

    @abstractmethod
    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (rows, terms, columns) with the features of non-negative magnitudes (rows, columns).

        Column j belongs to bin bins[j]. For dense rows the columns are all bins in order; for CSR rows they are the
        stored entries, as one row. ``out`` need not be contiguous.
        """

    def _formula(self, xp: ModuleType, x: Array) -> Array:
        """Return the features (n, terms, bins) of magnitudes x (n, bins) by functions xp of their array library.

        By default the compiled loop runs on the host.
        """
        magnitudes = np.ascontiguousarray(_arrays.to_host(x))
        n, n_bins = magnitudes.shape
        out = np.empty((n, self._n_terms_out, n_bins), magnitudes.dtype)
        self._prepare(magnitudes.dtype)
        self._evaluate(magnitudes, np.arange(n_bins), out)
        return _arrays.as_like(out, x)

    def _evaluate_signed(self, rows: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        self._by_threads(self._evaluate_rows, rows, bins, out)

    def _by_threads(self, call: Callable[..., None], rows: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        """Call ``call`` with parts of rows, their bins and what is written for them: of columns if there is one row.

        A single row has many numbers, the entries of sparse rows.
        """
        self._prepare(rows.dtype)
        if rows.shape[0] == 1:
            _threads.over_rows(rows.shape[1], 1, lambda part: call(rows[:, part], bins[part], out[..., part]))
        else:
            _threads.over_rows(rows.shape[0], rows.shape[1], lambda part: call(rows[part], bins, out[part]))

    def _evaluate_rows(self, rows: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        magnitudes = np.abs(rows) if self.kernel_.is_signed else rows
        self._evaluate(magnitudes, bins, out)
        if self._maps_plain_kernel and self.kernel_.gamma != 1:
            out *= signature_powers(magnitudes, self.kernel_.gamma)[:, None, :]
        if self.kernel_.is_signed:
            out *= np.sign(rows)[:, None, :]

    def onnx(self, x: Value) -> Value:
        """Return the features as nodes that compute what the compiled loop computes; see ``FittedFeatures``."""
        return self._onnx_signed(x).reshaped(0, self._n_terms_out * int(self.n_features_in_))

    def _onnx_signed(self, x: Value) -> Value:
        """Return Psi (n, terms, bins): the terms of the magnitudes times the factor of gamma times the signs."""
        kernel = self.kernel_
        magnitudes = x.apply("Abs") if kernel.is_signed else x
        out = self._onnx_terms(magnitudes)
        if self._maps_plain_kernel and kernel.gamma != 1:
            out = out * onnx_signature_power(magnitudes, kernel.gamma).expanded(1)
        return out * x.apply("Sign").expanded(1) if kernel.is_signed else out

    def _onnx_terms(self, x: Value) -> Value:
        """Return the terms (n, terms, bins) of magnitudes x (n, bins)."""
        raise InputError(
            Message(
                "{} cannot be written as ONNX. Fit with another additive map, such as OptimalMap, or export the "
                "weights ({format='weights'}).",
                type(self).__name__,
            )
        )

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
        return linear_in_features(self, coef, intercept)


def as_additive(kernel: str | Kernel, owner: str) -> AdditiveKernel:
    """Return the additive kernel of a name or object; ``owner`` is the class that the error names.

    Raises ValueError for other kernels, and says what takes exponential ones.
    """
    resolved = as_kernel(kernel)
    if not isinstance(resolved, AdditiveKernel):
        raise InputError(
            f"{owner} maps additive kernels; got {resolved.name!r}. For exponential kernels use "
            "FourierFeatures, which draws random features of mapped rows."
        )
    return resolved


def check_map(candidate: object) -> None:
    """Raise ValueError unless ``candidate`` is an additive map (not a name, a class or another transformer)."""
    if not isinstance(candidate, AdditiveMap):
        raise ParameterError("map", candidate, "an additive map such as OptimalMap(n_terms=2)")


CATALOGUE = Catalogue[type[AdditiveMap]](
    {
        "optimal": "chimap.features.additive.optimal:OptimalMap",
        "compressed": "chimap.papers.compressed:CompressedMap",
        "direct": "chimap.features.additive.direct:DirectMap",
        "chebyshev": "chimap.papers.chebyshev:ChebyshevMap",
        "homogeneous": "chimap.features.additive.homogeneous:HomogeneousMap",
        "anchors": "chimap.papers.anchors:AnchorMap",
        "staircase": "chimap.papers.staircase:StaircaseMap",
        "kpca": "chimap.papers.kpca:AdditiveKPCA",
    }
)
"""The maps by name."""
