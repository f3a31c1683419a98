"""Conjugate gradients for the entries with which ``observed_exact`` fills up incomplete targets.

See there for the equations. A step costs one solve with the factor of the kernel matrix, O(n^2 t) operations, and
memory holds some arrays of the size of the targets (n, t).
"""

from __future__ import annotations

import numpy as np

from chimap._cholesky import solve
from chimap.solvers.exact import DualRidge

_MOST_STEPS = 300


class Filling:
    """The equations of the filled entries (n, t), by conjugate gradients of all targets together.

    The unknowns are sqrt(w) filled, in the rows whose share is less than one; 1 - share is the preconditioner.
    ``looks_at`` (n, t) may add a second criterion beside the residuals of all entries: weights of the entries whose
    residuals must also become small.
    """

    looks_at: np.ndarray | None = None

    def __init__(
        self, dual: DualRidge, root: np.ndarray, share: np.ndarray, entries: np.ndarray, alpha: float
    ):
        self._dual, self._root, self.alpha, self._entries = dual, root, alpha, entries
        self._free = 1.0 - share
        self._pull = np.divide(share, self._free, out=np.zeros_like(share), where=self._free > 0)

    def residuals(self, filled: np.ndarray) -> np.ndarray:
        """Return the residuals of the equations, by the factor alone."""
        return self._pulled(filled) - self._product(self._root * filled)

    def residuals_of(self, filled: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the same residuals, given the dual weights of the filled entries."""
        return self._pulled(filled) - self.alpha * weights / self._root

    def sizes(self, residuals: np.ndarray) -> np.ndarray:
        """Return the norms of the residuals (1, t), or (2, t) with those weighted by ``looks_at``."""
        return self._sizes(residuals, np.arange(residuals.shape[1]))

    def solved(
        self, filled: np.ndarray, residuals: np.ndarray, goals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Improve filled entries whose residuals are known until their norms are below the goals.

        Returns the filled entries and the norms of their residuals.
        """
        U, R = self._root * filled, residuals.copy()
        direction = self._free * R
        size = (R * direction).sum(axis=0)
        sizes = self.sizes(R)
        going = np.flatnonzero((sizes > goals).any(axis=0))
        for _ in range(_MOST_STEPS):
            P = direction[:, going]
            product = self._product(P) + self._pull[:, going] * P
            curvature = (P * product).sum(axis=0)
            falls = curvature > 0  # otherwise only rounding is left
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
        """Return alpha sqrt(1/w) M sqrt(1/w) U."""
        solved, ones = solve(self._dual.square, U / self._root), self._dual.solved_ones
        solved = solved - np.outer(ones, solved.sum(axis=0, dtype=np.float64) / ones.sum())
        return np.asarray(self.alpha * solved / self._root)


def by_row(entries: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Return weights of entries (n, t) under which the residuals of each row count equally.

    At a small strength, the residual of a row that no other row resembles is a small part of the total, however wrong
    the filled entry is.
    """
    squares = (entries * np.square(residuals)).sum(axis=1)
    counts = entries.sum(axis=1)
    return np.asarray(
        entries * np.divide(counts, squares, out=np.zeros_like(squares), where=squares > 0)[:, None]
    )
