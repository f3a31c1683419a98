"""Scores of a model as functions of mapped rows, with their gradients, for explanations and learned bin weights.

A model of an additive kernel, or of an exponential one over it, depends on a row x only through its mapped row Psi(x),
called u here. Each coordinate of u belongs to one bin. The scores f(u) take one of three forms, for outputs c = 1..t:

    linear      f_c(u) = u . w_c + b_c
    expansion   f_c(u) = sum_j A_jc exp(-|u - v_j|^2 / 2) + b_c
    waves       f_c(u) = sum_k C_kc cos(w_k . u + phase_k) + b_c
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows

_POINTS = 16  # of the Gauss-Legendre rule on a piece of a path
_COMPLETE = 1e-7  # largest error of an integral, as a share of the scores whose difference it should be
_NUMBERS = 2**22  # entries of an array for a block of rows


class Tables(ABC):
    """A linear model on features of single bins as tables, in which the contribution of each bin is looked up."""

    is_exact: ClassVar[bool] = False  # for every value, up to rounding

    @property
    @abstractmethod
    def n_bins(self) -> int:
        """Number of bins."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of outputs t."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the tables in memory."""

    @property
    @abstractmethod
    def worst_error(self) -> float:
        """Upper bound of the error of any score of a row within the tables."""

    @abstractmethod
    def describe(self) -> str:
        """Return a description such as "50 codes per bin"."""

    @property
    def about(self) -> JSON:
        """Kernel, gamma and features of tables that no model was compiled to."""
        return {"kernel": None, "gamma": None, "features": self.describe()}

    @abstractmethod
    def scores(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return (scores (n, t) float64, outside (n,) bool) of checked rows; scores of rows outside mean nothing."""

    @abstractmethod
    def bound(self, rows: Rows) -> np.ndarray:
        """Return an upper bound of the error of each row's scores, (n,) float64."""


class MappedFunction(ABC):
    """Scores f(u) of mapped rows, and their gradients."""

    intercept: np.ndarray

    @property
    def n_outputs(self) -> int:
        """Number of outputs, t."""
        return int(self.intercept.size)

    @abstractmethod
    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Return scores (n, t) of mapped rows (n, p)."""

    @abstractmethod
    def along(self, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Return contributions (p, t) of the coordinates to f(stop) - f(start); start and stop are (p,).

        They are the integral of the gradient along the straight line between them, times the difference.
        """

    @abstractmethod
    def mean_squared_gradient(self, u: np.ndarray) -> np.ndarray:
        """Return the mean over mapped rows (n, p) of sum_c (df_c / du_q)^2, (p,)."""

    @abstractmethod
    def divided(self, units: np.ndarray) -> MappedFunction:
        """Return the function f_c(u) / units_c; units (t,)."""


class _Combination(MappedFunction):
    """Functions f(u) = values(u) . coef + intercept; coef (m, t), intercept (t,)."""

    coef: np.ndarray

    @abstractmethod
    def values(self, u: np.ndarray) -> np.ndarray:
        """Return what ``coef`` combines, (n, m), of mapped rows (n, p)."""

    def _gradients(self, u: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the gradient (n, p) of each output."""
        raise NotImplementedError

    def __call__(self, u: np.ndarray) -> np.ndarray:
        return np.asarray(self.values(u) @ self.coef + self.intercept)

    def mean_squared_gradient(self, u: np.ndarray) -> np.ndarray:
        """Return the mean over rows of squared gradients, one output at a time: (rows x m) by (m x p) products."""
        total = np.zeros(u.shape[1])
        rows = max(1, _NUMBERS // max(self.coef.shape[0], u.shape[1]))
        for part in _arrays.slices(u.shape[0], rows):
            for gradient in self._gradients(u[part]):
                total += np.einsum("nq,nq->q", gradient, gradient)
        return total / u.shape[0]

    def divided(self, units: np.ndarray) -> Self:
        return replace(self, coef=self.coef / units, intercept=self.intercept / units)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class LinearFunction(_Combination):
    """The function f(u) = u . coef + intercept; coef (p, t), intercept (t,)."""

    coef: np.ndarray
    intercept: np.ndarray

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return the rows themselves."""
        return u

    def along(self, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Return (stop - start) coef, which is exact."""
        return (stop - start)[:, None] * self.coef

    def mean_squared_gradient(self, u: np.ndarray) -> np.ndarray:
        """Return the squared gradient, which is the same for all rows."""
        return np.asarray(np.square(self.coef).sum(axis=1))


@dataclass(frozen=True, eq=False)
class GaussianExpansion(_Combination):
    """The function f(u) = exp(-|u - v_j|^2 / 2) . coef + intercept.

    The centres v (m, p) are dense or CSR; coef (m, t), intercept (t,). With k_j the kernel values, the gradient is

        df_c/du = sum_j coef_jc k_j (v_j - u).
    """

    centres: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return kernel values (n, m) of mapped rows with the centres."""
        exponents = _arrays.to_dense(u @ self.centres.T)
        exponents -= _arrays.row_squares(u)[:, None] / 2
        exponents -= _arrays.row_squares(self.centres) / 2
        return np.asarray(np.exp(np.minimum(exponents, 0, out=exponents), out=exponents))

    def along(self, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Return contributions by Gauss-Legendre, with finer pieces of the line until they sum to the difference."""
        first, last = self(np.stack([start, stop]))
        tolerance = _COMPLETE * max(1.0, float(np.abs([first, last]).max()))
        for pieces in (1, 2, 4, 8, 16, 32):
            out = self._along(start, stop, pieces)
            if np.abs(out.sum(axis=0) - (last - first)).max() < tolerance:
                break
        return out

    def _along(self, start: np.ndarray, stop: np.ndarray, pieces: int) -> np.ndarray:
        """Return contributions on a number of pieces; kernel values at all points of the line are one product."""
        points, weights = _line(pieces)
        difference = stop - start
        values = self.values(start + points[:, None] * difference) * weights[:, None]  # (points, m)
        by_centre = values.sum(axis=0)[:, None] * self.coef  # (m, t)
        gradient = self.centres.T @ by_centre - start[:, None] * by_centre.sum(axis=0)
        gradient -= difference[:, None] * ((points @ values) @ self.coef)
        return np.asarray(difference[:, None] * gradient)

    def _gradients(self, u: np.ndarray) -> Iterator[np.ndarray]:
        values = self.values(u)
        for coef in self.coef.T.astype(values.dtype):
            weighted = values * coef
            gradient = np.asarray(weighted @ self.centres)
            gradient -= weighted.sum(axis=1)[:, None] * _arrays.to_dense(u)
            yield gradient


def _line(pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points in [0, 1] and weights of the Gauss-Legendre rule on equal pieces of the interval."""
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    starts = np.arange(pieces)[:, None]
    return ((starts + (points + 1) / 2) / pieces).ravel(), np.tile(weights / (2 * pieces), pieces)


@dataclass(frozen=True, eq=False)
class Waves(_Combination):
    """The function f(u) = cos(u . frequencies + phases) . coef + intercept.

    frequencies (p, m), phases (m,), coef (m, t), intercept (t,).
    """

    frequencies: np.ndarray
    phases: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return the cosines (n, m) of mapped rows."""
        return np.asarray(np.cos(u @ self.frequencies + self.phases))

    def along(self, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Return contributions in closed form.

        The mean of -sin over an interval [a, b] of angles is (cos b - cos a) / (b - a).
        """
        first = start @ self.frequencies + self.phases
        change = (stop - start) @ self.frequencies
        # -sin(middle) sinc(change / 2) does not cancel where the angle hardly changes
        mean = -np.sin(first + change / 2) * np.sinc(change / (2 * np.pi))
        return np.asarray((stop - start)[:, None] * (self.frequencies @ (mean[:, None] * self.coef)))

    def _gradients(self, u: np.ndarray) -> Iterator[np.ndarray]:
        slopes = self.slopes(u)
        return ((slopes * coef) @ self.frequencies.T for coef in self.coef.T)

    def slopes(self, u: np.ndarray) -> np.ndarray:
        """Return derivatives -sin(u . frequencies + phases) of the cosines by their angles, (n, m)."""
        return np.asarray(-np.sin(u @ self.frequencies + self.phases))


@dataclass(frozen=True, eq=False)
class SumOfBlocks(MappedFunction):
    """The function f(u) = sum_b f_b(u_b) + intercept; u_b are the coordinates from borders[b] to borders[b + 1]."""

    functions: list[MappedFunction]
    borders: np.ndarray
    intercept: np.ndarray

    def __call__(self, u: np.ndarray) -> np.ndarray:
        return np.asarray(sum(f(u[:, part]) for f, part in self._parts()) + self.intercept)

    def along(self, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Return contributions, block by block."""
        return np.concatenate([f.along(start[part], stop[part]) for f, part in self._parts()])

    def mean_squared_gradient(self, u: np.ndarray) -> np.ndarray:
        """Return the mean of squared gradients, block by block."""
        return np.concatenate([f.mean_squared_gradient(u[:, part]) for f, part in self._parts()])

    def divided(self, units: np.ndarray) -> SumOfBlocks:
        functions = [f.divided(units) for f in self.functions]
        return replace(self, functions=functions, intercept=self.intercept / units)

    def _parts(self) -> list[tuple[MappedFunction, slice]]:
        slices = [slice(int(a), int(b)) for a, b in pairwise(self.borders)]
        return list(zip(self.functions, slices, strict=True))


@dataclass(frozen=True, eq=False)
class MappedModel:
    """Scores f(u(x)) of a row x as a function of its mapped row u.

    Parameters
    ----------
    rows : callable
        Returns the mapped rows (n, p), dense float64, of checked rows (n, bins).
    bins : ndarray of shape (p,)
        Bin of each coordinate of a mapped row.
    function : MappedFunction
        Scores of mapped rows.
    """

    rows: Callable[[Rows], np.ndarray]
    bins: np.ndarray
    function: MappedFunction

    def by_bin(self, values: np.ndarray, n_bins: int) -> np.ndarray:
        """Return values (p, t) of coordinates summed over the coordinates of each bin, (n_bins, t)."""
        out = np.zeros((n_bins, values.shape[1]))
        np.add.at(out, self.bins, values)
        return out


def dense(rows: Rows) -> np.ndarray:
    """Return rows, dense or sparse, as a dense matrix in float64."""
    return np.asarray(_arrays.to_dense(rows), dtype=np.float64)
