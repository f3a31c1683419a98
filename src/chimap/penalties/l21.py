"""The l21 norm over groups of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from chimap._validation import check_positive
from chimap.penalties.base import Penalty
from chimap.penalties.groups import check_groups


@dataclass(frozen=True)
class L21(Penalty):
    """strength sum_g weight_g |w_g|_2, of the group LASSO and of multiple kernels: few groups are used.

    Parameters
    ----------
    strength : > 0.
    groups : lists of columns, or slices; each of the ``n_features`` columns in exactly one.
    n_features : D.
    group_weights : one positive number a group, such as the roots of their sizes; None is 1 each, as in the paper.

    Raises ValueError for groups that are empty, overlap or leave columns out, and for weights of another shape.

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.4.

    >>> penalty = L21(1.0, [[0, 1], [2]], n_features=3)
    >>> penalty.value(np.array([3.0, 4.0, -1.0])), penalty.prox(np.array([3.0, 4.0, -1.0]), step=2.5).tolist()
    (6.0, [1.5, 2.0, -0.0])
    """

    strength: float
    groups: Sequence[Any]
    n_features: int
    group_weights: Sequence[float] | None = None
    is_smooth: ClassVar[bool] = False
    _order: np.ndarray = field(init=False, repr=False, compare=False)  # columns, group after group
    _starts: np.ndarray = field(init=False, repr=False, compare=False)
    _weights: np.ndarray = field(init=False, repr=False, compare=False)  # one a group
    _group: np.ndarray = field(init=False, repr=False, compare=False)  # of each column, (D,)

    def __post_init__(self) -> None:
        check_positive(self.strength, "strength")
        check_positive(self.n_features, "n_features", integer=True)
        groups = check_groups(self.groups, self.n_features)
        weights = (
            np.ones(len(groups)) if self.group_weights is None else np.asarray(self.group_weights, float)
        )
        if weights.shape != (len(groups),) or not np.all((weights > 0) & np.isfinite(weights)):
            raise ValueError(
                f"group_weights must be {len(groups)} positive numbers, one a group; got {self.group_weights!r}."
            )
        sizes = [group.size for group in groups]
        group_of = np.empty(self.n_features, dtype=np.intp)
        group_of[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), sizes)
        object.__setattr__(self, "_order", np.concatenate(groups))
        object.__setattr__(self, "_starts", np.cumsum([0, *sizes[:-1]]))
        object.__setattr__(self, "_weights", weights)
        object.__setattr__(self, "_group", group_of)

    def value(self, W: np.ndarray) -> float:
        """strength sum_g weight_g |w_g|_2."""
        return self.strength * float((self._weights @ self.norms(W)).sum())

    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """w_g max(0, 1 - step strength weight_g / |w_g|)."""
        norms = self.norms(W)
        least = (step * self.strength * self._weights).reshape(-1, *(1,) * (W.ndim - 1))
        # max(0, 1 - least / norm), without the division by a norm of zero
        kept = np.maximum(norms - least, 0) / np.where(norms > 0, norms, 1)
        return W * kept[self._group].astype(W.dtype)

    def norms(self, W: np.ndarray) -> np.ndarray:
        """|w_g|_2, (groups,) or (groups, t) float64. Raises ValueError for weights of another number of features."""
        if W.shape[0] != self.n_features:
            raise ValueError(f"weights of {W.shape[0]} features; the groups are of {self.n_features}.")
        squares = np.square(W[self._order], dtype=np.float64)
        return np.sqrt(np.add.reduceat(squares, self._starts, axis=0))
