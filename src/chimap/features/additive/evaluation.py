"""Features of signed rows, dense and sparse, from those of magnitudes."""

from __future__ import annotations

from abc import abstractmethod
from types import ModuleType

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._types import CSR, Array, ArrayMap, Rows
from chimap.kernels import AdditiveKernel
from chimap.kernels.additive import signature_powers


class MagnitudeFeatures:
    """Features of signed rows, dense, sparse or on a device, from a map of magnitudes.

    A subclass evaluates magnitudes (``_evaluate``). Signs, the gamma variant of the kernel (where the subclass maps the
    plain kernel) and sparse rows are handled here.
    """

    n_features_in_: int
    kernel_: AdditiveKernel

    # Subclasses whose _evaluate is that of gamma = 1 say so, and the power is applied here.
    _maps_plain_kernel = False
    _keeps_zeros = True

    @property
    @abstractmethod
    def _n_terms_out(self) -> int:
        """Number of features of each bin."""

    @property
    def _n_features_out(self) -> int:
        return self._n_terms_out * self.n_features_in_

    def transform_into(self, rows: np.ndarray, out: np.ndarray) -> None:
        """The same for checked, C-contiguous dense rows into ``out`` of their dtype: no allocation, no checks."""
        n, n_bins = rows.shape
        self._evaluate_signed(rows, np.arange(n_bins), out.reshape(n, self._n_terms_out, n_bins))

    def array_features(self, rows: Array) -> Array:
        """Features (n, n_features_out) of checked dense rows by the operations of their own kind of array.

        Any kind of the Python array API will do, numpy's too, for which the compiled loops are much faster. A map
        without a formula for them (``_formula``) is evaluated by its loop, on the host.
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

    def bound(self, like: Array) -> ArrayMap:
        """``array_features`` for arrays such as ``like``; random features keep their frequencies on its device so."""
        return self.array_features

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Dense features minus ``shift`` of checked rows, dense or CSR, into ``out`` of their dtype."""
        if _arrays.is_sparse(rows):
            self.transform_sparse(rows).toarray(out=out)
        else:
            self.transform_into(rows, out)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def transform_sparse(self, rows: CSR) -> CSR:
        """CSR features of checked CSR rows."""
        # The entries are one row of a matrix; the layout of CSR is put together afterwards.
        features = np.empty((1, self._n_terms_out, rows.nnz), dtype=rows.dtype)
        self._evaluate_signed(rows.data.reshape(1, -1), rows.indices, features)
        nnz = self._n_terms_out * rows.nnz
        index = np.int32 if max(nnz, self._n_features_out) < 2**31 else np.int64
        data, indices = np.empty(nnz, dtype=rows.dtype), np.empty(nnz, dtype=index)
        _loops.interleave_sparse(features[0], rows.indices, rows.indptr, rows.shape[1], data, indices)
        indptr = rows.indptr.astype(index) * self._n_terms_out
        return _arrays.csr(data, indices, indptr, (rows.shape[0], self._n_features_out))

    def _prepare(self, dtype: np.dtype) -> None:
        """Make what evaluation in this dtype needs, before threads share it; nothing by default."""

    @abstractmethod
    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        """Fill out (rows, terms, columns) from non-negative magnitudes (rows, columns); column j is of bin bins[j].

        The columns are all bins in order for dense rows, and the entries of CSR rows otherwise (as one row). out
        need not be contiguous.
        """

    def _formula(self, xp: ModuleType, x: Array) -> Array:
        """What ``_evaluate`` gives of all bins, (n, terms, bins), by functions xp of arrays such as x (n, bins)."""
        magnitudes = np.ascontiguousarray(_arrays.to_host(x))
        n, n_bins = magnitudes.shape
        out = np.empty((n, self._n_terms_out, n_bins), magnitudes.dtype)
        self._prepare(magnitudes.dtype)
        self._evaluate(magnitudes, np.arange(n_bins), out)
        return _arrays.beside(out, x)

    def _evaluate_signed(self, rows: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        self._prepare(rows.dtype)
        # One row of many numbers (the entries of sparse rows) is split like many rows.
        if rows.shape[0] == 1:
            _threads.over_rows(
                rows.shape[1],
                1,
                lambda part: self._evaluate_rows(rows[:, part], bins[part], out[:, :, part]),
            )
        else:
            _threads.over_rows(
                rows.shape[0], rows.shape[1], lambda part: self._evaluate_rows(rows[part], bins, out[part])
            )

    def _evaluate_rows(self, rows: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        magnitudes = np.abs(rows) if self.kernel_.is_signed else rows
        self._evaluate(magnitudes, bins, out)
        if self._maps_plain_kernel and self.kernel_.gamma != 1:
            out *= signature_powers(magnitudes, self.kernel_.gamma)[:, None, :]
        if self.kernel_.is_signed:
            out *= np.sign(rows)[:, None, :]
