"""Additive stationary kernels, sums over bins of a function of x - y for bins of either sign, and their map.

S is the signature and kappa, its Fourier transform, the spectrum: S(l) = int kappa(w) exp(-i w l) dw. The map samples
the spectrum. Source: Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, secs. 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import quad
from scipy.optimize import minimize_scalar, nnls
from scipy.special import gammaln, kv

from chimap import _arrays, _loops, _threads
from chimap._errors import InputError
from chimap._onnx import Value, stacked
from chimap._types import JSON, Array, ArrayLike, ArrayMap, MatrixLike, Rows, Shape
from chimap._validation import check_positive, is_auto, validated_rows
from chimap.features.additive.homogeneous import check_waves, discrete_spectrum
from chimap.features.base import Features, Footprint, linear_in_features
from chimap.features.mapped_functions import MappedModel
from chimap.kernels import STATIONARY, Kernel
from chimap.kernels.base import paired_rows
from chimap.model_files import register, register_named

# The spectrum is integrated panel by panel between these edges, and then over the rest of the line; in units of
# 1 / width.
_EDGES = np.r_[0.0, np.exp2(np.arange(-4.0, 7.0))]
_ERROR = 1e-11  # absolute tolerance of an integral
_CLOSE = 1e-9  # difference of series and integral above which the degree of the series is doubled
_DEGREES = (32, 64, 128, 256, 512, 1024)

Spectrum = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ScaledSpectrum:
    """A spectrum divided by its integral."""

    function: Spectrum
    mass: float

    @classmethod
    def of(cls, name: str, function: Spectrum) -> ScaledSpectrum:
        """Compute the integral of the spectrum ``function`` and scale by it.

        Raises ValueError if the spectrum is negative or not finite somewhere, or has no finite, positive integral.
        """
        frequencies = np.r_[0.0, np.geomspace(1e-3, 1e3, 400)]
        with np.errstate(all="ignore"):
            values = np.asarray(function(frequencies), dtype=np.float64)
        if values.shape != frequencies.shape:
            raise InputError(
                f"the spectrum of {name!r} must give a number for each frequency: it gave shape {values.shape} for "
                f"frequencies of shape {frequencies.shape}."
            )
        wrong = ~np.isfinite(values) | (values < 0)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"the spectrum of {name!r} must be finite and nowhere negative; it is {values[at]:g} at frequency "
                f"{frequencies[at]:g}."
            )
        mass = 2 * cosine_integral(function, 0.0)
        if not (np.isfinite(mass) and mass > 0):
            raise InputError(f"the spectrum of {name!r} must have a finite, positive integral; it is {mass:g}.")
        return cls(function, mass)

    def __call__(self, frequency: np.ndarray) -> np.ndarray:
        """Return kappa, even and with integral 1."""
        return np.asarray(self.function(np.abs(frequency)), dtype=np.float64) / self.mass


@dataclass(frozen=True)
class SpectrumSignature:
    """The signature S(l) = 2 int_0^inf kappa(w) cos(w l) dw at many differences at once.

    The integral is computed at the points of a Chebyshev series on the range of the differences, up to the next power
    of two. The degree of the series is doubled until series and integral agree; all differences then use the series.
    """

    spectrum: ScaledSpectrum
    _known: dict[float, np.ndarray] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, difference: np.ndarray) -> np.ndarray:
        """Return S, an array of the shape of ``difference``."""
        l = np.abs(np.asarray(difference, dtype=np.float64))  # noqa: E741
        farthest = np.exp2(np.ceil(np.log2(max(float(l.max()), 1.0)))) if l.size else 1.0
        return np.asarray(chebyshev.chebval(2 * l / farthest - 1, self._series(float(farthest))))

    def _series(self, farthest: float) -> np.ndarray:
        """Return the Chebyshev coefficients of S on [0, farthest]."""
        if farthest not in self._known:
            self._known[farthest] = self._fitted(farthest)
        return self._known[farthest]

    def _fitted(self, farthest: float) -> np.ndarray:
        points = np.cos(np.pi * np.arange(_DEGREES[0] + 1) / _DEGREES[0])
        values = self._integrals(farthest * (points + 1) / 2)
        for degree in _DEGREES:
            coefficients = _coefficients(values)
            between = np.cos(np.pi * (np.arange(degree) + 0.5) / degree)
            new = self._integrals(farthest * (between + 1) / 2)
            if np.abs(chebyshev.chebval(between, coefficients) - new).max() < _CLOSE:
                break
            merged = np.empty(2 * degree + 1)
            merged[::2], merged[1::2] = values, new
            values = merged
        return coefficients

    def _integrals(self, differences: np.ndarray) -> np.ndarray:
        return np.array([2 * cosine_integral(self.spectrum, float(l)) for l in differences])  # noqa: E741


def cosine_integral(spectrum: Spectrum, difference: float) -> float:
    """Return int_0^inf kappa(w) cos(w l) dw, the sum of the integrals over short panels and a tail.

    Quadrature over one long range could step over a narrow spectrum.
    """

    def at(w: float) -> float:
        return float(np.asarray(spectrum(np.array([w]))).ravel()[0])

    wave = {"weight": "cos", "wvar": difference} if difference else {}
    settings = {"epsabs": _ERROR, "limit": 200}
    panels = [quad(at, a, b, **wave, **settings)[0] for a, b in pairwise(_EDGES)]
    return float(sum(panels) + quad(at, _EDGES[-1], np.inf, **wave, **settings)[0])


def _coefficients(values: np.ndarray) -> np.ndarray:
    """Return the coefficients of the Chebyshev series through values (n + 1,) at cos(pi k / n)."""
    n = values.size - 1
    spectrum = np.fft.rfft(np.r_[values, values[-2:0:-1]]).real / n
    spectrum[[0, -1]] /= 2
    return spectrum


_NUMBERS = 2**20  # values of the signature (pairs of rows times bins) that are in memory at once


@dataclass(frozen=True)
class StationaryKernel(Kernel):
    """Additive stationary kernel K(x, y) = sum_i S((x_i - y_i) / width), with S(0) = 1.

    Parameters
    ----------
    name : str
        Name of the kernel.
    signature_function : callable
        S as a function of float64 arrays; it is even, and its Fourier transform is nowhere negative.
    spectrum_function : callable or None, default=None
        kappa(w) = 1/(2 pi) int S(l) exp(i w l) dl. If None, the "uniform" window of feature maps, which samples it, is
        not available. If the spectrum alone is known, ``of_spectrum`` makes the kernel.
    width : float, default=1.0
        Width in the units of the bins, positive.

    Raises
    ------
    ValueError
        If the width is not positive.

    References
    ----------
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, sec. 2.1.2.

    Examples
    --------
    >>> import numpy as np
    >>> stationary_laplace.with_width(2.0)(np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]])).round(4)  # e^-1 + 1
    array([[1.3679]])
    """

    degree = 0.0  # rows and width scale together

    name: str
    signature_function: Callable[[np.ndarray], np.ndarray]
    spectrum_function: Callable[[np.ndarray], np.ndarray] | None = None
    width: float = 1.0

    is_signed = True

    def __post_init__(self) -> None:
        check_positive(self.width, "width (of the stationary kernel)")

    @classmethod
    def of_spectrum(
        cls, name: str, spectrum: Callable[[np.ndarray], np.ndarray], width: float = 1.0
    ) -> StationaryKernel:
        """Return the kernel K(x, y) = sum_i E cos(w (x_i - y_i) / width), with frequencies w drawn from a spectrum.

        Parameters
        ----------
        name : str
            Name of the kernel.
        spectrum : callable
            Function of float64 arrays of frequencies w >= 0. It is finite and nowhere negative and has a finite
            integral, by which it is divided. It should vary on a scale of the order of 1.
        width : float, default=1.0
            Width in the units of the bins.

        Returns
        -------
        StationaryKernel
            The kernel, with its signature computed by quadrature.

        Raises
        ------
        ValueError
            If the spectrum is negative or not finite somewhere, or its integral is not finite and positive.

        Notes
        -----
        The signature is the Fourier integral of the spectrum, computed by adaptive quadrature at the points of a
        Chebyshev series on the range of the differences. It is correct to about 1e-9. The first call for a range makes
        the series, which takes a tenth of a second for a smooth formula and some seconds for one of special functions.

        Examples
        --------
        >>> import numpy as np
        >>> band = StationaryKernel.of_spectrum("band", lambda w: np.exp(-(np.abs(w) - 3) ** 2))
        >>> round(float(band.signature(0.0)), 9), bool(band.signature(1.0) < -0.7)  # cos(3), a little damped
        (1.0, True)
        """
        scaled = ScaledSpectrum.of(name, spectrum)
        return cls(name, SpectrumSignature(scaled), scaled, width)

    @property
    def own_map(self) -> type[Features]:
        return StationaryMap

    @property
    def by_name(self) -> JSON | None:
        """See ``Kernel``: None for kernels of other functions than those that have a name."""
        try:
            is_known = stationary_by_name(self.name).with_width(self.width) == self
        except (KeyError, ValueError):
            is_known = False
        return {"kernel": self.name.partition("(")[0], "name": self.name, "width": self.width} if is_known else None

    def restored(self, state: JSON) -> StationaryKernel:
        return stationary_by_name(state["name"]).with_width(state["width"])

    def rescaled(self, factor: float) -> StationaryKernel:
        """Return the kernel with its width multiplied by ``factor``."""
        return replace(self, width=self.width * factor)

    def with_width(self, width: float) -> StationaryKernel:
        """Return the kernel with the same signature and another width.

        Parameters
        ----------
        width : float
            Positive width in the units of the bins.
        """
        return replace(self, width=float(width))

    def signature(self, difference: ArrayLike) -> np.ndarray:
        """Return the signature S, an array of the shape of ``difference``; S(0) = 1.

        Parameters
        ----------
        difference : array-like
            Differences of bins in units of the width.
        """
        with np.errstate(over="ignore"):  # where squares overflow, the signature is 0
            return self.signature_function(np.asarray(difference, dtype=np.float64))

    def spectrum(self, frequency: ArrayLike) -> np.ndarray:
        """Return the spectrum kappa, an array of the shape of ``frequency``; its integral is 1.

        Parameters
        ----------
        frequency : array-like
            Frequencies w.

        Raises
        ------
        ValueError
            If the spectrum of this kernel is not known.
        """
        if self.spectrum_function is None:
            raise InputError(
                f"the spectrum of {self.name!r} is not given: use window='least-squares' or 'rectangular', which need "
                "only the signature."
            )
        return self.spectrum_function(np.asarray(frequency, dtype=np.float64))

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m) of rows X (n, bins) and Y (m, bins), in their floating type."""
        return self._sums(X, Y, self.signature)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances 2 sum_i (1 - S), (n, m)."""
        return self._sums(X, Y, lambda difference: 2 * (1 - self.signature(difference)))

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return K(x, x) for every row, (n,), which is the number of bins."""
        rows, _ = paired_rows(X, None, signed=True)
        return np.full(rows.shape[0], rows.shape[1], dtype=rows.dtype)

    def _sums(self, X: MatrixLike, Y: MatrixLike | None, term: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        left, right = paired_rows(X, Y, signed=True)
        out = np.empty((left.shape[0], right.shape[0]), dtype=left.dtype)
        right_dense = _arrays.to_dense(right).astype(np.float64)
        size = max(1, _NUMBERS // max(1, right_dense.size))
        for block in _arrays.slices(out.shape[0], size):
            left_dense = _arrays.to_dense(_arrays.take_rows(left, block)).astype(np.float64)[:, None, :]
            with np.errstate(over="ignore"):  # see ``signature``
                out[block] = term((left_dense - right_dense) / self.width).sum(axis=2)
        return out


def _gaussian_signature(difference: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * difference**2)


def _gaussian_spectrum(frequency: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * frequency**2) / np.sqrt(2 * np.pi)


def _laplace_signature(difference: np.ndarray) -> np.ndarray:
    return np.exp(-np.abs(difference))


def _laplace_spectrum(frequency: np.ndarray) -> np.ndarray:
    return 1 / (np.pi * (1 + frequency**2))


@dataclass(frozen=True)
class _StudentSignature:
    degrees: float

    def __call__(self, difference: np.ndarray) -> np.ndarray:
        return np.power(1 + difference**2 / self.degrees, -(self.degrees + 1) / 2)


@dataclass(frozen=True)
class _StudentSpectrum:
    degrees: float

    def __call__(self, frequency: np.ndarray) -> np.ndarray:
        n = self.degrees
        w = np.sqrt(n) * np.abs(frequency)
        scale = 0.5 * np.sqrt(n / np.pi) * np.exp(-gammaln((n + 1) / 2))
        at_zero = scale * np.exp(gammaln(n / 2))
        safe = np.where(w > 1e-150, w, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            values = scale * 2 * kv(n / 2, safe) * (safe / 2) ** (n / 2)
        return np.where((w > 1e-150) & np.isfinite(values), values, at_zero)


stationary_gaussian = StationaryKernel("additive-gaussian", _gaussian_signature, _gaussian_spectrum)
"""The additive Gaussian kernel, k(x, y) = exp(-(x-y)^2 / (2 width^2))."""

stationary_laplace = StationaryKernel("additive-laplace", _laplace_signature, _laplace_spectrum)
"""The additive Laplace kernel, k(x, y) = exp(-|x-y| / width)."""


def stationary_student(degrees: float = 1.0) -> StationaryKernel:
    """Return the additive Student kernel k(x, y) = (1 + (x-y)^2 / (degrees width^2))^(-(degrees+1)/2), with width 1.

    Parameters
    ----------
    degrees : float, default=1.0
        Degrees of freedom of Student's distribution, whose shape the kernel has; 1 is Cauchy's.

    Raises
    ------
    ValueError
        If ``degrees`` is not positive.

    Examples
    --------
    >>> float(stationary_student().signature(1.0))  # Cauchy's, for one degree of freedom
    0.5
    """
    check_positive(degrees, "degrees (of freedom)")
    name = "additive-student" if degrees == 1 else f"additive-student({degrees!r})"
    return StationaryKernel(name, _StudentSignature(float(degrees)), _StudentSpectrum(float(degrees)))


stationary_cauchy = stationary_student()
"""The additive Student kernel with one degree of freedom, k(x, y) = 1 / (1 + (x-y)^2 / width^2)."""


def stationary_by_name(name: str) -> StationaryKernel:
    """Return the kernel with a name in ``kernels.STATIONARY``, or such as "additive-student(3.0)".

    Raises KeyError for other names.
    """
    base, _, degrees = name.partition("(")
    if degrees and base == "additive-student":
        return stationary_student(float(degrees.rstrip(")")))
    kernel = STATIONARY[name]
    assert isinstance(kernel, StationaryKernel)
    return kernel


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
        return linear_in_features(self, coef, intercept)

    def array_features(self, rows: Array) -> Array:
        xp = _arrays.namespace(rows)
        turns = xp.astype(rows, xp.float64) / (self.period_ * self.kernel_.width)
        angle = 2 * np.pi * (turns - xp.round(turns))
        constant, *others = self.amplitudes_.tolist()
        terms = [xp.ones_like(angle) * constant]
        for j, amplitude in enumerate(others, start=1):
            terms += [amplitude * xp.cos(j * angle), amplitude * xp.sin(j * angle)]
        features = xp.astype(xp.stack(terms, axis=1), rows.dtype)
        return xp.reshape(features, (rows.shape[0], self._n_features_out))

    def on_device(self, like: Array) -> ArrayMap:
        """Return ``array_features``: a map has nothing to copy to a device."""
        return self.array_features


register_named(StationaryKernel, _gaussian_signature, _gaussian_spectrum, _laplace_signature, _laplace_spectrum)
register(StationaryMap, agreeing=lambda state, sizes: [("terms", state["n_terms"], 2 * sizes["harmonics"] - 1)])
