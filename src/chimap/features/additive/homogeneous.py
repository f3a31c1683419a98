"""The homogeneous kernel map of Vedaldi and Zisserman: a sampled spectrum."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from chimap import _loops
from chimap._validation import check_choice, check_positive
from chimap.features.additive.base import AdditiveMap
from chimap.kernels import AdditiveKernel


class HomogeneousMap(AdditiveMap):
    """Psi(x) = sqrt(x^g) [sqrt(kap_0), sqrt(2 kap_j) cos(j L ln x), sqrt(2 kap_j) sin(j L ln x), j = 1..m].

    n_terms = 2m + 1, L = 2 pi / period, g the degree of homogeneity. It depends on no data, and its error on
    l_g-normalised rows does not depend on the number of bins.

    Parameters
    ----------
    kernel : any additive kernel.
    n_terms : features a bin, odd.
    window : "rectangular" (spectrum of the signature cut to one period, negatives set to 0: the more accurate) or
        "uniform" (the spectrum itself, sampled).
    period : a positive number, or "auto": the one that minimises the mean square of the error
        k(x, y) - Psi(x).Psi(y) relative to max(x, y)^g over log-ratios.

    Learned: ``period_``, ``amplitudes_`` (m + 1,): sqrt(kap_0), sqrt(2 kap_1), ...

    Source: Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, secs. 4 and 5.

    >>> import numpy as np
    >>> HomogeneousMap("intersection", n_terms=5).fit_transform(np.array([[0.2, 0.8]])).shape
    (1, 10)
    """

    def __init__(
        self, kernel: Any = "chi2", n_terms: int = 3, window: str = "rectangular", period: Any = "auto"
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.window = window
        self.period = period

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_terms % 2 == 0:
            raise ValueError(
                f"n_terms of HomogeneousMap must be odd (one constant, then cosines and sines in pairs); "
                f"got {self.n_terms}: use {self.n_terms - 1} or {self.n_terms + 1}."
            )
        check_choice(self.window, "window", ("rectangular", "uniform"))
        if self.period != "auto":
            check_positive(self.period, "period")

    def _fit_values(self, values: np.ndarray) -> None:
        m = self.n_terms // 2
        if self.period == "auto":
            self.period_ = best_period(self.kernel_, m, self.window)
        else:
            self.period_ = float(self.period)
        spectrum = discrete_spectrum(self.kernel_, self.period_, m, self.window)
        self.amplitudes_ = np.sqrt(spectrum * np.r_[1.0, np.full(m, 2.0)])

    def _formula(self, xp: Any, x: Any) -> Any:
        v = xp.astype(x, xp.float64)
        positive = v > 0
        ln = xp.log(xp.where(positive, v, xp.ones_like(v)))
        root = xp.where(positive, xp.exp(0.5 * self.kernel_.gamma * ln), xp.zeros_like(v))
        step = float(2 * np.pi / self.period_)
        first, *others = self.amplitudes_.tolist()  # numbers of Python: numpy's would take the product over
        terms = [first * root]
        for j, amplitude in enumerate(others, start=1):
            terms += [amplitude * root * xp.cos(j * step * ln), amplitude * root * xp.sin(j * step * ln)]
        return xp.astype(xp.stack(terms, axis=1), x.dtype)

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        step = 2 * np.pi / self.period_
        _loops.homogeneous_features(magnitudes, self.amplitudes_, step, self.kernel_.gamma, out)


# Finding the nodes of a quadrature costs far more than using them, and the search for a period uses them often.
_legendre = lru_cache(maxsize=64)(np.polynomial.legendre.leggauss)
_laguerre = lru_cache(maxsize=1)(np.polynomial.laguerre.laggauss)


def discrete_spectrum(kernel: AdditiveKernel, period: float, m: int, window: str) -> np.ndarray:
    """kap_0 .. kap_m of the periodic signature, (m + 1,), none negative.

    uniform: L kappa(jL). rectangular: (1/P) int over one period of S(t) cos(jLt) dt, by Gauss-Legendre.
    """
    step = 2 * np.pi / period
    j = np.arange(m + 1)
    if window == "uniform" and np.isfinite(kernel.spectrum(0.0)):
        return step * kernel.spectrum(j * step)
    # Signatures are smooth on [0, P/2] (the intersection's kink is at 0); nodes grow with the highest harmonic.
    nodes, weights = _legendre(64 + 8 * m)
    t = (nodes + 1) * period / 4
    coefficients = 0.5 * np.cos(np.outer(j * step, t)) @ (weights * kernel.signature(t))
    return np.maximum(coefficients, 0)


def mean_square_error(kernel: AdditiveKernel, period: float, m: int, window: str) -> float:
    """int_0^inf [S(l) - S_hat(l)]^2 exp(-g l) dl: the error of k relative to max(x, y)^g, over log-ratios l."""
    nodes, weights = _laguerre(96)
    l = nodes / kernel.gamma  # noqa: E741
    spectrum = discrete_spectrum(kernel, period, m, window) * np.r_[1.0, np.full(m, 2.0)]
    approximate = np.cos(np.outer(l, np.arange(m + 1)) * (2 * np.pi / period)) @ spectrum
    return float(weights @ (kernel.signature(l) - approximate) ** 2) / kernel.gamma


@lru_cache(maxsize=256)
def best_period(kernel: AdditiveKernel, m: int, window: str) -> float:
    """The period that minimises ``mean_square_error``: the best of a grid, refined by Brent's method."""
    grid = np.geomspace(2.0 / max(1.0, kernel.gamma), 40.0 + 8 * m, 160)
    errors = [mean_square_error(kernel, p, m, window) for p in grid]
    best = int(np.argmin(errors))
    low, high = grid[max(0, best - 1)], grid[min(grid.size - 1, best + 1)]
    found = minimize_scalar(
        lambda p: mean_square_error(kernel, p, m, window), bounds=(low, high), method="bounded"
    )
    return float(found.x)
