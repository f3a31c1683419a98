"""Stability selection: which bins are chosen again when the rows are others, and how many of them by chance.

A bin is chosen by a half of the rows if it is among the q most important ones for the machine of this half. With B
complementary pairs of halves and p bins, the expected number of bins that three quarters of the halves choose, although
a half chooses them no more often than at random, is at most

    C q^2 / p,    C = 1 / (1 - 1/B),

if shares of such bins have a single mode and q <= p / sqrt(3); without that assumption C = 2.

References
----------
Meinshausen and Buhlmann, Stability selection, JRSS B 2010. Shah and Samworth, Variable selection with error control:
another look at stability selection, JRSS B 2013, theorem 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._formatting import percent
from chimap._types import JSON

THRESHOLD = 0.75  # share of halves that choose a stable bin


@dataclass(frozen=True, eq=False)
class Stability:
    """The share of halves of the rows that choose each bin.

    Parameters
    ----------
    names : ndarray of shape (bins,)
        Names of the bins, in their order.
    shares : ndarray of shape (bins,)
        Share of the halves that choose each bin.
    n_resamples : int
        Number of halves, an even number: complementary pairs.
    n_chosen : int
        Number of bins q that each half chooses.
    n_candidates : int
        Number of bins p that are not the same in all rows.
    n_rows : int
        Number of rows that were halved.
    n_groups : int or None, default=None
        Number of groups that were halved in their place.

    Examples
    --------
    >>> found = Stability(np.array(["moss", "fern", "oak"]), np.array([0.4, 1.0, 0.1]), 100, 1, 3, 50)
    >>> found.stable.tolist(), round(found.false_choices, 2)
    ([1], 0.34)
    """

    names: np.ndarray
    shares: np.ndarray
    n_resamples: int
    n_chosen: int
    n_candidates: int
    n_rows: int
    n_groups: int | None = None

    @property
    def ranked(self) -> np.ndarray:
        """Places of the bins that any half chooses, the largest share first."""
        order = np.argsort(-self.shares, kind="stable")
        return np.asarray(order[self.shares[order] > 0])

    @property
    def stable(self) -> np.ndarray:
        """Those of ``ranked`` that three quarters of the halves choose."""
        return np.asarray(self.ranked[self.shares[self.ranked] >= THRESHOLD])

    @property
    def false_choices(self) -> float:
        """The bound on the expected number of bins among ``stable`` that are chosen no more often than at random."""
        return false_choices(self.n_chosen, self.n_candidates, self.n_resamples // 2)

    @property
    def sentence(self) -> str:
        """What was found, in a sentence."""
        halves = f"{self.n_resamples} halves of the {'rows' if self.n_groups is None else 'groups'}"
        return (
            f"{self.stable.size} of {self.n_candidates:,} bins are among the first {self.n_chosen} in at least "
            f"{percent(THRESHOLD, 0)} of {halves}; at most {self.false_choices:.2g} of them are expected by chance"
        )

    def as_dict(self) -> JSON:
        """Return the stable bins, and how they were found, as JSON types."""
        return {
            "resamples": self.n_resamples,
            "chosen_by_each": self.n_chosen,
            "candidates": self.n_candidates,
            "rows": self.n_rows,
            "groups": self.n_groups,
            "threshold": THRESHOLD,
            "false_choices": self.false_choices,
            "stable": [
                {"bin": int(i), "name": str(self.names[i]), "share": float(self.shares[i])} for i in self.stable
            ],
        }


def false_choices(n_chosen: int, n_bins: int, n_pairs: int) -> float:
    """Return the bound on the expected number of bins that reach the threshold by chance; see the module.

    Parameters
    ----------
    n_chosen : int
        Number of bins q that each half chooses.
    n_bins : int
        Number of bins p.
    n_pairs : int
        Number of complementary pairs B.

    Examples
    --------
    >>> round(false_choices(7, 60, 50), 2)
    0.83
    """
    q = n_chosen / n_bins
    has_single_mode = q <= 1 / np.sqrt(3) and 0.5 + min(q**2, 0.5 / n_pairs + 0.75 * q**2) < THRESHOLD
    return float((1 / max(1 - 1 / n_pairs, 0.5) if has_single_mode else 2.0) * n_chosen * q)


def largest_choice(n_bins: int, n_pairs: int) -> int:
    """Return the largest number of bins to choose with which at most one is expected at random, at least 1."""
    return max((q for q in range(1, n_bins + 1) if false_choices(q, n_bins, n_pairs) <= 1), default=1)
