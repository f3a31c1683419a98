"""Additive kernel PCA: Nystrom's approximation of the kernel in each bin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from chimap import _arrays, _loops
from chimap._types import RandomState, Rows
from chimap._validation import check_positive
from chimap.features.additive.base import AdditiveMap
from chimap.kernels import AdditiveKernel, Kernel
from chimap.kernels.additive import signature_powers


class AdditiveKPCA(AdditiveMap):
    """Psi_i(x) = diag(e_i)^(-1/2) U_i' (k(x, t_i1), .., k(x, t_iL)): kernel PCA of a sample of each bin's values.

    (e_i, U_i) are the leading eigenpairs of the kernel among the L values t_ij drawn from bin i. Uncentred, so that
    Psi(x) . Psi(y) is the kernel, exactly where x or y is among the values and all terms are kept. It evaluates L
    kernel values an entry: ``CompressedMap(per_bin=True)`` and ``OptimalMap`` reach the same accuracy faster.

    Parameters
    ----------
    kernel : an additive kernel with a compiled formula, with any gamma, signed or not.
    n_terms : features a bin.
    n_landmarks : L, non-zero values drawn from each bin, repetitions included (all where it has fewer).
    random_state : int, RandomState or None.

    Learned: ``landmarks_`` (bins, L), 0 where a bin has fewer; ``eigenvalues_`` (bins, n_terms).

    Source: Perronnin, Sanchez and Liu, Large-scale image categorization with explicit data embedding (addKPCA).

    >>> import numpy as np
    >>> from chimap import intersection
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=100)
    >>> Z = AdditiveKPCA("intersection", n_terms=8, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - intersection(X)).mean() < 0.01)
    True
    """

    landmarks_: np.ndarray
    eigenvalues_: np.ndarray
    _coefficients: np.ndarray

    def __init__(
        self,
        kernel: str | Kernel = "chi2",
        n_terms: int = 3,
        n_landmarks: int = 64,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    _maps_plain_kernel = True

    @classmethod
    def takes(cls, kernel: AdditiveKernel) -> bool:
        """Kernels with a compiled formula: it is evaluated n_landmarks times an entry."""
        return kernel.form is not None

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
            own = values[starts[i] : starts[i + 1]]
            drawn = np.sort(rng.permutation(own)[: self.n_landmarks])
            if drawn.size:
                self._fit_bin(i, drawn, kernel)

    def _fit_bin(self, i: int, drawn: np.ndarray, kernel: AdditiveKernel) -> None:
        n = drawn.size
        kept = min(self.n_terms, n)
        values, vectors = eigh(kernel(drawn[:, None]), subset_by_index=[n - kept, n - 1])
        values, vectors = values[::-1], vectors[:, ::-1]
        # below the rounding of the eigenproblem a term would be noise blown up by e^(-1/2)
        usable = values > 16 * n * np.finfo(float).eps * values[0]
        signs = np.where(vectors[-1] < 0, -1.0, 1.0)  # eigenvectors have no sign of their own
        scale = np.where(usable, signs / np.sqrt(np.where(usable, values, 1.0)), 0.0)
        self.landmarks_[i, :n] = drawn
        self.eigenvalues_[i, :kept] = np.maximum(values, 0)
        # k of the variant is the plain k times (xt)^((gamma-1)/2): the landmark's share is put in here
        powers = signature_powers(drawn, kernel.gamma)
        self._coefficients[i, :kept, :n] = (powers[:, None] * vectors * scale).T

    @property
    def _n_terms_out(self) -> int:
        return int(self.eigenvalues_.shape[1])

    @property
    def _fits_by_bin(self) -> bool:
        return True

    @property
    def _differs_by_bin(self) -> bool:
        return True

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        form = self.kernel_.form
        assert form is not None  # as takes() has seen to
        _loops.landmark_features[form](
            magnitudes, bins, self.landmarks_.astype(magnitudes.dtype),
            self._coefficients.astype(magnitudes.dtype), out,
        )  # fmt: skip
