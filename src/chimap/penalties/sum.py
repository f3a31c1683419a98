"""Sums of penalties, such as the elastic net and the sparse group LASSO."""

from __future__ import annotations

import numpy as np

from chimap._errors import InputError
from chimap.penalties.base import Penalty
from chimap.penalties.l1 import L1
from chimap.penalties.l2 import L2
from chimap.penalties.l21 import L21

# The proximal operator of the sum applies those of its parts one after the other, in this order only. Soft thresholds
# keep the direction of the subgradients of the l1 norm, so norms of disjoint groups may come after them; both are
# homogeneous, so they commute with the scaling by the squared norm.
_ORDER: tuple[type[Penalty], ...] = (L1, L21, L2)


class PenaltySum(Penalty):
    """The sum of penalties of different kinds: l1 + l2 is the elastic net, l1 + l21 the sparse group LASSO.

    Parameters
    ----------
    *parts : L1, L21 or L2
        The penalties, each kind at most once.

    Raises
    ------
    ValueError
        If there is no part, a part of another kind, or two parts of the same kind: two of a kind equal a single one
        with a greater strength, except for l21 norms of different groups, whose sum has no proximal operator in closed
        form.

    References
    ----------
    Friedman, Hastie and Tibshirani, A note on the group lasso and a sparse group lasso (2010), for l1 + l21.

    Examples
    --------
    >>> PenaltySum(L1(1.0), L2(1.0)).prox(np.array([3.0, 0.5]), step=1.0).tolist()
    [1.0, 0.0]
    """

    def __init__(self, *parts: Penalty):
        kinds = [type(part) for part in parts]
        if not parts or len(set(kinds)) < len(kinds) or not set(kinds) <= set(_ORDER):
            raise InputError(
                "a sum takes L1, L21 and L2, each at most once; got "
                f"{', '.join(k.__name__ for k in kinds) or 'nothing'}. Combine two of a kind by adding their strengths."
            )
        self.parts = tuple(sorted(parts, key=lambda part: _ORDER.index(type(part))))

    @property
    def is_smooth(self) -> bool:  # type: ignore[override]
        """Whether all parts are smooth."""
        return all(part.is_smooth for part in self.parts)

    def value(self, W: np.ndarray) -> float:
        """Return the sum of the values of the parts."""
        return sum(part.value(W) for part in self.parts)

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """Return the sum of the gradients of the parts; raise TypeError if a part is not smooth."""
        return np.sum([part.gradient(W) for part in self.parts], axis=0)

    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """Return the result of the proximal operators of the parts, applied one after the other."""
        for part in self.parts:
            W = part.prox(W, step)
        return W

    def __repr__(self) -> str:
        return f"Sum({', '.join(map(repr, self.parts))})"
