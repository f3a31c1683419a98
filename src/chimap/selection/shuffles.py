"""Orders of rows that a hypothesis calls equally likely, and how many of them differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

SAME = 1e-9  # share by which a permuted statistic may lie below the one that was observed, and count as equal


@dataclass(frozen=True, eq=False)
class Shuffles:
    """Random orders of n rows, within strata.

    Parameters
    ----------
    places : list of ndarray of shape (m, size)
        Places of the rows of m strata of the same size.
    n_rows : int
        Number of rows.
    """

    places: list[np.ndarray]
    n_rows: int

    @classmethod
    def within(cls, strata: np.ndarray | None, n_rows: int) -> Shuffles:
        """Return the orders in which rows change their places with others of their stratum; None for one stratum.

        Examples
        --------
        >>> order = Shuffles.within(np.array(["a", "b", "a", "b"]), 4).draw(np.random.default_rng(0))
        >>> sorted(order[[0, 2]].tolist())
        [0, 2]
        """
        codes = np.zeros(n_rows, int) if strata is None else np.unique(strata, return_inverse=True)[1]
        sizes, order = np.bincount(codes), np.argsort(codes, kind="stable")
        starts = np.cumsum(sizes) - sizes
        return cls(
            [order[starts[sizes == size][:, None] + np.arange(size)] for size in np.unique(sizes) if size > 0], n_rows
        )

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random order, (n,): the row that stands at each place."""
        order = np.empty(self.n_rows, dtype=np.intp)
        for places in self.places:
            order[places] = rng.permuted(places, axis=1)
        return order

    def leave(self, columns: np.ndarray) -> bool:
        """Return whether every order leaves these columns (n, k) as they are: they are constant within strata."""
        spread = max(float(np.ptp(columns[places], axis=1).max(initial=0.0)) for places in self.places)
        return spread <= SAME * float(np.abs(columns).max(initial=0.0))

    def n_different(self, codes: np.ndarray) -> float:
        """Return how many orders give the rows other codes: the product over strata of multinomial coefficients."""
        log = 0.0
        for places in self.places:
            for of_stratum in codes[places]:
                log += float(gammaln(of_stratum.size + 1) - gammaln(np.bincount(of_stratum) + 1).sum())
        return float(np.round(np.exp(log))) if log < 36 else float(np.exp(min(log, 700.0)))


def p_value(observed: float, permuted: np.ndarray) -> float:
    """Return the share of statistics, the observed one included, that are at least as large as it.

    p = (1 + number of permuted >= observed) / (1 + permutations), which is never 0 (Phipson and Smyth, 2010).

    >>> p_value(2.0, np.array([1.0, 3.0, 0.5]))
    0.5
    """
    least = observed - SAME * abs(observed)
    return float((1 + np.count_nonzero(permuted >= least)) / (1 + permuted.size))
