"""The kernels written down once more, from their definitions: in numpy, and in decimals of 50 digits."""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np

from chimap.kernels import CATALOGUE, AdditiveKernel

VARIANTS = [
    variant
    for kernel in CATALOGUE.values()
    for plain in (kernel, kernel.with_gamma(0.5), kernel.with_gamma(2.0))
    for variant in (plain, plain.signed())
]


def variant_name(kernel: AdditiveKernel) -> str:
    return f"{kernel.name}, gamma {kernel.gamma}{', signed' if kernel.is_signed else ''}"


FORMULAS = {
    "chi2": lambda x, y: 2 * x * y / (x + y),
    "intersection": np.minimum,
    "jensen_shannon": lambda x, y: x / 2 * np.log2((x + y) / x) + y / 2 * np.log2((x + y) / y),
    "hellinger": lambda x, y: np.sqrt(x * y),
}


def bins(kernel: AdditiveKernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """k of one bin, for arrays that broadcast."""
    a, b = np.abs(x), np.abs(y)
    both = a * b > 0
    a, b = np.where(both, a, 1.0), np.where(both, b, 1.0)
    values = FORMULAS[kernel.name](a, b) * (a * b) ** ((kernel.gamma - 1) / 2)
    return np.where(both, np.sign(x) * np.sign(y) * values, 0.0)


def gram(kernel: AdditiveKernel, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    return bins(kernel, X[:, None, :], Y[None, :, :]).sum(axis=2)


def squared_distance(kernel: AdditiveKernel, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    own = [bins(kernel, A, A).sum(axis=1) for A in (X, Y)]
    return own[0][:, None] + own[1][None, :] - 2 * gram(kernel, X, Y)


def _decimal_bin(kernel: AdditiveKernel, x: Decimal, y: Decimal) -> Decimal:
    if not (x and y):
        return Decimal(0)
    half, two = Decimal("0.5"), Decimal(2)
    value = {
        "chi2": lambda: 2 * x * y / (x + y),
        "intersection": lambda: min(x, y),
        "jensen_shannon": lambda: (x * ((x + y) / x).ln() + y * ((x + y) / y).ln()) / (2 * two.ln()),
        "hellinger": lambda: (x * y).sqrt(),
    }[kernel.name]()
    return value * (x * y) ** (half * (Decimal(kernel.gamma) - 1))


def decimal_kernel(kernel: AdditiveKernel, x: np.ndarray, y: np.ndarray) -> Decimal:
    """K of two rows of non-negative bins, to 50 digits."""
    with decimal.localcontext() as context:
        context.prec = 50
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        return sum((_decimal_bin(kernel, Decimal(a), Decimal(b)) for a, b in pairs), Decimal(0))


def decimal_distance(kernel: AdditiveKernel, x: np.ndarray, y: np.ndarray) -> Decimal:
    """Squared distance of two rows of non-negative bins, to some 30 digits."""
    with decimal.localcontext() as context:
        context.prec = 50
        return decimal_kernel(kernel, x, x) + decimal_kernel(kernel, y, y) - 2 * decimal_kernel(kernel, x, y)
