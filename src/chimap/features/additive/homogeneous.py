"""The homogeneous kernel map of Vedaldi and Zisserman: a sampled spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Annotated

import numpy as np
from scipy.optimize import minimize_scalar, nnls
from scipy.special import betaln, gammaln

from chimap import _loops
from chimap._errors import InputError
from chimap._messages import Message
from chimap._onnx import Value, positive, stacked
from chimap._types import Array, Shape
from chimap._validation import check_choice, check_positive, is_auto
from chimap.features.additive.base import AdditiveMap
from chimap.kernels import AdditiveKernel, Kernel

WINDOWS = ("least-squares", "rectangular", "uniform")


def check_waves(n_terms: int, window: str, period: float | str, owner: str) -> None:
    """Check what maps to a constant and waves take: ``n_terms`` is odd; ``period`` is "auto" or positive."""
    if n_terms % 2 == 0:
        raise InputError(
            Message(
                "{n_terms} of {} must be odd (one constant, then cosines and sines in pairs); got {}: use {} or {}.",
                owner,
                n_terms,
                n_terms - 1,
                n_terms + 1,
            )
        )
    check_choice(window, "window", WINDOWS)
    if not is_auto(period):
        check_positive(period, "period")


_BINS, _SHAPES = 32, (0.3, 1.0, 5.0)  # of the gamma-distributed histograms behind ``expected_error``
_REACH = 36.0  # integrals stop where the integrand has fallen by e^-36, the rounding of float64


class HomogeneousMap(AdditiveMap):
    """Map bins to samples of the spectrum of a homogeneous kernel.

        Psi(x) = sqrt(x^g) [sqrt(kap_0), sqrt(2 kap_j) cos(j L ln x), sqrt(2 kap_j) sin(j L ln x), j = 1..m].

    n_terms = 2m + 1, L = 2 pi / period, and g is the degree of homogeneity. Harmonics whose kap_j is 0 are left out.
    The map does not depend on the data, and its error on l_g-normalised rows does not depend on the number of bins.

    Parameters
    ----------
    kernel : str or AdditiveKernel, default="chi2"
        Any additive kernel.
    n_terms : int, default=3
        Upper bound on the features for each bin; odd.
    window : str, default="least-squares"
        "least-squares" (the spectrum whose kernel is closest on typical histograms, see ``expected_error``: two to four
        times as accurate as the others), or one of the paper's two: "rectangular" (spectrum of the signature cut to one
        period, negatives set to 0; for Jensen-Shannon the next harmonic after 3, 7 or 11 terms is negative, so that 5,
        9 or 13 terms give the same map) and "uniform" (the spectrum itself, sampled).
    period : float or str, default="auto"
        A positive number, or "auto" for the period with the least ``expected_error``.

    Attributes
    ----------
    period_ : float
        The period.
    amplitudes_ : ndarray of shape (m + 1,)
        sqrt(kap_0), sqrt(2 kap_1), .... Only those that are not 0 have features.
    kernel_ : AdditiveKernel
        The exact kernel.

    References
    ----------
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps, secs. 4 and 5 (two windows).

    Examples
    --------
    >>> import numpy as np
    >>> HomogeneousMap("intersection", n_terms=5).fit_transform(np.array([[0.2, 0.8]])).shape
    (1, 10)
    """

    period_: float
    amplitudes_: Annotated[np.ndarray, Shape("harmonics")]

    def __init__(
        self,
        kernel: str | Kernel = "chi2",
        n_terms: int = 3,
        window: str = "least-squares",
        period: float | str = "auto",
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.window = window
        self.period = period

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_waves(self.n_terms, self.window, self.period, "HomogeneousMap")

    def _fit_values(self, values: np.ndarray, counts: np.ndarray) -> None:
        m = self.n_terms // 2
        if is_auto(self.period):
            self.period_ = best_period(self.kernel_, m, self.window)
        else:
            self.period_ = float(self.period)
        spectrum = discrete_spectrum(self.kernel_, self.period_, m, self.window)
        self.amplitudes_ = np.sqrt(spectrum * np.r_[1.0, np.full(m, 2.0)])

    @property
    def _n_terms_out(self) -> int:
        return 1 + 2 * int(np.count_nonzero(self.amplitudes_[1:]))

    def _formula(self, xp: ModuleType, x: Array) -> Array:
        v = xp.astype(x, xp.float64)
        positive = v > 0
        ln = xp.log(xp.where(positive, v, xp.ones_like(v)))
        root = xp.where(positive, xp.exp(0.5 * self.kernel_.gamma * ln), xp.zeros_like(v))
        step = float(2 * np.pi / self.period_)
        constant, *others = self.amplitudes_.tolist()  # Python floats: numpy scalars would take over the product
        terms = [constant * root]
        for j, amplitude in enumerate(others, start=1):
            if amplitude == 0:
                continue
            terms += [amplitude * root * xp.cos(j * step * ln), amplitude * root * xp.sin(j * step * ln)]
        return xp.astype(xp.stack(terms, axis=1), x.dtype)

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        step = 2 * np.pi / self.period_
        _loops.homogeneous_features(magnitudes, self.amplitudes_, step, self.kernel_.gamma, out)

    def _onnx_terms(self, x: Value) -> Value:
        v = x.cast(np.float64)
        is_positive, safe = positive(v)
        log = safe.apply("Log")
        root = is_positive.where(safe.power(self.kernel_.gamma / 2), 0.0)
        values = [root * self.amplitudes_[0]]
        for j in 1 + np.flatnonzero(self.amplitudes_[1:]):
            angle = log * (2 * np.pi / self.period_ * j)
            values += [root * angle.apply(wave) * self.amplitudes_[j] for wave in ("Cos", "Sin")]
        return stacked(values).cast(x.dtype)


# Finding the nodes of a quadrature costs far more than using them, and the search for a period uses them often.
_legendre = lru_cache(maxsize=64)(np.polynomial.legendre.leggauss)


def discrete_spectrum(kernel: AdditiveKernel, period: float, m: int, window: str) -> np.ndarray:
    """Return kap_0 .. kap_m of the periodic signature, (m + 1,), none of them negative.

    uniform: L kappa(jL). rectangular: (1/P) int over one period of S(t) cos(jLt) dt, by Gauss-Legendre. least-squares:
    the spectrum with the least ``expected_error``.
    """
    step = 2 * np.pi / period
    j = np.arange(m + 1)
    if window == "least-squares":
        design, target = _equations(kernel, m).at(step)
        # At long periods neighbouring harmonics are nearly dependent, and enter and leave the active set more often
        # than scipy's default limit allows.
        spectrum, _ = nnls(design, target, maxiter=100 * (m + 1))
        return spectrum / np.r_[1.0, np.full(m, 2.0)]
    if window == "uniform" and np.isfinite(kernel.spectrum(0.0)):
        return step * kernel.spectrum(j * step)
    # Signatures are smooth on [0, P/2] (the kink of intersection is at 0); more nodes serve higher harmonics.
    nodes, weights = _legendre(64 + 8 * m)
    t = (nodes + 1) * period / 4
    coefficients = 0.5 * np.cos(np.outer(j * step, t)) @ (weights * kernel.signature(t))
    return np.maximum(coefficients, 0)


@dataclass(frozen=True)
class _Equations:
    """Linear equations in kap_0, 2 kap_1, .., 2 kap_m whose mean squared residual is ``expected_error`` squared.

    Each equation is a weighted sum of S - S_hat over log-ratios. A group of equations shares its log-ratios; its
    weights are a matrix (equations, points) or, where each point has an equation, the diagonal (points,) of one.
    """

    log_ratios: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]
    target: np.ndarray
    n_harmonics: int

    def at(self, step: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix (equations, m + 1) at L = step, and the right-hand sides (equations,)."""
        j = np.arange(self.n_harmonics + 1) * step
        waves = [np.cos(np.outer(l, j)) for l in self.log_ratios]  # noqa: E741
        pairs = zip(self.weights, waves, strict=True)
        return np.concatenate([w[:, None] * z if w.ndim == 1 else w @ z for w, z in pairs]), self.target


@lru_cache(maxsize=64)
def _equations(kernel: AdditiveKernel, m: int) -> _Equations:
    """Return the equations for histograms whose bins are independent, with gamma distributions of several shapes a.

    x/(x+y) then has a beta distribution and is independent of x + y. With l = ln x - ln y and q = sech(l/2)/2, the
    density of l is q^(2a) / B(a, a), and (xy)^(g/2) = (x+y)^g q^g. So k - k_hat has the mean E(x+y)^g int q^(2a+g) (S -
    S_hat) / B and the mean square E(x+y)^(2g) int q^(2a+2g) (S - S_hat)^2 / B. In a sum over bins the means add up and
    the squares average out.
    """
    g = kernel.gamma
    points, rows, target = [], [], []
    for a in _SHAPES:
        for power in (1, 2):
            nodes, weights = _legendre(128 + 16 * m)
            rate = a + power * g / 2  # at which q^(2a + power g) decays
            half = 0.5 * _REACH / rate  # half the length of the interval that holds all but e^-_REACH of it
            l = (nodes + 1) * half  # noqa: E741
            log_moment = gammaln(2 * a + power * g) - gammaln(2 * a) - betaln(a, a)
            weights = 2 * weights * half * np.exp(log_moment - 2 * rate * (l / 2 + np.log1p(np.exp(-l))))
            signature = kernel.signature(l)
            if power == 1:
                mean = weights @ signature
                rows.append((weights / mean * np.sqrt(1 - 1 / _BINS))[None])
                target.append(rows[-1] @ signature)
            else:
                rows.append(np.sqrt(weights / _BINS) / mean)
                target.append(rows[-1] * signature)
            points.append(l)
    scale = 1 / np.sqrt(len(_SHAPES))
    return _Equations(tuple(points), tuple(w * scale for w in rows), np.concatenate(target) * scale, m)


def expected_error(kernel: AdditiveKernel, period: float, m: int, window: str) -> float:
    """Return sqrt E[(K - K_hat)^2] / E[K] over pairs of histograms of 32 independent gamma-distributed bins.

    The shapes 0.3, 1 and 5 (sparse, exponential, full) have equal weights. Close values weigh more here than in the
    mean square over all log-ratios, and errors of one sign more than those that cancel in the sum over the bins.
    """
    design, target = _equations(kernel, m).at(2 * np.pi / period)
    spectrum = discrete_spectrum(kernel, period, m, window) * np.r_[1.0, np.full(m, 2.0)]
    return float(np.linalg.norm(design @ spectrum - target))


@lru_cache(maxsize=256)
def best_period(kernel: AdditiveKernel, m: int, window: str) -> float:
    """Return the period that minimises ``expected_error``: the best of a grid, refined by Brent's method.

    If the last harmonics have no amplitude there, return the period of the fewer harmonics, to the last digit.
    """
    grid = np.geomspace(2.0 / max(1.0, kernel.gamma), 40.0 + 8 * m, 160)
    errors = [expected_error(kernel, p, m, window) for p in grid]
    best = int(np.argmin(errors))
    low, high = grid[max(0, best - 1)], grid[min(grid.size - 1, best + 1)]
    refined = minimize_scalar(lambda p: expected_error(kernel, p, m, window), bounds=(low, high), method="bounded")
    n_used = int(np.flatnonzero(discrete_spectrum(kernel, refined.x, m, window))[-1])
    return float(refined.x) if n_used == m else best_period(kernel, n_used, window)
