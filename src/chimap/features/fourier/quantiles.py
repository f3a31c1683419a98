"""Quantiles of the distributions that frequencies are drawn from: uniform numbers in, frequencies out.

Each function takes u in (0, 1), of any shape, float64, and returns h(u). A stationary kernel k(t) = E cos(w t) has the
distribution of w as its spectrum: the normal distribution for exp(-t^2/2), the hyperbolic secant for sech(t), Cauchy's
for exp(-|t|).

Source: Fourier kernel learning, Table 1.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri


def gaussian(u: np.ndarray) -> np.ndarray:
    """Return the quantiles of N(0, 1).

    >>> round(float(gaussian(np.array(0.01))), 6)
    -2.326348
    """
    return ndtri(u)


def sech(u: np.ndarray) -> np.ndarray:
    """Return the quantiles (2/pi) ln tan(pi u / 2) of the density sech(pi w / 2) / 2, the transform of sech(t).

    >>> round(float(sech(np.array(0.3))), 6)
    -0.429257
    """
    # Taking the tangent on the smaller side keeps the digits of u near 1.
    smaller = np.minimum(u, 1 - u)
    return np.where(u < 0.5, 1.0, -1.0) * (2 / np.pi) * np.log(np.tan(0.5 * np.pi * smaller))


def cauchy(u: np.ndarray) -> np.ndarray:
    """Return the quantiles tan(pi (u - 1/2)) of the density 1 / (pi (1 + w^2)), the transform of exp(-|t|).

    >>> round(float(cauchy(np.array(0.3))), 6)
    -0.726543
    """
    return np.tan(np.pi * (np.asarray(u) - 0.5))
