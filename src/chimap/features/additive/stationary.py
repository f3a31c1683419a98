"""The sampled spectrum of stationary kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar, nnls
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops, _threads
from chimap._types import Array, ArrayLike, ArrayMap, MatrixLike, Rows, Transformed
from chimap._validation import check_choice, check_positive, validated_rows
from chimap.features.additive.differences import PAIRS, Differences
from chimap.features.additive.homogeneous import WINDOWS, discrete_spectrum
from chimap.features.base import Features, FeatureSettings, Footprint
from chimap.kernels import Kernel
from chimap.kernels.stationary import StationaryKernel, stationary_by_name, stationary_gaussian
from chimap.model_files import Transformer

if TYPE_CHECKING:
    from sklearn.utils import Tags


_BLOCK_NUMBERS = 2**22


class StationaryMap(ClassNamePrefixFeaturesOutMixin, Transformer, BaseEstimator):
    """Psi(x) = [sqrt(kap_0), sqrt(2 kap_j) cos(j L x / w), sqrt(2 kap_j) sin(j L x / w), j = 1..m], bin by bin.

    n_terms = 2m + 1, L = 2 pi / period, w the width of the kernel; column q * bins + i is term q of bin i. Bins may
    have either sign. Zeros have features (the cosines), so that sparse rows become dense ones.

    Parameters
    ----------
    kernel : a ``StationaryKernel``, or the name of one.
    n_terms : features a bin, odd.
    window : "least-squares" (the spectrum whose kernel is closest on the differences of the data), "rectangular"
        (spectrum of the signature cut to one period, negatives set to 0) or "uniform" (the spectrum itself, sampled).
    period : a positive number, in units of the width, or "auto": the one whose kernel is closest on the differences.

    Learned: ``kernel_``, ``period_``, ``amplitudes_`` (m + 1,): sqrt(kap_0), sqrt(2 kap_1), ...

    Source: Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, eq. 18 (two windows: sec. 4).

    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> psi = StationaryMap("additive-gaussian", n_terms=7).fit(X)
    >>> Z = psi.transform(X)
    >>> bool(abs(Z @ Z.T - psi.kernel_(X)).mean() < 0.01)
    True
    """

    makes: ClassVar[type]

    n_features_in_: int
    kernel_: StationaryKernel
    period_: float
    amplitudes_: np.ndarray

    def __init__(
        self,
        kernel: str | Kernel = stationary_gaussian,
        n_terms: int = 5,
        window: str = "least-squares",
        period: float | str = "auto",
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.window = window
        self.period = period

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> StationaryMap:
        """Choose the spectrum on the differences within the bins of rows X (n, bins); y is not used.

        Raises DataError for NaN and infinite entries, ValueError for settings.
        """
        self.kernel_ = self._checked_kernel()
        rows = validated_rows(self, X, reset=True, signed=True)
        m, differences = self.n_terms // 2, Differences.of(rows, self.kernel_)
        if self.period == "auto":
            self.period_ = self._best_period(differences, m)
        else:
            self.period_ = float(self.period)
        spectrum = self._spectrum(differences, self.period_, m)
        self.amplitudes_ = np.sqrt(spectrum * np.r_[1.0, np.full(m, 2.0)])
        return self

    def _checked_kernel(self) -> StationaryKernel:
        check_positive(self.n_terms, "n_terms", integer=True)
        if self.n_terms % 2 == 0:
            raise ValueError(
                f"n_terms of StationaryMap must be odd (one constant, then cosines and sines in pairs); "
                f"got {self.n_terms}: use {self.n_terms - 1} or {self.n_terms + 1}."
            )
        check_choice(self.window, "window", WINDOWS)
        if self.period != "auto":
            check_positive(self.period, "period")
        try:
            kernel = stationary_by_name(self.kernel) if isinstance(self.kernel, str) else self.kernel
        except KeyError:
            kernel = None
        if not isinstance(kernel, StationaryKernel):
            raise ValueError(
                f"StationaryMap maps stationary kernels, such as 'additive-gaussian'; got {self.kernel!r}."
            )
        return kernel

    def _spectrum(self, differences: Differences, period: float, m: int) -> np.ndarray:
        if self.window == "least-squares":
            design, target = differences.equations(period, m)
            return nnls(design, target)[0] / np.r_[1.0, np.full(m, 2.0)]
        # the same spectra as of homogeneous kernels, whose differences are those of logarithms
        return discrete_spectrum(self.kernel_, period, m, self.window)  # type: ignore[arg-type]

    def _best_period(self, differences: Differences, m: int) -> float:
        def error(period: float) -> float:
            design, target = differences.equations(period, m)
            spectrum = self._spectrum(differences, period, m) * np.r_[1.0, np.full(m, 2.0)]
            return float(np.linalg.norm(design @ spectrum - target))

        # from a period that all differences share out to one in which a few widths lie between harmonics
        farthest = max(float(differences.points[-1]), 1e-3)
        grid = np.geomspace(min(2.0, farthest), 4 * farthest + 8 * m + 8, 100)
        errors = [error(period) for period in grid]
        best = int(np.argmin(errors))
        low, high = grid[max(0, best - 1)], grid[min(grid.size - 1, best + 1)]
        refined = minimize_scalar(error, bounds=(low, high), method="bounded")
        return float(refined.x if refined.fun <= errors[best] else grid[best])

    def transform(self, X: MatrixLike) -> Transformed:
        """Features (n, n_terms * bins), dense, of rows X (n, bins); of a device's array there."""
        check_is_fitted(self)
        rows = validated_rows(self, X, reset=False, signed=True, on_device=True)
        if _arrays.is_on_device(rows):
            return self.array_features(rows)
        out = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype)
        self.features_into(rows, out)
        return out

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Features minus ``shift`` of checked rows, dense or CSR, into ``out`` of their dtype."""
        period, size = self.period_ * self.kernel_.width, max(1, _BLOCK_NUMBERS // rows.shape[1])
        for first in range(0, rows.shape[0], size):
            block = _arrays.to_dense(_arrays.take_rows(rows, slice(first, first + size)))
            z = out[first : first + size].reshape(block.shape[0], -1, block.shape[1])

            def fill(part: slice, block: np.ndarray = block, z: np.ndarray = z) -> None:
                _loops.stationary_features(block[part], self.amplitudes_, period, z[part])

            _threads.over_rows(block.shape[0], block.shape[1], fill)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def array_features(self, rows: Array) -> Array:
        """Features (n, n_features_out) of checked dense rows by the operations of their own kind of array."""
        xp = _arrays.namespace(rows)
        turns = xp.astype(rows, xp.float64) / (self.period_ * self.kernel_.width)
        angle = 2 * np.pi * (turns - xp.round(turns))
        first, *others = self.amplitudes_.tolist()
        terms = [xp.ones_like(angle) * first]
        for j, amplitude in enumerate(others, start=1):
            terms += [amplitude * xp.cos(j * angle), amplitude * xp.sin(j * angle)]
        features = xp.astype(xp.stack(terms, axis=1), rows.dtype)
        return xp.reshape(features, (rows.shape[0], self._n_features_out))

    def bound(self, like: Array) -> ArrayMap:
        """``array_features`` for arrays such as ``like``."""
        return self.array_features

    def describe(self) -> str:
        """'StationaryMap, 5 terms a bin', of a fitted map."""
        return f"StationaryMap, {self.n_terms} term{'s' if self.n_terms != 1 else ''} a bin"

    @property
    def _n_features_out(self) -> int:
        return (2 * self.amplitudes_.size - 1) * int(self.n_features_in_)

    # --- as a family of features

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return isinstance(kernel, StationaryKernel)

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``; an even number of terms gets the one that is missing to a pair."""
        return cls(settings.exact, settings.terms() | 1)

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """See ``Family``."""
        return Footprint((settings.terms() | 1) * n_bins)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """The differences that the period is chosen on."""
        return 32 * PAIRS

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


StationaryMap.makes = StationaryMap
