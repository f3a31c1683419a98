"""Additive kernel PCA: Nystrom's approximation of the kernel in each bin."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from chimap import _arrays, _loops
from chimap._onnx import Value
from chimap._types import RandomState, Rows, Shape
from chimap._validation import check_positive
from chimap.features.additive.base import AdditiveMap
from chimap.kernels import AdditiveKernel, Kernel
from chimap.kernels.additive import signature_powers
from chimap.model_files import register


class AdditiveKPCA(AdditiveMap):
    """Map bins by kernel PCA of a sample of each bin's values.

        Psi_i(x) = diag(e_i)^(-1/2) U_i' (k(x, t_i1), .., k(x, t_iL)),

    where (e_i, U_i) are the leading eigenpairs of the kernel among the L values t_ij drawn from bin i. The PCA is not
    centred, so that Psi(x) . Psi(y) approximates the kernel, and is exact where x or y is among the values and all
    terms are kept. Each entry takes L kernel values: ``CompressedMap(per_bin=True)`` and ``OptimalMap`` reach the same
    accuracy faster.

    Parameters
    ----------
    kernel : str or AdditiveKernel, default="chi2"
        An additive kernel with a compiled formula, with any gamma, signed or not.
    n_terms : int, default=3
        Features for each bin.
    n_landmarks : int, default=64
        L, non-zero values drawn from each bin, repetitions included; all of them where a bin has fewer.
    random_state : int, RandomState or None, default=None
        Seed or generator for the draws. None differs at each fit.

    Attributes
    ----------
    landmarks_ : ndarray of shape (bins, L)
        The values t_ij, ascending; 0 where a bin has fewer.
    eigenvalues_ : ndarray of shape (bins, n_terms)
        The eigenvalues, largest first.
    kernel_ : AdditiveKernel
        The exact kernel.

    References
    ----------
    Perronnin, Sanchez and Liu, Large-scale image categorization with explicit data embedding (addKPCA).

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import intersection
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=100)
    >>> Z = AdditiveKPCA("intersection", n_terms=8, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - intersection(X)).mean() < 0.01)
    True
    """

    _fits_by_bin = True
    _differs_by_bin = True

    landmarks_: Annotated[np.ndarray, Shape("n_features_in_", "m")]
    eigenvalues_: Annotated[np.ndarray, Shape("n_features_in_", "n_terms")]
    _coefficients: Annotated[np.ndarray, Shape("n_features_in_", "n_terms", "m")]

    def __init__(
        self, kernel: str | Kernel = "chi2", n_terms: int = 3, n_landmarks: int = 64, random_state: RandomState = None
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    _maps_plain_kernel = True

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: additive kernels with a compiled formula, as each entry takes n_landmarks evaluations."""
        return isinstance(kernel, AdditiveKernel) and kernel.form is not None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive(self.n_landmarks, "n_landmarks", integer=True)

    def _fit_rows(self, rows: Rows) -> None:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        values, starts = _arrays.values_by_bin(rows)
        n_bins, kernel = starts.size - 1, replace(self.kernel_, is_signed=False)
        self.landmarks_ = np.zeros((n_bins, self.n_landmarks))
        self.eigenvalues_ = np.zeros((n_bins, self.n_terms))
        self._coefficients = np.zeros((n_bins, self.n_terms, self.n_landmarks))
        for i in range(n_bins):
            bin_values = values[starts[i] : starts[i + 1]]
            drawn = np.sort(rng.permutation(bin_values)[: self.n_landmarks])
            if drawn.size:
                self._fit_bin(i, drawn, kernel)

    def _fit_bin(self, i: int, drawn: np.ndarray, kernel: AdditiveKernel) -> None:
        n = drawn.size
        kept = min(self.n_terms, n)
        values, vectors = eigh(kernel(drawn[:, None]), subset_by_index=[n - kept, n - 1])
        values, vectors = values[::-1], vectors[:, ::-1]
        # Below the rounding of the eigenproblem a term would be noise amplified by e^(-1/2).
        usable = values > 16 * n * np.finfo(float).eps * values[0]
        signs = np.where(vectors[-1] < 0, -1.0, 1.0)  # the sign of an eigenvector is arbitrary
        scale = np.where(usable, signs / np.sqrt(np.where(usable, values, 1.0)), 0.0)
        self.landmarks_[i, :n] = drawn
        self.eigenvalues_[i, :kept] = np.maximum(values, 0)
        # The gamma variant is the plain kernel times (xt)^((gamma-1)/2); the coefficients include the factor of t.
        powers = signature_powers(drawn, kernel.gamma)
        self._coefficients[i, :kept, :n] = (powers[:, None] * vectors * scale).T

    @property
    def _n_terms_out(self) -> int:
        return int(self.eigenvalues_.shape[1])

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        form = self.kernel_.form
        assert form is not None  # ``takes`` has checked it
        _loops.landmark_features[form](
            magnitudes, bins, self.landmarks_.astype(magnitudes.dtype), self._coefficients.astype(magnitudes.dtype), out
        )

    def _onnx_terms(self, x: Value) -> Value:
        values = self.kernel_.onnx_plain_term(x.expanded(2), x.graph.constant(self.landmarks_.astype(x.dtype)))
        weighted = values.expanded(2) @ self._coefficients.transpose(0, 2, 1)  # (n, bins, 1, terms)
        return weighted.reshaped(0, 0, self.n_terms).transposed(0, 2, 1)


register(AdditiveKPCA)
