"""Additive stationary kernels: sums over bins of a function of x - y, for bins of either sign.

S is the signature, its Fourier transform the spectrum: S(l) = int kappa(w) exp(-i w l) dw. Source: Vedaldi and
Zisserman, Efficient additive kernels via explicit feature maps, secs. 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, kv

from chimap import _arrays
from chimap._types import ArrayLike, MatrixLike
from chimap._validation import check_positive
from chimap.kernels.base import Kernel, paired_rows
from chimap.kernels.given_spectrum import ScaledSpectrum, SpectrumSignature

_NUMBERS = 2**20  # of pairs and bins whose signature is in memory together


@dataclass(frozen=True)
class StationaryKernel(Kernel):
    """K(x, y) = sum_i S((x_i - y_i) / width), with S(0) = 1.

    Parameters
    ----------
    name : what it is called.
    signature_function : S, of float64 arrays; even, with a Fourier transform that is nowhere negative.
    spectrum_function : kappa(w) = 1/(2 pi) int S(l) exp(i w l) dl; None where it is not known, and the map's "uniform"
        window, which samples it, cannot be had. Where it alone is known, ``of_spectrum`` makes the kernel.
    width : in units of the bins.

    Source: Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, sec. 2.1.2.

    >>> import numpy as np
    >>> stationary_laplace.with_width(2.0)(np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]])).round(4)  # e^-1 + 1
    array([[1.3679]])
    """

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
        """The kernel of a spectrum, K(x, y) = sum_i E cos(w (x_i - y_i) / width) for w drawn from it.

        Parameters
        ----------
        name : what the kernel is called.
        spectrum : of float64 arrays of frequencies w >= 0; finite, nowhere negative, with a finite integral, by which
            it is divided. What it varies in should be of the order of 1.
        width : in units of the bins.

        Raises
        ------
        ValueError
            For any other spectrum.

        Notes
        -----
        The signature is the integral of the spectrum and a wave, by adaptive quadrature at the points of a Chebyshev
        series on the range of the differences: correct to about 1e-9 once the first call for a range has made it, which
        takes a tenth of a second for a smooth formula and some seconds for one of special functions.

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
    def degree(self) -> float:
        """0."""
        return 0.0

    def rescaled(self, factor: float) -> StationaryKernel:
        """With the width multiplied by the factor."""
        return replace(self, width=self.width * factor)

    def with_width(self, width: float) -> StationaryKernel:
        """The same signature of differences in units of ``width`` > 0."""
        return replace(self, width=float(width))

    def signature(self, difference: ArrayLike) -> np.ndarray:
        """S at differences in units of the width; S(0) = 1."""
        return self.signature_function(np.asarray(difference, dtype=np.float64))

    def spectrum(self, frequency: ArrayLike) -> np.ndarray:
        """kappa at frequencies w; its integral is 1. Raises ValueError where it is not known."""
        if self.spectrum_function is None:
            raise ValueError(
                f"the spectrum of {self.name!r} is not given: use window='least-squares' or 'rectangular', which take "
                "the signature alone."
            )
        return self.spectrum_function(np.asarray(frequency, dtype=np.float64))

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Gram matrix (n, m) of rows X (n, bins) and Y (m, bins), dense or sparse; in their floating type."""
        return self._sums(X, Y, self.signature)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Squared distances 2 sum_i (1 - S), (n, m)."""
        return self._sums(X, Y, lambda difference: 2 * (1 - self.signature(difference)))

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """The number of bins, for every row, (n,)."""
        rows, _ = paired_rows(X, None, signed=True)
        return np.full(rows.shape[0], rows.shape[1], dtype=rows.dtype)

    def _sums(
        self, X: MatrixLike, Y: MatrixLike | None, term: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        left, right = paired_rows(X, Y, signed=True)
        out = np.empty((left.shape[0], right.shape[0]), dtype=left.dtype)
        other = _arrays.to_dense(right).astype(np.float64)
        size = max(1, _NUMBERS // max(1, other.size))
        for first in range(0, out.shape[0], size):
            part = slice(first, first + size)
            own = _arrays.to_dense(_arrays.take_rows(left, part)).astype(np.float64)[:, None, :]
            out[part] = term((own - other) / self.width).sum(axis=2)
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
"""k(x, y) = exp(-(x-y)^2 / (2 width^2))."""

stationary_laplace = StationaryKernel("additive-laplace", _laplace_signature, _laplace_spectrum)
"""k(x, y) = exp(-|x-y| / width)."""


def stationary_student(degrees: float = 1.0) -> StationaryKernel:
    """k(x, y) = (1 + (x-y)^2 / (degrees width^2))^(-(degrees+1)/2): the shape of Student's distribution.

    >>> float(stationary_student().signature(1.0))  # Cauchy's, for one degree of freedom
    0.5
    """
    check_positive(degrees, "degrees (of freedom)")
    name = "additive-student" if degrees == 1 else f"additive-student({degrees!r})"
    return StationaryKernel(name, _StudentSignature(float(degrees)), _StudentSpectrum(float(degrees)))


STATIONARY = {k.name: k for k in (stationary_gaussian, stationary_laplace, stationary_student())}
"""Stationary kernels by name, of width 1."""


def stationary_by_name(name: str) -> StationaryKernel:
    """The kernel of a name of the catalogue, or of "additive-student(3.0)". Raises KeyError for other names."""
    base, _, degrees = name.partition("(")
    if degrees and base == "additive-student":
        return stationary_student(float(degrees.rstrip(")")))
    return STATIONARY[name]
