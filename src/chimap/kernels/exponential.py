"""Exponential kernels exp(-gamma D^2), with D the distance of an additive kernel or the Euclidean one."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._onnx import Value
from chimap._types import MatrixLike, Rows
from chimap._validation import DataError, ParameterError, check_positive
from chimap.kernels.additive import AdditiveKernel
from chimap.kernels.base import Factors, Kernel
from chimap.kernels.plain import Linear

GAMMA_ROWS = 1000  # rows whose pairs give the mean distance: with so many its error is below 1 %
GAMMA_BLOCK = 256  # rows whose distances to the others are in memory at once


@dataclass(frozen=True)
class Exponential(Kernel):
    """Exponential kernel K(x, y) = exp(-gamma D^2(x, y)), with D^2 the squared distance of an additive kernel.

    Parameters
    ----------
    kernel : AdditiveKernel or Linear
        Kernel whose squared distance is taken.
    gamma : float or str, default="mean"
        A positive number, or "mean" for 1 / mean D^2 over pairs of rows, set by ``fitted``; or a multiple of that, such
        as "0.5*mean".

    Raises
    ------
    ValueError
        If ``kernel`` is no additive kernel or ``gamma`` is not positive.

    Notes
    -----
    This gamma is that of scikit-learn's ``chi2_kernel``. On l1-normalised rows the kernel exp(-beta (1 - K)) of Li,
    Lebanon and Sminchisescu has gamma = beta/2.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import Exponential, chi2
    >>> Exponential(chi2, gamma=2.0)(np.array([[0.25, 0.75]]), np.array([[0.75, 0.25]])).round(4)
    array([[0.3679]])
    """

    degree = 0.0

    kernel: AdditiveKernel | Linear
    gamma: float | str = "mean"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, AdditiveKernel | Linear):
            raise InputError(f"Exponential takes an additive kernel such as chi2; got {self.kernel!r}.")
        if _multiple(self.gamma) is None:
            check_positive(self.gamma, Message("{gamma} (of the exponential kernel)"))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the additive kernel, preceded by "exp-"."""
        return f"exp-{self.kernel.name}"

    @property
    def is_signed(self) -> bool:  # type: ignore[override]
        """Whether bins may be negative."""
        return self.kernel.is_signed

    @property
    def inner(self) -> AdditiveKernel | Linear:
        """The kernel whose distance is taken."""
        return self.kernel

    def factors(self, columns: np.ndarray | None = None) -> Factors:
        """Return the kernel itself."""
        return [(self, columns)]

    def with_factors(self, factors: Iterator[Kernel]) -> Kernel:
        """Return the next of the factors."""
        return next(factors)

    def rescaled(self, factor: float) -> Exponential:
        """Return the kernel with gamma divided by factor^d, where d is the degree of the inner kernel.

        Beyond the range of float64 it is the number of this range that comes closest.
        """
        if _multiple(self.gamma) is not None:
            return self
        gamma, steps = float(self.gamma), math.ceil(self.kernel.degree)
        for _ in range(steps):  # factor^d itself may be beyond the range where gamma is not
            gamma /= factor ** (self.kernel.degree / steps)
        return replace(self, gamma=min(max(gamma, sys.float_info.min), sys.float_info.max))

    def fitted(self, X: MatrixLike, random_state: int | None = 0) -> Exponential:
        """Return this kernel with gamma = 1 / mean D^2 over the pairs of at most 1000 rows of X.

        Raises DataError if all rows are equal, because their mean distance is 0 and gamma would be infinite.
        """
        if _multiple(self.gamma) is None:
            return self
        rows = _arrays.as_rows(X)
        if rows.shape[0] > GAMMA_ROWS:
            chosen = np.random.default_rng(random_state).choice(rows.shape[0], GAMMA_ROWS, replace=False)
            rows = _arrays.take_rows(rows, np.sort(chosen))
        return self.of_mean_distance(self._mean_distance(rows), rows.shape[0])

    def of_mean_distance(self, mean: float, n_rows: int) -> Exponential:
        """Return this kernel with gamma computed from a mean distance that is already known.

        Parameters
        ----------
        mean : float
            Mean D^2 over the pairs of the rows.
        n_rows : int
            Number of these rows; a single row has no pairs, and any gamma serves it.

        Raises
        ------
        DataError
            If the mean is 0, there are several rows and gamma depends on the mean.
        """
        multiple = _multiple(self.gamma)
        if multiple is None:
            return self
        if not mean > 0:
            if n_rows != 1:
                raise DataError(
                    Message(
                        "{gamma='mean'}: all sampled rows are equal, so their mean distance is 0. Pass {gamma} as a "
                        "number, or check that the data vary."
                    )
                )
            mean = 1.0  # a single row has no pairs: any gamma serves
        return replace(self, gamma=multiple / mean)

    def _mean_distance(self, rows: Rows) -> float:
        """Return the mean D^2 over pairs of different rows, or 0 if there are none."""
        n, total = rows.shape[0], 0.0
        for stop in range(GAMMA_BLOCK, n + GAMMA_BLOCK, GAMMA_BLOCK):
            block = _arrays.view_rows(rows, slice(stop - GAMMA_BLOCK, min(stop, n)))
            total += float(self.kernel.distance(block).sum(dtype=np.float64))
            if stop < n:  # each pair counts twice, as it does within a block
                later = _arrays.view_rows(rows, slice(stop, n))
                total += 2 * float(self.kernel.distance(block, later).sum(dtype=np.float64))
        return total / max(1, n * (n - 1))

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m). With gamma="mean" the mean is taken over the pairs of X."""
        kernel = self.fitted(X)
        values = self.kernel.distance(X, Y)
        values *= -kernel.gamma  # type: ignore[operator]
        return np.exp(values, out=values)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return ones of shape (n,)."""
        rows = _arrays.as_rows(X)
        return np.ones(rows.shape[0], dtype=rows.dtype)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances 2 - 2 K(x, y), (n, m), without cancellation for close rows."""
        kernel = self.fitted(X)
        values = self.kernel.distance(X, Y)
        values *= -kernel.gamma  # type: ignore[operator]
        return -2 * np.expm1(values, out=values)

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        return (self.kernel.onnx_distance(x, Y).at_least(0.0) * -float(self.gamma)).apply("Exp")


def _multiple(gamma: float | str) -> float | None:
    """Return 1 for "mean", 0.5 for "0.5*mean" and None for numbers; raise ValueError for other strings."""
    if not isinstance(gamma, str):
        return None
    factor, _, mean = gamma.rpartition("*")
    try:
        multiple = float(factor or 1)
    except ValueError:
        multiple = float("nan")
    if mean.strip() != "mean" or not 0 < multiple < float("inf"):
        raise ParameterError(
            Message("{gamma} (of the exponential kernel)"),
            gamma,
            "a positive number, 'mean', or a multiple such as '0.5*mean'",
        )
    return multiple


@dataclass(frozen=True)
class Gaussian(Exponential):
    """Gaussian kernel K(x, y) = exp(-gamma |x - y|^2), for entries of either sign.

    It is the exponential form of the linear kernel.

    Parameters
    ----------
    gamma : float or str, default="mean"
        A positive number, "mean" or a multiple such as "0.5*mean", as in ``Exponential``.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(gamma=0.5)(np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])).round(4)
    array([[0.3679]])
    """

    name = "gaussian"

    kernel: Linear = field(default=Linear(), init=False)
