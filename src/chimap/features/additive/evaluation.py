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

    A subclass evaluates magnitudes (``_evaluate``, and ``_formula`` for arrays of other libraries). Signs, the power of
    the gamma variant (where the subclass maps the plain kernel, ``_maps_plain_kernel``) and the layout of sparse rows
    are handled here.
    """

    n_features_in_: int
    kernel_: AdditiveKernel

    # Subclasses whose _evaluate has gamma = 1 set this to True; the power is then applied here.
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

        Parameters
        ----------
        rows : array of shape (n, bins)
            Checked dense rows of any library with the Python array API.

        Returns
        -------
        array of shape (n, n_features_out)
            Features in the library, on the device and in the dtype of the rows.
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
        """Return ``array_features`` as a function for arrays such as ``like``.

        Random features need this method to copy their frequencies to the device of ``like``; a map has nothing to copy.

        Parameters
        ----------
        like : array of torch, cupy or numpy
            Any array of the library, device and dtype of the rows to come.

        Returns
        -------
        callable
            Maps checked dense rows (n, bins) to features (n, n_features_out).
        """
        return self.array_features

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the dense features of checked rows, minus a shift, into an array.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows in float32 or float64.
        out : ndarray of shape (n, n_features_out)
            Array that receives the features, of the dtype of the rows.
        shift : ndarray of shape (n_features_out,), default=None
            Subtracted from the features of every row; None subtracts nothing.
        """
        if _arrays.is_sparse(rows):
            self.transform_sparse(rows).toarray(out=out)
        else:
            self.transform_into(rows, out)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def transform_sparse(self, rows: CSR) -> CSR:
        """Return the CSR features of checked CSR rows.

        Parameters
        ----------
        rows : CSR matrix of shape (n, bins)
            Checked rows in float32 or float64.

        Returns
        -------
        CSR matrix of shape (n, n_features_out)
            Features in the dtype of the rows.
        """
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
        return _arrays.beside(out, x)

    def _evaluate_signed(self, rows: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        self._prepare(rows.dtype)
        # A single row of many numbers (the entries of sparse rows) is split over threads by columns.
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
