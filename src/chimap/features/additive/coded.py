"""Maps whose bins take finitely many features, and the codes that number them."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _threads
from chimap._errors import InputError
from chimap._types import MatrixLike, Transformed
from chimap._validation import validated_rows
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.codes import code_dtype


class CodedMap(AdditiveMap):
    """A map that rounds values to anchors; a code names the features of an anchor, or of several.

    Subclasses learn ``anchors_`` (bins, n_anchors), ``n_terms_``, ``n_codes_`` and ``_factors`` (n_terms_, bins or 1,
    codes of magnitudes), whose products with ``_amplitudes`` (bins,) are the features.
    """

    n_anchors: int
    n_neighbors: int
    anchors_: np.ndarray
    scale_: np.ndarray
    n_terms_: int
    n_codes_: int
    _factors: np.ndarray
    _amplitudes: np.ndarray

    # --- provided by subclasses

    @abstractmethod
    def _nearest(self, magnitudes: np.ndarray, bins: np.ndarray, codes: np.ndarray) -> None:
        """Write the first of each value's k nearest anchors into ``codes``, plus ``_lift`` where the value is not 0."""

    @property
    @abstractmethod
    def _lift(self) -> int:
        """1 where code 0 is reserved for the value 0, because the first window of neighbours does not map to zero."""

    @property
    @abstractmethod
    def _blends(self) -> bool:
        """Whether neighbours are weighted by distance, which gives a continuum of features."""

    # --- codes and their tables

    @property
    def has_codes(self) -> bool:
        """Whether a bin takes finitely many features, so that codes can name them."""
        return not self._blends

    def encode(self, X: MatrixLike) -> Transformed:
        """Return the codes of rows.

        With one neighbour a code is the number of an anchor; with k neighbours of uniform weights it is one more than
        the number of the first of them. The code of 0 is 0. Where the kernel is signed, the upper half of the codes
        belongs to negative values.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows of any library: numpy, scipy, torch or cupy.

        Returns
        -------
        ndarray or CSR matrix of shape (n, bins)
            Codes as uint8 or uint16: CSR for sparse rows, else dense. Rows on a device give numpy arrays, since
            compiled loops look the codes up.

        Raises
        ------
        ValueError
            If more than one neighbour is weighted by distance: no table then holds the features.
        DataError
            If the rows have another number of bins, or entries that ``fit`` refuses.
        """
        check_is_fitted(self)
        self._check_tables()
        rows = validated_rows(self, X, reset=False, signed=self.kernel_.is_signed)
        if not _arrays.is_sparse(rows):
            return self._encode(rows, np.arange(rows.shape[1]))
        codes = self._encode(rows.data.reshape(1, -1), rows.indices)[0]
        matrix = _arrays.csr(codes, rows.indices.copy(), rows.indptr.copy(), rows.shape)
        matrix.eliminate_zeros()
        return matrix

    def lower_borders(self) -> np.ndarray:
        """Return the numbers that magnitudes of each code exceed.

        Returns
        -------
        ndarray of shape (bins, codes of magnitudes)
            Lower borders; 0 for code 0 (and for code 1 where code 0 is only for the value 0), infinite where a bin
            lacks a code.
        """
        check_is_fitted(self)
        self._check_tables()
        k, n_anchors = self.n_neighbors, self.n_anchors
        middles = self.anchors_[:, : n_anchors - k] / 2 + self.anchors_[:, k:] / 2
        first = np.zeros((middles.shape[0], 1 + self._lift))
        return np.concatenate([first, middles], axis=1)

    def tables(self, weights: np.ndarray) -> np.ndarray:
        """Return tables that turn a linear model of features into one of codes.

            T[j, i, c] = w_j . (features of code c of bin i), so that w_j . Psi(x) = sum_i T[j, i, code of x_i].

        Parameters
        ----------
        weights : ndarray of shape (t, n_features)
            Weights w_j of the features for t outputs.

        Returns
        -------
        ndarray of shape (t, bins, n_codes_)
            The tables.
        """
        return self.tables_by_bin(weights).transpose(2, 0, 1)

    def tables_by_bin(self, weights: np.ndarray) -> np.ndarray:
        """Return ``tables`` in the order that ``look_up`` takes: the outputs of an entry are contiguous.

        Parameters
        ----------
        weights : ndarray of shape (t, n_features)
            Weights of the features for t outputs.

        Returns
        -------
        ndarray of shape (bins, n_codes_, t)
            The tables.
        """
        check_is_fitted(self)
        self._check_tables()
        weights = np.atleast_2d(weights)
        by_bin = weights.reshape(weights.shape[0], self.n_terms_, -1).transpose(2, 1, 0)
        scaled = np.multiply(
            by_bin, self._amplitudes[:, None, None], order="C"
        )  # contiguous for BLAS, which multiplies bin by bin
        half = self._factors.transpose(1, 2, 0) @ scaled
        return np.concatenate([half, -half[:, 1:]], axis=1) if self.kernel_.is_signed else half

    def weights_by_term(self, sums: np.ndarray) -> np.ndarray:
        """Return sum_c sums[i, c] (features of code c of bin i): sums over the rows of each code as sums over features.

        This is the transpose of ``tables_by_bin``.

        Parameters
        ----------
        sums : ndarray of shape (bins, n_codes_, t)
            Sums over the rows that have each code in each bin.

        Returns
        -------
        ndarray of shape (t, n_features)
            Sums over features.
        """
        half = self._factors.shape[2]
        if self.kernel_.is_signed:
            sums = np.concatenate([sums[:, :1], sums[:, 1:half] - sums[:, half:]], axis=1)
        by_bin = (self._factors.transpose(1, 0, 2) @ sums) * self._amplitudes[:, None, None]
        return by_bin.transpose(2, 1, 0).reshape(sums.shape[2], -1)

    def _check_tables(self) -> None:
        if self._blends:
            raise InputError(
                f"codes name finitely many features, but n_neighbors={self.n_neighbors} weighted by distance has a "
                "continuum of them. Use n_neighbors=1 or weights='uniform'."
            )

    def _encode(self, rows: np.ndarray, bins: np.ndarray) -> np.ndarray:
        self._prepare(rows.dtype)
        codes = np.empty(rows.shape, dtype=code_dtype(self.n_codes_))
        if rows.shape[0] == 1:
            _threads.over_rows(
                rows.shape[1], 1, lambda part: self._encode_part(rows[:, part], bins[part], codes[:, part])
            )
        else:
            _threads.over_rows(
                rows.shape[0], rows.shape[1], lambda part: self._encode_part(rows[part], bins, codes[part])
            )
        return codes

    def _encode_part(self, rows: np.ndarray, bins: np.ndarray, codes: np.ndarray) -> None:
        if not self.kernel_.is_signed:
            self._nearest(rows, bins, codes)
            return
        self._nearest(np.abs(rows), bins, codes)
        codes[(rows < 0) & (codes > 0)] += codes.dtype.type(self._factors.shape[2] - 1)
