"""Features from given landmarks: kernel values by one matrix product, and whitening by another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _blas
from chimap._types import Array, ArrayMap, Rows
from chimap.features.base import Folded
from chimap.features.landmarks.choosing import block_rows
from chimap.features.landmarks.kernel_values import add_to_all, exponentials, less_one
from chimap.features.landmarks.unit_gaussian import UnitGaussianMap
from chimap.features.landmarks.whitening import whitening

_FOLDED_ROWS = 512  # rows of the triangle that are in float64 at once


class WhitenedLandmarks:
    """Features z(x) = R^-T (K(x, l_1), .., K(x, l_m)) of chosen landmarks, with K_LL = R'R.

    A subclass fits ``unit_map_`` and chooses the landmarks, which ``_factorise`` takes as mapped rows.
    """

    unit_map_: UnitGaussianMap
    projection_: np.ndarray
    _mapped: np.ndarray
    _half_norms: np.ndarray
    _ones: np.ndarray
    n_landmarks_: int
    _n_features_out: int

    def _factorise(self, landmarks: np.ndarray) -> None:
        dtype = landmarks.dtype
        whitened = whitening(less_one(landmarks), dtype)
        # transposed to (p, m), so that a product with sparse rows reads it row by row
        self._mapped = np.ascontiguousarray(landmarks[whitened.kept].T)
        self._half_norms = (np.square(self._mapped, dtype=np.float64).sum(axis=0) / 2).astype(dtype)
        self.projection_ = whitened.triangle
        self._ones = whitened.ones
        self.n_landmarks_ = self._n_features_out = int(whitened.kept.size)

    @property
    def landmarks_(self) -> np.ndarray:
        """Landmarks as scaled, centred mapped rows (m, mapped bins)."""
        check_is_fitted(self)
        return self._mapped.T

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the features of checked rows, minus a shift, into an array.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows in float32 or float64.
        out : ndarray of shape (n, n_landmarks_)
            Array that receives the features, of the dtype of the rows.
        shift : ndarray of shape (n_landmarks_,), default=None
            Subtracted from the features of every row; None subtracts nothing.
        """
        triangle = self.projection_.astype(out.dtype, copy=False)
        # subtracted in float64, so that the difference keeps its digits where the mean dominates
        constant = (self._ones if shift is None else self._ones - shift).astype(out.dtype)
        for part, block in self._kernel_blocks(rows, out):
            _blas.multiply_triangle(part, triangle)
            add_to_all(constant, block, part)

    def _kernel_blocks(self, rows: Rows, out: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
        """Fill ``out`` with kernel values less 1, block by block; yield each block and its number of rows."""
        landmarks = self._mapped.astype(out.dtype, copy=False)
        halves = self._half_norms.astype(out.dtype, copy=False)
        size = block_rows(landmarks.shape[1])
        for first in range(0, rows.shape[0], size):
            part = out[first : first + size]
            block = rows if part.shape[0] == rows.shape[0] else rows[first : first + size]
            exponentials(self.unit_map_.products(block, landmarks, part), halves, part)
            yield part, part.shape[0]

    def fold(self, coef: np.ndarray, intercept: np.ndarray) -> Folded:
        """Return the linear model z(x) . coef + intercept without whitening: kernel values less 1 times R^-1 coef.

        Parameters
        ----------
        coef : ndarray of shape (m, t)
            Weights of the features for t outputs.
        intercept : ndarray of shape (t,)
            Intercepts.

        Returns
        -------
        Folded
            The same model, cheaper to evaluate.
        """
        coef = np.ascontiguousarray(coef, np.float64)
        weights = np.empty_like(coef)
        for first in range(0, coef.shape[0], _FOLDED_ROWS):
            rows = slice(first, first + _FOLDED_ROWS)
            weights[rows] = self.projection_[rows].astype(np.float64) @ coef
        return Folded(KernelLessOne(self), weights, intercept + self._ones @ coef)

    def bound(self, like: Array) -> ArrayMap:
        """Return the map from rows to features for arrays such as ``like``, with the landmarks on its device.

        For numpy arrays the compiled ``features_into`` is faster.

        Parameters
        ----------
        like : array of torch, cupy or numpy
            Any array of the library, device and dtype of the rows to come.
        """
        xp = _arrays.namespace(like)
        values = self.unit_map_.bound(like)
        learned = (self._mapped, self._half_norms, self.projection_, self._ones)
        landmarks, halves, triangle, ones = (_arrays.beside(array, like) for array in learned)

        def features(rows: Array) -> Array:
            u = values(rows)
            exponents = u @ landmarks
            exponents -= halves
            exponents -= xp.sum(u * u, axis=1)[:, None] / 2
            less_one = xp.expm1(xp.minimum(exponents, xp.zeros_like(exponents[:1, :1])))
            features = less_one @ triangle
            features += ones
            return features

        return features

    @property
    def _n_inputs(self) -> int:
        return self.unit_map_.n_mapped


class KernelLessOne:
    """Features K(x, l) - 1 for the landmarks l of other features, which prediction uses without whitening."""

    def __init__(self, features: WhitenedLandmarks):
        self.landmark_features = features

    @property
    def _n_features_out(self) -> int:
        return int(self.landmark_features._n_features_out)

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write K(x, l) - 1 minus ``shift`` of checked rows into ``out`` (n, m), of their dtype."""
        for _ in self.landmark_features._kernel_blocks(rows, out):
            pass
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)
