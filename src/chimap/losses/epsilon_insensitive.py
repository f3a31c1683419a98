"""The smooth epsilon-insensitive loss for regression."""

from __future__ import annotations

from dataclasses import dataclass
from math import acosh, cosh, exp, tanh
from typing import ClassVar

import numpy as np
from scipy.special import expit

from chimap._validation import check_positive
from chimap.losses.base import Domain, Loss

# Logarithm of a number x for which 1 + x^2 rounds to x^2 in every precision, and x^2 overflows in none.
_FAR = 30.0


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """The epsilon-insensitive gamma-logistic loss: max(0, |r| - epsilon) with rounded corners, r = s - y.

    With g the sharpness it is

        (log(1 + e^(g(r - epsilon))) + log(1 + e^(-g(r + epsilon))) - 2 log(1 + e^(-g epsilon))) / g,

    which is 0 at r = 0. The paper calls the sharpness gamma, a name that this package uses for kernels.

    The three logarithms cancel if the residual is small. As (1 + q e^x)(1 + q e^-x) = (1 + q)^2 + 4 q sinh^2(x/2), they
    combine into a single logarithm, whose argument contains no difference:

        log(1 + (sinh(g r / 2) / cosh(g epsilon / 2))^2) / g,

    and likewise the derivative is sinh(g r) / (cosh(g r) + cosh(g epsilon)).

    Parameters
    ----------
    epsilon : float, default=0.1
        Half of the width of the insensitive zone, in units of the targets; at least 0.
    sharpness : float, default=10.0
        Sharpness g of the corners, positive, in units of 1 / target.

    Raises
    ------
    ValueError
        If epsilon is negative or the sharpness is not positive.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.4. Dekel, Shalev-Shwartz and Singer, Smooth
    epsilon-insensitive regression by loss symmetrization.

    Examples
    --------
    >>> EpsilonInsensitive(epsilon=0.1, sharpness=10).value(0.0, np.array([0.0, 1.0, 400.0])).round(3).tolist()
    [0.0, 0.837, 399.837]
    """

    epsilon: float = 0.1
    sharpness: float = 10.0

    name: ClassVar[str] = "epsilon_insensitive"
    domain: ClassVar[Domain] = "real"

    def __post_init__(self) -> None:
        check_positive(self.sharpness, "sharpness")
        if self.epsilon != 0:
            check_positive(self.epsilon, "epsilon")

    @property
    def curvature(self) -> float:
        """Least Lipschitz constant of the gradient.

        It is g max_r (1 + c cosh(g r)) / (cosh(g r) + c)^2 with c = cosh(g epsilon).
        """
        # As a function of u = cosh(g r) >= 1, the maximum is at u = c - 2/c, or at u = 1 if c - 2/c is less. At
        # c - 2/c it is c^2 / (4 (c^2 - 1)), and c^2 - 1 = c^2 tanh^2(g epsilon).
        inner = float(self.sharpness * self.epsilon)
        if inner <= acosh(2):
            return self.sharpness / (1 + cosh(inner))
        return self.sharpness / (4 * tanh(inner) ** 2)

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the loss; see the class for its formula."""
        half = np.abs(np.subtract(score, target)) * (self.sharpness / 2)
        level = float(self.sharpness * self.epsilon / 2)
        # above is the logarithm of the ratio of e^half / 2 to e^level / 2. Beyond _FAR the 1 of 1 + root^2 is lost, so
        # the excess is added to the logarithm.
        above = half - level
        root = np.exp(np.minimum(above, _FAR)) * -np.expm1(-2 * half) / (1 + exp(-2 * level))
        return (np.log1p(np.square(root)) + 2 * np.maximum(above - _FAR, 0)) / self.sharpness

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return sinh(g r) / (cosh(g r) + cosh(g epsilon))."""
        # It equals sign(r) (1 - e^-2a) / ((1 + e^(b - a)) (1 + e^(-a - b))) with a = g |r| and b = g epsilon.
        residual = np.subtract(score, target)
        a, b = np.abs(residual) * self.sharpness, float(self.sharpness * self.epsilon)
        return np.sign(residual) * -np.expm1(-2 * a) * expit(a - b) * expit(a + b)
