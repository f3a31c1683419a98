"""Codes: the numbers of the finitely many features that a bin of an ``AnchorMap`` has."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _threads
from chimap._types import MatrixLike, Transformed
from chimap._validation import validated_rows
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.codes import code_dtype


class CodedMap(AdditiveMap):
    """A map that rounds values to anchors, of which each has features: those that a code names.

    Learned by what derives from it: ``anchors_`` (bins, n_anchors), ``n_terms_``, ``n_codes_``, ``_factors`` (n_terms_,
    bins or 1, codes of magnitudes), which times ``_amplitudes`` (bins,) are the features.
    """

    n_anchors: int
    n_neighbors: int
    anchors_: np.ndarray
    scale_: np.ndarray
    n_terms_: int
    n_codes_: int
    _factors: np.ndarray
    _amplitudes: np.ndarray

    # --- of what derives from it

    @abstractmethod
    def _nearest(self, magnitudes: np.ndarray, bins: np.ndarray, codes: np.ndarray) -> None:
        """First of the k nearest anchors of each value, plus ``_lift`` where the value is not 0."""

    @property
    @abstractmethod
    def _lift(self) -> int:
        """1 where code 0 is kept for the value 0, because even the first window of neighbours is not zero."""

    @property
    @abstractmethod
    def _blends(self) -> bool:
        """Whether neighbours are weighted by distance, which gives a continuum of features."""

    # --- codes and their tables

    @property
    def has_codes(self) -> bool:
        """Whether a bin's features are finitely many, which codes name."""
        return not self._blends

    def encode(self, X: MatrixLike) -> Transformed:
        """Codes (n, bins) of rows X (n, bins), uint8 or uint16: dense to dense, sparse to CSR; 0 is the code of 0.
        Arrays of torch and cupy give numpy's: codes are looked up by compiled loops.

        With one neighbour a code is the number of an anchor; with k of uniform weights, one more than that of the
        first of them. Where the kernel is signed, codes from the middle on are those of the negative values.

        Raises ValueError for more than one neighbour weighted by distance: no table then holds the features.
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
        """What magnitudes of each code are above, (bins, codes); 0 is of code 0. Infinite where a bin lacks a code."""
        check_is_fitted(self)
        self._check_tables()
        k, n_anchors = self.n_neighbors, self.n_anchors
        middles = self.anchors_[:, : n_anchors - k] / 2 + self.anchors_[:, k:] / 2
        first = np.zeros((middles.shape[0], 1 + self._lift))
        return np.concatenate([first, middles], axis=1)

    def tables(self, weights: np.ndarray) -> np.ndarray:
        """T[j, i, c] = w_j . (features of code c of bin i): tables (t, bins, n_codes_) of weights (t, n_features).

        What a linear model on the features is on the codes: w_j . Psi(x) = sum_i T[j, i, code of x_i].
        """
        return self.tables_by_bin(weights).transpose(2, 0, 1)

    def tables_by_bin(self, weights: np.ndarray) -> np.ndarray:
        """The same as (bins, n_codes_, t), the order of ``look_up``: the targets of an entry lie side by side."""
        check_is_fitted(self)
        self._check_tables()
        weights = np.atleast_2d(weights)
        by_bin = weights.reshape(weights.shape[0], self.n_terms_, -1).transpose(2, 1, 0)
        scaled = np.multiply(by_bin, self._amplitudes[:, None, None], order="C")  # for BLAS, a product a bin
        half = self._factors.transpose(1, 2, 0) @ scaled
        return np.concatenate([half, -half[:, 1:]], axis=1) if self.kernel_.is_signed else half

    def weights_by_term(self, sums: np.ndarray) -> np.ndarray:
        """sum_c sums[i, c] (features of code c of bin i): (t, n_features) of sums (bins, n_codes_, t).

        The transpose of ``tables_by_bin``; turns sums over the rows of each code into sums over features.
        """
        half = self._factors.shape[2]
        if self.kernel_.is_signed:
            sums = np.concatenate([sums[:, :1], sums[:, 1:half] - sums[:, half:]], axis=1)
        by_bin = (self._factors.transpose(1, 0, 2) @ sums) * self._amplitudes[:, None, None]
        return by_bin.transpose(2, 1, 0).reshape(sums.shape[2], -1)

    def _check_tables(self) -> None:
        if self._blends:
            raise ValueError(
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
