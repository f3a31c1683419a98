"""The map of additive stationary kernels: a sampled spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.optimize import minimize_scalar, nnls

from chimap import _arrays, _loops, _threads
from chimap._errors import InputError
from chimap._onnx import Value, stacked
from chimap._types import Array, ArrayLike, ArrayMap, MatrixLike, Rows, Shape
from chimap._validation import check_positive, is_auto, validated_rows
from chimap.features.additive.homogeneous import check_waves, discrete_spectrum
from chimap.features.base import Features, Footprint, linear_in_features
from chimap.features.mapped_functions import MappedModel
from chimap.kernels import Kernel
from chimap.kernels.stationary import StationaryKernel, stationary_by_name, stationary_gaussian

PAIRS = 2**17  # most pairs of values within a bin whose differences are drawn, for all bins together
_POINTS = 512  # quantiles of the differences
_FARTHEST = 1e100  # widths: Brent's method multiplies periods by each other


@dataclass(frozen=True)
class Differences:
    """Distances |x - y| / width between values of the same bin in two rows, and the signature S at them.

    The points are quantiles of the distances, ascending and of equal weight.
    """

    points: np.ndarray
    signature: np.ndarray
    n_bins: int

    @classmethod
    def of(cls, rows: Rows, kernel: StationaryKernel) -> Differences:
        """Draw pairs of values, up to ``PAIRS``, from rows (n, bins), dense or CSR, and keep quantiles of distances."""
        n, d = rows.shape
        rng = np.random.default_rng(0)
        wanted = max(1, min(n * (n - 1) // 2, PAIRS // d))
        first = rng.integers(n, size=wanted)
        second = (first + rng.integers(1, max(2, n), size=wanted)) % n
        left, right = (_arrays.to_dense(_arrays.take_rows(rows, chosen)) for chosen in (first, second))
        values = np.abs(left.astype(np.float64) - right).reshape(-1) / kernel.width
        places = (np.arange(_POINTS) + 0.5) / _POINTS
        points = np.quantile(values, places)
        return cls(points, kernel.signature(points), d)

    def equations(self, period: float, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the design (points + 1, m + 1) and the right-hand side of a least-squares fit of the spectrum.

        The squared residual is the mean square error of K over that of S: errors of one sign add up in the sum over the
        bins, the others average out. (The mean of a signature whose spectrum is a band of frequencies has either sign,
        or is 0, so it is no scale.)
        """
        waves = np.cos(np.outer(self.points, np.arange(m + 1)) * (2 * np.pi / period))
        signature = self.signature
        share = np.sqrt(1 / (self.n_bins * self.points.size))
        bias = np.sqrt(max(0.0, 1 - 1 / self.n_bins))
        scale = 1 / max(float(np.sqrt(np.square(signature).mean())), 1e-300)
        design = np.vstack([share * waves, bias * waves.mean(axis=0)])
        target = np.append(share * signature, bias * signature.mean())
        return scale * design, scale * target


def data_spectrum(kernel: StationaryKernel, differences: Differences, period: float, m: int, window: str) -> np.ndarray:
    """Return kap_0 .. kap_m of a window, (m + 1,), none of them negative."""
    if window == "least-squares":
        design, target = differences.equations(period, m)
        return nnls(design, target)[0] / np.r_[1.0, np.full(m, 2.0)]
    # These windows are shared with homogeneous kernels, whose signatures take differences of logarithms.
    return discrete_spectrum(kernel, period, m, window)  # type: ignore[arg-type]


def best_period(kernel: StationaryKernel, differences: Differences, m: int, window: str) -> float:
    """Return the period whose kernel is closest on the differences: the best of a grid, refined by Brent's method."""

    def error(period: float) -> float:
        design, target = differences.equations(period, m)
        spectrum = data_spectrum(kernel, differences, period, m, window) * np.r_[1.0, np.full(m, 2.0)]
        return float(np.linalg.norm(design @ spectrum - target))

    # The grid runs from at most 2 widths to a period of four times the largest difference and more.
    farthest = min(max(float(differences.points[-1]), 1e-3), _FARTHEST)
    grid = np.geomspace(min(2.0, farthest), 4 * farthest + 8 * m + 8, 100)
    errors = [error(period) for period in grid]
    best = int(np.argmin(errors))
    low, high = grid[max(0, best - 1)], grid[min(grid.size - 1, best + 1)]
    refined = minimize_scalar(error, bounds=(low, high), method="bounded")
    return float(refined.x if refined.fun <= errors[best] else grid[best])


_BLOCK_NUMBERS = 2**22  # entries of a block of rows that is made dense and mapped at once


class StationaryMap(Features):
    """Map bins to samples of the spectrum of an additive stationary kernel.

        Psi(x) = [sqrt(kap_0), sqrt(2 kap_j) cos(j L x / w), sqrt(2 kap_j) sin(j L x / w), j = 1..m], bin by bin.

    n_terms = 2m + 1, L = 2 pi / period, and w is the width of the kernel; column q * bins + i is term q of bin i. Bins
    may have either sign. The features of 0 are not 0 (the cosines), so sparse rows become dense ones.

    Parameters
    ----------
    kernel : str or StationaryKernel, default=stationary_gaussian
        A stationary kernel or its name, such as "additive-gaussian".
    n_terms : int, default=5
        Features for each bin; odd.
    window : str, default="least-squares"
        "least-squares" (the spectrum whose kernel is closest on the differences of the data), "rectangular" (spectrum
        of the signature cut to one period, negatives set to 0) or "uniform" (the spectrum itself, sampled).
    period : float or str, default="auto"
        A positive number, in units of the width, or "auto" for the period whose kernel is closest on the differences.

    Attributes
    ----------
    kernel_ : StationaryKernel
        The exact kernel.
    period_ : float
        The period.
    amplitudes_ : ndarray of shape (m + 1,)
        sqrt(kap_0), sqrt(2 kap_1), ....
    n_features_in_ : int
        Number of bins.

    References
    ----------
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, eq. 18 (two windows: sec. 4).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> psi = StationaryMap("additive-gaussian", n_terms=7).fit(X)
    >>> Z = psi.transform(X)
    >>> bool(abs(Z @ Z.T - psi.kernel_(X)).mean() < 0.01)
    True
    """

    _takes_signs = True

    n_features_in_: int
    kernel_: StationaryKernel
    period_: float
    amplitudes_: Annotated[np.ndarray, Shape("harmonics")]

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
        """Choose the spectrum on the differences of values within the bins of rows."""
        self.kernel_ = self._checked_kernel()
        rows = validated_rows(self, X, reset=True, signed=True)
        m, differences = self.n_terms // 2, Differences.of(rows, self.kernel_)
        if is_auto(self.period):
            self.period_ = best_period(self.kernel_, differences, m, self.window)
        else:
            self.period_ = float(self.period)
        spectrum = data_spectrum(self.kernel_, differences, self.period_, m, self.window)
        self.amplitudes_ = np.sqrt(spectrum * np.r_[1.0, np.full(m, 2.0)])
        return self

    def _checked_kernel(self) -> StationaryKernel:
        check_positive(self.n_terms, "n_terms", integer=True)
        check_waves(self.n_terms, self.window, self.period, "StationaryMap")
        try:
            kernel = stationary_by_name(self.kernel) if isinstance(self.kernel, str) else self.kernel
        except KeyError:
            kernel = None
        if not isinstance(kernel, StationaryKernel):
            raise InputError(
                f"StationaryMap maps stationary kernels, such as 'additive-gaussian'; got {self.kernel!r}."
            )
        return kernel

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the features of checked rows, minus a shift, into an array."""
        period, size = self.period_ * self.kernel_.width, max(1, _BLOCK_NUMBERS // rows.shape[1])
        for first in range(0, rows.shape[0], size):
            block = _arrays.to_dense(_arrays.take_rows(rows, slice(first, first + size)))
            z = out[first : first + size].reshape(block.shape[0], -1, block.shape[1])

            def fill(part: slice, block: np.ndarray = block, z: np.ndarray = z) -> None:
                _loops.stationary_features(block[part], self.amplitudes_, period, z[part])

            _threads.over_rows(block.shape[0], block.shape[1], fill)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def describe(self) -> str:
        """Return a short description of the fitted map, such as "StationaryMap, 5 terms per bin"."""
        return f"StationaryMap, {self.n_terms} term{'s' if self.n_terms != 1 else ''} per bin"

    @property
    def _n_features_out(self) -> int:
        return (2 * self.amplitudes_.size - 1) * int(self.n_features_in_)

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: stationary kernels."""
        return isinstance(kernel, StationaryKernel)

    @classmethod
    def of(cls, kernel: Kernel, *, n_terms: int = 2, **asked: Any) -> Features:
        """See ``Features``. An even number of terms is raised by one."""
        return cls(kernel, n_terms | 1)

    def footprint(self, n_bins: int) -> Footprint:
        """See ``Features``."""
        return Footprint(self.n_terms * n_bins)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes of the differences that the period is chosen on."""
        return 32 * PAIRS

    def onnx(self, x: Value) -> Value:
        """See ``FittedFeatures``. Whole periods are subtracted first, as in the compiled loop."""
        turns = x.cast(np.float64) / (self.period_ * self.kernel_.width)
        angle = (turns - (turns + 0.5).apply("Floor")) * (2 * np.pi)
        values = [angle * 0.0 + self.amplitudes_[0]]
        for j, amplitude in enumerate(self.amplitudes_[1:], start=1):
            values += [(angle * float(j)).apply(wave) * amplitude for wave in ("Cos", "Sin")]
        return stacked(values).cast(x.dtype).reshaped(0, self._n_features_out)

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
        """See ``FittedFeatures``."""
        return linear_in_features(self, coef, intercept)

    def array_features(self, rows: Array) -> Array:
        """See ``Features``."""
        xp = _arrays.namespace(rows)
        turns = xp.astype(rows, xp.float64) / (self.period_ * self.kernel_.width)
        angle = 2 * np.pi * (turns - xp.round(turns))
        constant, *others = self.amplitudes_.tolist()
        terms = [xp.ones_like(angle) * constant]
        for j, amplitude in enumerate(others, start=1):
            terms += [amplitude * xp.cos(j * angle), amplitude * xp.sin(j * angle)]
        features = xp.astype(xp.stack(terms, axis=1), rows.dtype)
        return xp.reshape(features, (rows.shape[0], self._n_features_out))

    def bound(self, like: Array) -> ArrayMap:
        """Return ``array_features``: a map has nothing to copy to a device."""
        return self.array_features
