"""The signature of a stationary kernel of which only the spectrum is known, by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import quad

from chimap._errors import InputError

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
            raise InputError(
                f"the spectrum of {name!r} must have a finite, positive integral; it is {mass:g}."
            )
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
