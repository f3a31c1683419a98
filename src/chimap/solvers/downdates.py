"""Rows that leave a ridge machine, in any sets and one set after the other, by downdates of one factor.

The machine minimises sum_i w_i |y_i - f(x_i)|^2 + alpha |f|^2 with an intercept. Its dual weights are a = M Y with

    M = A^-1 - A^-1 1 1'A^-1 / (1'A^-1 1),   A = K + alpha diag(1/w),

and everything about rows that leave is in blocks of M. Without the rows S, whose residuals become e_S = M_SS^-1 a_S,
the others have the weights a - M_.S e_S and the matrix M - M_.S M_SS^-1 M_S., from which further rows can leave. With
features Z (n, D) in place of K, M is (diag(w) - V V') / alpha with V = diag(w) [1 / sqrt(sum w), Zc L^-T], where
LL' = Zc'diag(w) Zc + alpha is the factor of the sums: a block costs D operations an entry.

References
----------
Allen (1974), PRESS, for rows left out in closed form; Cook (1977) for the change of a fit when a row goes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.linalg.lapack import dpotri

_HALF_DECADES = range(2, -10, -1)  # strengths that are compared, relative to the mean scatter of a row
_WORSE = 2  # strengths in a row that are worse than the best, after which smaller ones are not tried
_NOTHING_LEFT = 1e-10  # share of a diagonal entry of M below which a row determines its output alone


@dataclass(frozen=True, eq=False)
class Downdates(ABC):
    """A ridge machine from which rows can leave.

    Parameters
    ----------
    Y : ndarray of shape (n, t)
        Targets.
    alpha : float
        Strength of the penalty.
    duals : ndarray of shape (n, t)
        Dual weights a.
    weights : ndarray of shape (n,)
        Weights w of the rows.
    """

    Y: np.ndarray
    alpha: float
    duals: np.ndarray
    weights: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return int(self.Y.shape[0])

    @property
    def outputs(self) -> np.ndarray:
        """Outputs (n, t) of the machine for its rows."""
        return np.asarray(self.Y - self.alpha * self.duals / self.weights[:, None])

    @abstractmethod
    def block(self, rows: np.ndarray, others: np.ndarray | slice) -> np.ndarray:
        """Return M between rows (m,) and others (k,), of shape (m, k), as an array of its own."""

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Return the diagonal of M, (n,)."""

    @abstractmethod
    def of_targets(self, Y: np.ndarray) -> np.ndarray:
        """Return the dual weights M Y (n, k) of other targets (n, k)."""

    def for_targets(self, Y: np.ndarray) -> Self:
        """Return the machine of other targets (n, k) of the same rows."""
        return replace(self, Y=Y, duals=self.of_targets(Y))

    def left_out(self, sets: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Return the outputs (n, t) of the rows of each set without that set; rows in no set have NaN.

        ``sets`` are places; None leaves out each row alone.
        """
        if sets is None:
            diagonal = self.diagonal()
            least = _NOTHING_LEFT * float(np.abs(diagonal).max())
            return np.asarray(self.Y - self.duals / np.maximum(diagonal, least)[:, None])
        outputs = np.full(self.Y.shape, np.nan)
        for rows in sets:
            outputs[rows] = self.Y[rows] - np.linalg.solve(self.block(rows, rows), self.duals[rows])
        return outputs

    def without(self, gone: np.ndarray) -> np.ndarray:
        """Return the dual weights (n, t) of the machine without the rows ``gone``, which have 0."""
        across = self.block(gone, slice(None))
        duals = self.duals - across.T @ np.linalg.solve(across[:, gone], self.duals[gone])
        duals[gone] = 0
        return np.asarray(duals)

    def variances(self, sets: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Return the variances (n,) of the residuals of ``left_out``, in units of that of the noise of weight 1."""
        if sets is None:
            return np.asarray(1 / (self.alpha * self.diagonal()))
        found = np.full(self.n_rows, np.nan)
        for rows in sets:
            found[rows] = np.linalg.inv(self.block(rows, rows)).diagonal() / self.alpha
        return found

    def left_out_without(self, gone: np.ndarray, sets: Sequence[np.ndarray]) -> np.ndarray:
        """Return the outputs (n, t) of the rows of each set without that set and without the rows ``gone``.

        The sets have none of these rows, whose outputs are NaN.
        """
        across, moved, residuals = self._leaving(gone)
        outputs, duals = np.full(self.Y.shape, np.nan), self.duals - across.T @ residuals
        for rows in sets:
            left = self.block(rows, rows) - across[:, rows].T @ moved[:, rows]
            outputs[rows] = self.Y[rows] - np.linalg.solve(left, duals[rows])
        return outputs

    def changes(self, held: np.ndarray) -> np.ndarray:
        """Return how the left-out outputs of the rows ``held`` (m,) change when each row goes too, (m, n, t).

        Where row i goes, they change by u_i (a_i - q_i) / (M_ii - s_i) with u = M_hh^-1 M_hi, q_i = M_ih e_h and
        s_i = M_ih u_i; the change by a row of the held ones is 0.
        """
        across, u, residuals = self._leaving(held)
        left = self.diagonal() - (across * u).sum(axis=0)
        left[held] = np.inf
        return np.asarray(u[:, :, None] * ((self.duals - across.T @ residuals) / left[:, None])[None])

    def _leaving(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return M_S. (m, n) of rows that leave, M_SS^-1 M_S. and their residuals M_SS^-1 a_S (m, t)."""
        across = self.block(rows, slice(None))
        solved = np.linalg.solve(across[:, rows], np.column_stack([across, self.duals[rows]]))
        return across, solved[:, : self.n_rows], solved[:, self.n_rows :]


@dataclass(frozen=True, eq=False)
class MatrixDowndates(Downdates):
    """A machine on a kernel matrix; see ``Downdates``.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        M.
    """

    matrix: np.ndarray

    @classmethod
    def of(cls, square: np.ndarray, Y: np.ndarray, alpha: float, weights: np.ndarray | None = None) -> MatrixDowndates:
        """Return the machine of a kernel matrix (n, n), at n^3 operations.

        ``weights`` (n,) are those of the rows, None for 1. Raises ``numpy.linalg.LinAlgError`` if A is singular to
        rounding.

        Examples
        --------
        >>> K, Y = np.eye(3) + 1, np.array([[0.0], [1.0], [5.0]])
        >>> machine = MatrixDowndates.of(K, Y, 1.0)
        >>> without = MatrixDowndates.of(K[1:, 1:], Y[1:], 1.0)
        >>> output = K[0, 1:] @ without.duals + (Y[1:] - K[1:, 1:] @ without.duals - without.duals).mean()
        >>> bool(np.isclose(machine.left_out()[0, 0], output[0]))
        True
        """
        w = np.ones(Y.shape[0]) if weights is None else weights
        inverse = np.array(square, dtype=np.float64, order="F")
        inverse[np.diag_indices_from(inverse)] += alpha / w
        factor, _ = cho_factor(inverse, lower=True, overwrite_a=True)
        inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
        inverse = np.tril(inverse)
        inverse += np.tril(inverse, -1).T
        ones = inverse.sum(axis=1)
        inverse -= np.outer(ones, ones / ones.sum())
        return cls(Y, alpha, np.empty(0), w, inverse).for_targets(Y)

    def block(self, rows: np.ndarray, others: np.ndarray | slice) -> np.ndarray:
        return self.matrix[rows][:, others].copy()

    def diagonal(self) -> np.ndarray:
        return self.matrix.diagonal().copy()

    def of_targets(self, Y: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ Y)


@dataclass(frozen=True, eq=False)
class FeatureDowndates(Downdates):
    """A machine on features, whose memory is theirs; see ``Downdates``.

    Parameters
    ----------
    directions : ndarray of shape (n, D + 1)
        V.
    """

    directions: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray, Y: np.ndarray, alpha: float, weights: np.ndarray | None = None) -> FeatureDowndates:
        """Return the machine of features Z (n, D), at n D^2 operations; see ``MatrixDowndates.of``."""
        w = np.ones(Y.shape[0]) if weights is None else weights
        centred = Z - np.average(Z, axis=0, weights=w)
        scatter = centred.T @ (w[:, None] * centred)
        scatter[np.diag_indices_from(scatter)] += alpha
        lower, _ = cho_factor(scatter, lower=True)
        white = solve_triangular(lower, centred.T, lower=True).T
        directions = w[:, None] * np.column_stack([np.full(w.size, 1 / np.sqrt(w.sum())), white])
        return cls(Y, alpha, np.empty(0), w, directions).for_targets(Y)

    def block(self, rows: np.ndarray, others: np.ndarray | slice) -> np.ndarray:
        columns = np.arange(self.n_rows)[others]
        found = -self.directions[rows] @ self.directions[columns].T
        found += np.where(rows[:, None] == columns, self.weights[rows][:, None], 0.0)
        return np.asarray(found / self.alpha)

    def of_targets(self, Y: np.ndarray) -> np.ndarray:
        return np.asarray((self.weights[:, None] * Y - self.directions @ (self.directions.T @ Y)) / self.alpha)

    def diagonal(self) -> np.ndarray:
        return np.asarray((self.weights - np.square(self.directions).sum(axis=1)) / self.alpha)


def machines_by_strength(make: Callable[[float], Downdates], scale: float) -> Iterator[Downdates]:
    """Yield machines of strengths half a decade apart, the largest first, while their matrix is regular to rounding.

    ``make`` returns the machine of a strength, and ``scale`` is the mean scatter of a row.
    """
    for step in _HALF_DECADES:
        try:
            machine = make(scale * 10 ** (step / 2))
        except np.linalg.LinAlgError:  # singular to rounding, and so it is at smaller strengths
            return
        yield machine


def at_best_strength(make: Callable[[float], Downdates], scale: float) -> Downdates:
    """Return the machine of ``machines_by_strength`` whose left-out outputs have the least squared error.

    Raises ``numpy.linalg.LinAlgError`` if no strength makes the matrix regular.
    """
    best, least, worse = None, np.inf, 0
    for machine in machines_by_strength(make, scale):
        error = float(np.nanmean(np.square(machine.Y - machine.left_out())))
        if error < least:
            best, least, worse = machine, error, 0
        else:
            worse += 1
        if worse == _WORSE:
            break
    if best is None:
        raise np.linalg.LinAlgError("no strength makes the matrix regular to rounding")
    return best
