"""The signature of a stationary kernel whose spectrum alone is known, by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import quad

# The panels on which the spectrum is integrated, and then the rest of the line: in units of 1 / width.
_EDGES = np.r_[0.0, np.exp2(np.arange(-4.0, 7.0))]
_ERROR = 1e-11  # of an integral
_CLOSE = 1e-9  # what the degree of the series is doubled for
_DEGREES = (32, 64, 128, 256, 512, 1024)

Spectrum = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ScaledSpectrum:
    """A spectrum over its integral."""

    function: Spectrum
    mass: float

    @classmethod
    def of(cls, name: str, function: Spectrum) -> ScaledSpectrum:
        """Raises ValueError for a spectrum that is negative, not a number somewhere, or has no finite integral."""
        frequencies = np.r_[0.0, np.geomspace(1e-3, 1e3, 400)]
        with np.errstate(all="ignore"):
            values = np.asarray(function(frequencies), dtype=np.float64)
        if values.shape != frequencies.shape:
            raise ValueError(
                f"the spectrum of {name!r} must give a number for each frequency: {values.shape} came for "
                f"{frequencies.shape}."
            )
        wrong = ~np.isfinite(values) | (values < 0)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"the spectrum of {name!r} must be finite and nowhere negative; it is {values[at]:g} at the frequency "
                f"{frequencies[at]:g}."
            )
        mass = 2 * cosine_integral(function, 0.0)
        if not (np.isfinite(mass) and mass > 0):
            raise ValueError(
                f"the spectrum of {name!r} must have a finite, positive integral; it is {mass:g}."
            )
        return cls(function, mass)

    def __call__(self, frequency: np.ndarray) -> np.ndarray:
        """kappa, even and of the integral 1."""
        return np.asarray(self.function(np.abs(frequency)), dtype=np.float64) / self.mass


@dataclass(frozen=True)
class SpectrumSignature:
    """S(l) = 2 int_0^inf kappa(w) cos(w l) dw at many differences at once.

    The integral is taken at the points of a Chebyshev series on the range of the differences, up to the next power of
    two, whose degree is doubled until series and integral agree; the series does the rest.
    """

    spectrum: ScaledSpectrum
    _known: dict[float, np.ndarray] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, difference: np.ndarray) -> np.ndarray:
        """S, of the shape of the differences."""
        l = np.abs(np.asarray(difference, dtype=np.float64))  # noqa: E741
        farthest = np.exp2(np.ceil(np.log2(max(float(l.max()), 1.0)))) if l.size else 1.0
        return np.asarray(chebyshev.chebval(2 * l / farthest - 1, self._series(float(farthest))))

    def _series(self, farthest: float) -> np.ndarray:
        """Coefficients of S on [0, farthest]."""
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
    """int_0^inf kappa(w) cos(w l) dw, panel by panel: a narrow spectrum is lost in a range as long as a slow wave."""

    def at(w: float) -> float:
        return float(np.asarray(spectrum(np.array([w]))).ravel()[0])

    wave = {"weight": "cos", "wvar": difference} if difference else {}
    settings = {"epsabs": _ERROR, "limit": 200}
    panels = [quad(at, a, b, **wave, **settings)[0] for a, b in pairwise(_EDGES)]
    return float(sum(panels) + quad(at, _EDGES[-1], np.inf, **wave, **settings)[0])


def _coefficients(values: np.ndarray) -> np.ndarray:
    """Of the Chebyshev series through values (n + 1,) at cos(pi k / n)."""
    n = values.size - 1
    spectrum = np.fft.rfft(np.r_[values, values[-2:0:-1]]).real / n
    spectrum[[0, -1]] /= 2
    return spectrum
