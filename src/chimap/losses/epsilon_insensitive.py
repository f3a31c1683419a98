"""The smooth epsilon-insensitive loss of regression."""

from __future__ import annotations

from dataclasses import dataclass
from math import acosh, cosh, exp, tanh
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit

from chimap._validation import check_positive
from chimap.losses.base import Loss

_FAR = (
    30.0  # log of a number whose square hides the 1 of 1 + square in every precision, and overflows in none
)


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """The epsilon-insensitive gamma-logistic loss: max(0, |r| - epsilon) of r = s - y, with rounded corners.

    (log(1 + e^(g(r - epsilon))) + log(1 + e^(-g(r + epsilon))) - 2 log(1 + e^(-g epsilon))) / g, with g the
    sharpness (gamma in the paper, a word that here is the kernel's); both in units of the targets. It is 0 at r = 0.

    The three logarithms cancel where the residual is small. As (1 + q e^x)(1 + q e^-x) = (1 + q)^2 + 4 q sinh^2(x/2),
    they are one, whose argument has no difference in it:

        log(1 + (sinh(g r / 2) / cosh(g epsilon / 2))^2) / g,

    and likewise the derivative sinh(g r) / (cosh(g r) + cosh(g epsilon)).

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.4; Dekel, Shalev-Shwartz and Singer, Smooth
    epsilon-insensitive regression by loss symmetrization.

    >>> EpsilonInsensitive(epsilon=0.1, sharpness=10).value(0.0, np.array([0.0, 1.0, 400.0])).round(3).tolist()
    [0.0, 0.837, 399.837]
    """

    epsilon: float = 0.1
    sharpness: float = 10.0

    name: ClassVar[str] = "epsilon_insensitive"
    domain: ClassVar[Literal["sign", "real"]] = "real"

    def __post_init__(self) -> None:
        check_positive(self.sharpness, "sharpness")
        if self.epsilon != 0:
            check_positive(self.epsilon, "epsilon")

    @property
    def curvature(self) -> float:
        """g max_r (1 + c cosh(g r)) / (cosh(g r) + c)^2 with c = cosh(g epsilon)."""
        # in u = cosh(g r) >= 1 the maximum is at u = c - 2/c, or at 1 where that is less; there it is c^2/(4(c^2 - 1))
        # and c^2 - 1 = c^2 tanh^2
        inner = float(self.sharpness * self.epsilon)
        if inner <= acosh(2):
            return self.sharpness / (1 + cosh(inner))
        return self.sharpness / (4 * tanh(inner) ** 2)

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """The loss, as on the class."""
        half = np.abs(np.subtract(score, target)) * (self.sharpness / 2)
        level = float(self.sharpness * self.epsilon / 2)
        # log of the ratio of e^half / 2 to e^level / 2: beyond FAR the 1 is lost, and the rest of it is added
        above = half - level
        root = np.exp(np.minimum(above, _FAR)) * -np.expm1(-2 * half) / (1 + exp(-2 * level))
        return (np.log1p(np.square(root)) + 2 * np.maximum(above - _FAR, 0)) / self.sharpness

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """sinh(g r) / (cosh(g r) + cosh(g epsilon))."""
        # = (1 - e^-2a) / ((1 + e^(b - a)) (1 + e^(-a - b))) with a = g |r|, b = g epsilon, and the sign of r
        residual = np.subtract(score, target)
        a, b = np.abs(residual) * self.sharpness, float(self.sharpness * self.epsilon)
        return np.sign(residual) * -np.expm1(-2 * a) * expit(a - b) * expit(a + b)
