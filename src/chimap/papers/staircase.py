"""Unary codes of the intersection kernel, and their sparse form, whose regulariser carries their structure."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops
from chimap._onnx import Value
from chimap._types import CSR, MatrixLike, Rows, Shape
from chimap._validation import check_choice, validated_rows
from chimap.features.additive.base import AdditiveMap
from chimap.kernels import Kernel
from chimap.kernels.additive import signature_powers
from chimap.model_files import register
from chimap.papers.codes import steps_per_unit


class StaircaseMap(AdditiveMap):
    """Map bins to how much of each of N steps lies below the value, for the intersection kernel.

        Psi_q(x) = sqrt(s/N) (share of step q of N below x), with steps of width s/N on [0, s].

    min(x, y) is the integral of 1[t < x] 1[t < y]; the piecewise linear form is the projection of these indicators onto
    functions that are constant on the steps: exact for x or y on a border, and never above the kernel on the diagonal.
    The piecewise constant form rounds x to the nearest border first.

    **Sparse form.** A linear model of Psi is a function of x that is linear (constant) between borders. Written by its
    values v at the borders instead of its slopes w, it has one or two non-zero features for each bin
    (``transform_sparse_form``). Then w = T v with T the differences along the steps of each bin, so that |w|^2 = |T
    v|^2 = v'Mv: training with that regulariser (``differences``, ``metric``) gives the same model.

    Parameters
    ----------
    kernel : str or AdditiveKernel, default="intersection"
        "intersection", or its gamma-homogeneous or signed variant.
    n_terms : int, default=20
        N, steps for each bin.
    steps : str, default="linear"
        "linear" (unary with one fractional digit) or "constant" (unary).

    Attributes
    ----------
    scale_ : ndarray of shape (bins,)
        s, the largest magnitude of each bin; larger values are taken as s.
    kernel_ : AdditiveKernel
        The exact kernel.

    References
    ----------
    Maji and Berg, Max-margin additive classifiers for detection, ICCV 2009 (the codes phi_1 and phi_2, and their sparse
    versions).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.25, 1.0], [0.5, 0.0], [1.0, 0.75]])
    >>> psi = StaircaseMap(n_terms=4).fit(X)
    >>> psi.transform(X) @ psi.transform(X).T
    array([[1.25, 0.25, 1.  ],
           [0.25, 0.5 , 0.5 ],
           [1.  , 0.5 , 1.75]])
    """

    _differs_by_bin = True
    kernels = ("intersection",)
    _maps_plain_kernel = True

    scale_: Annotated[np.ndarray, Shape("n_features_in_")]

    def __init__(self, kernel: str | Kernel = "intersection", n_terms: int = 20, steps: str = "linear"):
        self.kernel = kernel
        self.n_terms = n_terms
        self.steps = steps

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.steps, "steps", ("linear", "constant"))

    def _fit_rows(self, rows: Rows) -> None:
        self.scale_ = _arrays.column_maxima(rows)

    @property
    def n_straight_pieces(self) -> int | None:
        """Number of steps; None where the steps round the value, or gamma curves the features."""
        return self.n_terms if self.steps == "linear" and self.kernel_.gamma == 1 else None

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        rates, heights = self._steps()
        heights = heights[bins].astype(magnitudes.dtype)
        _loops.staircase_features(magnitudes, rates[bins], heights, self.n_terms, self.steps == "linear", out)

    def _steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the steps in a unit of x, and the feature of a whole step; both (bins,) float64."""
        return steps_per_unit(self.scale_, self.n_terms), np.sqrt(self.scale_ / self.n_terms)

    def transform_sparse(self, rows: CSR) -> CSR:
        """Return the CSR features of checked CSR rows, without the zeros of steps above the value."""
        features = super().transform_sparse(rows)
        features.eliminate_zeros()
        return features

    # --- the sparse form

    def transform_sparse_form(self, X: MatrixLike) -> CSR:
        """Return rows in the sparse form, with at most two non-zeros for each bin (one for constant steps).

        Column q * bins + i belongs to border q + 1 of bin i. Every v has v . (sparse form of x) = (T v) . Psi(x).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows that ``transform`` takes, except those on a device.

        Returns
        -------
        CSR matrix of shape (n, n_terms * bins)
            The sparse form, in the floating type of X.
        """
        check_is_fitted(self)
        rows = _arrays.to_sparse(validated_rows(self, X, reset=False, signed=self.kernel_.is_signed))
        magnitudes, bins, n_bins = np.abs(rows.data).astype(np.float64), rows.indices, rows.shape[1]
        rates, heights = self._steps()
        level = np.minimum(magnitudes * rates[bins], self.n_terms)
        below = np.floor(level if self.steps == "linear" else level + 0.5)
        above = level - below if self.steps == "linear" else np.zeros_like(level)
        factor = heights[bins] * signature_powers(magnitudes, self.kernel_.gamma) * np.sign(rows.data)
        # Borders are numbered from 1: there is no weight at 0, nor above the last border.
        data = factor[:, None] * np.stack([np.where(below > 0, 1 - above, 0), above], axis=1)
        border = np.stack([np.maximum(below, 1), np.minimum(below + 1, self.n_terms)], axis=1) - 1
        indices = border.astype(np.int64) * n_bins + bins[:, None]
        shape = (rows.shape[0], self.n_terms * n_bins)
        parts = (data.reshape(-1).astype(rows.dtype), indices.reshape(-1), 2 * rows.indptr.astype(np.int64))
        form = sp.csr_matrix(parts, shape=shape)
        form.eliminate_zeros()
        form.sort_indices()
        return form

    def differences(self) -> sp.csr_array:
        """Return T, which turns weights of the sparse form into weights of the features.

        (T v)_q = v_q - v_{q-1} along the terms of each bin, with v_{-1} = 0.

        Returns
        -------
        CSR array of shape (n_terms * bins, n_terms * bins)
            T, with two bands.
        """
        check_is_fitted(self)
        size = self.n_terms * self.n_features_in_
        return sp.diags_array(
            [np.ones(size), -np.ones(size - self.n_features_in_)], offsets=[0, -self.n_features_in_], format="csr"
        )

    def metric(self) -> sp.csr_array:
        """Return M, the regulariser of the sparse form: |w|^2 is v'Mv for w the features' weights T v.

        Returns
        -------
        CSR array of shape (n_terms * bins, n_terms * bins)
            T'T, with three bands.
        """
        T = self.differences()
        return (T.T @ T).tocsr()

    def _onnx_terms(self, x: Value) -> Value:
        rates, heights = self._steps()
        level = (x.cast(np.float64) * rates).at_most(self.n_terms)
        if self.steps == "constant":
            level = (level + 0.5).apply("Floor")
        steps = level.expanded(1) - np.arange(self.n_terms)[:, None]
        return (steps.at_least(0.0).at_most(1.0) * heights).cast(x.dtype)


register(StaircaseMap)
