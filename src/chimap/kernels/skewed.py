"""Skewed multiplicative kernels: products over bins of a function of ln(x + c) - ln(y + c)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import brentq

from chimap import _arrays, _loops, _threads
from chimap._onnx import Value
from chimap._types import MatrixLike, Rows
from chimap._validation import DataError, check_positive, is_auto
from chimap.kernels.base import Kernel, paired_rows

_PAIRED_ROWS = 64  # rows whose pairs determine c
_BLOCK_NUMBERS = 2**22  # entries of X that are made dense at once
NEAR = 0.5  # |(x - m) / (m + c)| below which the logarithm is taken by log1p
_TILE_BYTES = 2**18  # the tile of Y that stays in a core's cache while the rows of X pass over it


@dataclass(frozen=True)
class Skewed(Kernel):
    """Base class of the skewed kernels, for bins above -c; K(x, x) = 1:

        K(x, y) = prod_i f(sigma (ln(x_i + c) - ln(y_i + c)))

    ln(x + c) is nearly linear below c and logarithmic above: with c the median, half of the values lie on either side.
    But K is a product over the bins, and with hundreds of them it would be next to zero for any two rows. "auto"
    therefore takes the median of the non-zero magnitudes of the data if the mean of -ln K over pairs of rows is then at
    most 1, and otherwise the larger c for which it is 1, just as gamma="mean" does for exponential kernels.

    Parameters
    ----------
    c : float or str, default="auto"
        A positive number, or "auto", set by ``fitted``.
    sigma : float, default=0.5
        Inverse width, positive.
    """

    degree = 0.0

    c: float | str = "auto"
    sigma: float = 0.5

    def __post_init__(self) -> None:
        if not is_auto(self.c):
            check_positive(self.c, "c (of the skewed kernel: a number, or 'auto')")
        check_positive(self.sigma, "sigma")

    def rescaled(self, factor: float) -> Self:
        """Return the kernel with c multiplied by ``factor``."""
        return self if is_auto(self.c) else replace(self, c=float(self.c) * factor)

    def fitted(self, X: MatrixLike, random_state: int | None = 0) -> Self:
        """Return this kernel with c a number, from the pairs of at most 64 rows; c = 1 if all entries are zero."""
        if not is_auto(self.c):
            return self
        rows = _arrays.as_rows(X)
        median = float(self.at_median(rows).c)
        if rows.shape[0] > _PAIRED_ROWS:
            chosen = np.random.default_rng(random_state).choice(rows.shape[0], _PAIRED_ROWS, replace=False)
            rows = _arrays.take_rows(rows, np.sort(chosen))
        return replace(self, c=median * self._factor_for_unit_mean(rows, median))

    def at_median(self, X: MatrixLike) -> Self:
        """Return this kernel with c the median of the non-zero magnitudes, if it is "auto".

        Kernels whose widths are learned use it: the mean of -ln K does not matter to them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            The rows.
        """
        if not is_auto(self.c):
            return self
        values = np.abs(_arrays.nonzero_values(_arrays.as_rows(X)))
        return replace(self, c=float(np.median(values)) if values.size else 1.0)

    def _factor_for_unit_mean(self, rows: Rows, median: float) -> float:
        """Return the least factor >= 1 of the median for which the mean of -ln K over pairs of rows is at most 1."""
        n_pairs = max(1, rows.shape[0] * (rows.shape[0] - 1))

        def surplus(log_factor: float) -> float:
            return -float(replace(self, c=median * np.exp(log_factor))._log_gram(rows, None).sum()) / n_pairs - 1

        if surplus(0.0) <= 0:
            return 1.0
        highest = 1.0
        while surplus(highest) > 0:  # it ends: -ln K falls at least as fast as 1/c
            highest *= 2
        return float(np.exp(brentq(surplus, 0.0, highest, xtol=1e-3)))

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m). With c="auto", c is computed from X.

        Raises DataError for NaN, infinite or too small entries (named by row and column).
        """
        logs = self._log_gram(X, Y)
        return np.exp(logs, out=logs).astype(_dtype(X, Y), copy=False)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return ones of shape (n,)."""
        rows = _arrays.as_rows(X)
        return np.ones(rows.shape[0], dtype=rows.dtype)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances 2 - 2 K(x, y), (n, m), without cancellation for close rows."""
        logs = self._log_gram(X, Y)
        return (-2 * np.expm1(logs, out=logs)).astype(_dtype(X, Y), copy=False)

    def logarithms(self, rows: Rows, centre: np.ndarray, name: str = "X") -> np.ndarray:
        """Return ln(x + c) - ln(m + c) for checked rows, a dense array (n, bins); c must be a number.

        K depends on differences of logarithms alone, so any centre m will do. A centre amid the data keeps the digits
        of rows that are nearly equal: ln(x + c) itself has lost them in float32 if x varies by a millionth.

        Parameters
        ----------
        rows : array or sparse matrix of shape (n, bins)
            Checked rows.
        centre : ndarray of shape (bins,)
            The centre m, above -c.
        name : str, default="X"
            Name of the rows in error messages.

        Raises
        ------
        DataError
            If an entry is not above -c.
        """
        x, c, m = _arrays.to_dense(rows), rows.dtype.type(self.c), centre.astype(rows.dtype, copy=False)
        above = x + c
        if not (above > 0).all():
            row, column = np.argwhere(~(above > 0))[0]
            value, least = above[row, column] - self.c, -self.c  # type: ignore[operator]
            raise DataError(
                f"Negative values in data passed as {name}, row {row}, column {column}: {value:g} is not above "
                f"-c = {least:g}. Shift the data, or give a larger c."
            )
        with np.errstate(over="ignore"):
            share = (x - m) / (m + c)
            above /= m + c
        np.log(above, out=above)
        # log1p of the difference is exact where it is small beside m + c; further off, 1 + share would lose digits
        # of x + c.
        return np.log1p(share, out=above, where=np.abs(share) < NEAR)

    def centre(self, rows: Rows) -> np.ndarray:
        """Return the mean of the rows, (bins,) in their dtype, as a centre for ``logarithms``.

        The centre is 0 in bins whose mean is not above -c.

        Parameters
        ----------
        rows : array or sparse matrix of shape (n, bins)
            Checked rows.
        """
        means = _arrays.column_means(rows).astype(rows.dtype)
        means[~(means + rows.dtype.type(self.c) > 0)] = 0  # ``logarithms`` refuses such rows
        return means

    def _log_gram(self, X: MatrixLike, Y: MatrixLike | None) -> np.ndarray:
        """Return ln K, (n, m) float64; a product of thousands of bins would leave the range of the floats."""
        left, right = paired_rows(X, Y, signed=True)
        kernel = self.fitted(left)
        right_dense = _arrays.to_dense(_arrays.as_rows(right, np.float64))
        centre = kernel.centre(right_dense)
        right_logs = kernel._prepared(kernel.logarithms(right_dense, centre, "Y" if Y is not None else "X"))
        out = np.empty((left.shape[0], right.shape[0]))
        size = max(1, _BLOCK_NUMBERS // max(1, left.shape[1]))
        tile = max(1, _TILE_BYTES // max(1, right_logs.shape[1] * right_logs.itemsize))
        for part in _arrays.slices(left.shape[0], size):
            block = _arrays.as_rows(_arrays.take_rows(left, part), np.float64)
            logs, sums = kernel._prepared(kernel.logarithms(block, centre)), out[part]
            _threads.over_rows(
                sums.shape[0],
                right_logs.size,
                lambda rows, logs=logs, sums=sums: _loops.pair_sums[kernel._form](  # type: ignore[misc]
                    logs[rows], right_logs, tile, sums[rows]
                ),
            )
        return kernel._finish(out)

    _form: ClassVar[int]

    @abstractmethod
    def _prepared(self, logs: np.ndarray) -> np.ndarray:
        """Turn ``logarithms`` into the input of the compiled sum."""

    @abstractmethod
    def _finish(self, sums: np.ndarray) -> np.ndarray:
        """Turn the compiled sum into ln K."""

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        logs, others = (x + float(self.c)).apply("Log"), np.log(Y + float(self.c))
        return x.graph.each_row(others, lambda y: self._onnx_log((logs - y) * self.sigma).sum(1)).apply("Exp")

    @abstractmethod
    def _onnx_log(self, u: Value) -> Value:
        """Return ln k of the differences u of logarithms, times sigma, as ONNX nodes."""


@dataclass(frozen=True)
class SkewedChi2(Skewed):
    """Skewed chi-square kernel, K(x, y) = prod_i sech(sigma (ln(x_i + c) - ln(y_i + c))).

    With sigma = 1/2 it is prod_i 2 sqrt((x_i+c)(y_i+c)) / (x_i+y_i+2c).

    Parameters
    ----------
    c : float or str, default="auto"
        A positive number; bins are above -c. "auto" sets it from the data in ``fitted``: the median of the non-zero
        magnitudes, or a larger number for which the mean of -ln K over pairs of rows is 1.
    sigma : float, default=0.5
        Inverse width, positive.

    References
    ----------
    Li, Ionescu and Sminchisescu, Random Fourier approximations for skewed multiplicative histogram kernels. Fourier
    kernel learning, Table 1, has sigma.

    Examples
    --------
    >>> import numpy as np
    >>> SkewedChi2(c=1.0)(np.array([[0.0]]), np.array([[3.0]]))
    array([[0.8]])
    """

    name = "skewed-chi2"
    _form: ClassVar[int] = _loops.LOG_SECH

    def _prepared(self, logs: np.ndarray) -> np.ndarray:
        return np.exp(self.sigma * logs, out=logs)

    def _finish(self, sums: np.ndarray) -> np.ndarray:
        return np.minimum(sums, 0, out=sums)

    def _onnx_log(self, u: Value) -> Value:
        # ln(1 / cosh u) = ln 2 - |u| - ln(1 + exp(-2 |u|))
        size = u.apply("Abs")
        return np.log(2.0) - size - ((size * -2.0).apply("Exp") + 1.0).apply("Log")


@dataclass(frozen=True)
class SkewedIntersection(Skewed):
    """Skewed intersection kernel, K(x, y) = prod_i exp(-sigma |ln(x_i + c) - ln(y_i + c)|).

    With sigma = 1/2 it is the product of min(sqrt((x_i+c)/(y_i+c)), sqrt((y_i+c)/(x_i+c))).

    Parameters
    ----------
    c : float or str, default="auto"
        A positive number; bins are above -c. "auto" sets it from the data in ``fitted``, as in ``SkewedChi2``.
    sigma : float, default=0.5
        Inverse width, positive.

    References
    ----------
    Li, Ionescu and Sminchisescu, Random Fourier approximations for skewed multiplicative histogram kernels. Fourier
    kernel learning, Table 1, has sigma.

    Examples
    --------
    >>> import numpy as np
    >>> SkewedIntersection(c=1.0)(np.array([[0.0]]), np.array([[3.0]]))
    array([[0.5]])
    """

    name = "skewed-intersection"
    _form: ClassVar[int] = _loops.INTERSECTION + _loops.DISTANCE

    def _prepared(self, logs: np.ndarray) -> np.ndarray:
        return logs

    def _finish(self, sums: np.ndarray) -> np.ndarray:
        sums *= -self.sigma
        return sums

    def _onnx_log(self, u: Value) -> Value:
        return u.apply("Abs") * -1.0


def _dtype(X: MatrixLike, Y: MatrixLike | None) -> np.dtype:
    kinds = [_arrays.float_dtype(getattr(A, "dtype", np.float64)) for A in (X, Y) if A is not None]
    return np.result_type(*kinds)
