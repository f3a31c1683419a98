"""Entries of targets filled up with what the machine of all rows says of them: see ``observed_exact``."""

from __future__ import annotations

import numpy as np

from chimap.solvers.cholesky import solve
from chimap.solvers.exact import DualRidge

_MOST_STEPS = 300


class Filling:
    """The equations of the filled entries (n, t), by conjugate gradients of all targets together.

    The unknowns are sqrt(w) filled, in the rows where the share is less than one; 1 - s preconditions. looks_at (n, t):
    weights of entries whose residuals must become small, as those of all together must; None is no others.
    """

    looks_at: np.ndarray | None = None

    def __init__(
        self, dual: DualRidge, root: np.ndarray, share: np.ndarray, entries: np.ndarray, alpha: float
    ):
        self._dual, self._root, self.alpha, self._entries = dual, root, alpha, entries
        self._free = 1.0 - share
        self._pull = np.divide(share, self._free, out=np.zeros_like(share), where=self._free > 0)

    def residuals(self, filled: np.ndarray) -> np.ndarray:
        """Of the equations, by the factor alone."""
        return self._pulled(filled) - self._product(self._root * filled)

    def residuals_of(self, filled: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The same where the weights of the machine of the filled entries are known."""
        return self._pulled(filled) - self.alpha * weights / self._root

    def sizes(self, residuals: np.ndarray) -> np.ndarray:
        """Their norms (1, t), and those of the entries that are looked at (2, t)."""
        return self._sizes(residuals, np.arange(residuals.shape[1]))

    def solved(
        self, filled: np.ndarray, residuals: np.ndarray, goals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Filled entries, from some on whose residuals are known, until their sizes are below the goals, and the
        sizes that they end at."""
        U, R = self._root * filled, residuals.copy()
        direction = self._free * R
        size = (R * direction).sum(axis=0)
        sizes = self.sizes(R)
        going = np.flatnonzero((sizes > goals).any(axis=0))
        for _ in range(_MOST_STEPS):
            P = direction[:, going]
            product = self._product(P) + self._pull[:, going] * P
            curvature = (P * product).sum(axis=0)
            falls = curvature > 0  # or all that is left is rounding
            going, P, product = going[falls], P[:, falls], product[:, falls]
            if not going.size:
                break
            step = size[going] / curvature[falls]
            U[:, going] += step * P
            R[:, going] -= step * product
            ahead = self._free[:, going] * R[:, going]
            before, size[going] = size[going], (R[:, going] * ahead).sum(axis=0)
            direction[:, going] = ahead + size[going] / before * P
            sizes[:, going] = self._sizes(R[:, going], going)
            going = going[(sizes[:, going] > goals[:, going]).any(axis=0)]
        return U / self._root, sizes

    def _sizes(self, residuals: np.ndarray, columns: np.ndarray) -> np.ndarray:
        squares = self._free[:, columns] * np.square(residuals)
        sums = [squares.sum(axis=0)]
        if self.looks_at is not None:
            sums.append((squares * self.looks_at[:, columns]).sum(axis=0))
        return np.sqrt(np.array(sums))

    def _pulled(self, filled: np.ndarray) -> np.ndarray:
        return np.asarray(self._pull * self._root * (self._entries - filled))

    def _product(self, U: np.ndarray) -> np.ndarray:
        """alpha sqrt(1/w) M sqrt(1/w) U."""
        solved, ones = solve(self._dual.square, U / self._root), self._dual.solved_ones
        solved = solved - np.outer(ones, solved.sum(axis=0, dtype=np.float64) / ones.sum())
        return np.asarray(self.alpha * solved / self._root)


def by_row(entries: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Weights of entries (n, t) with which the residuals of each row count alike.

    Where the strength is small, the residual of a row that no other is like is a small part of all, however wrong the
    entry is that it is filled up with.
    """
    squares = (entries * np.square(residuals)).sum(axis=1)
    counts = entries.sum(axis=1)
    return np.asarray(
        entries * np.divide(counts, squares, out=np.zeros_like(squares), where=squares > 0)[:, None]
    )
