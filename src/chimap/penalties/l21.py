"""The l21 norm over groups of features."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from chimap import _loops
from chimap._validation import check_positive
from chimap.penalties.base import Penalty
from chimap.penalties.groups import Group, check_groups


@dataclass(frozen=True)
class L21(Penalty):
    """alpha sum_g weight_g |w_g|_2, of the group LASSO and of multiple kernels: few groups are used.

    Parameters
    ----------
    alpha : > 0.
    groups : lists of columns, or slices; each of the ``n_features`` columns in exactly one.
    n_features : D.
    group_weights : one positive number a group, such as the roots of their sizes; None is 1 each, as in the paper.
    shared : of weights (D, t), whether a group is its columns for all targets together, so that they use it or leave it
        out alike; otherwise each target is a problem by itself.

    Raises ValueError for groups that are empty, overlap or leave columns out, and for weights of another shape.

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.4.

    >>> penalty = L21(1.0, [[0, 1], [2]], n_features=3)
    >>> penalty.value(np.array([3.0, 4.0, -1.0])), penalty.prox(np.array([3.0, 4.0, -1.0]), step=2.5).tolist()
    (6.0, [1.5, 2.0, -0.0])
    """

    alpha: float
    groups: Sequence[Group]
    n_features: int
    group_weights: Sequence[float] | None = None
    shared: bool = False
    is_smooth: ClassVar[bool] = False
    _order: np.ndarray = field(init=False, repr=False, compare=False)  # columns, group after group
    _starts: np.ndarray = field(init=False, repr=False, compare=False)
    _weights: np.ndarray = field(init=False, repr=False, compare=False)  # one a group
    _group: np.ndarray = field(init=False, repr=False, compare=False)  # of each column, (D,)

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")
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
        object.__setattr__(self, "_starts", np.cumsum([0, *sizes]))
        object.__setattr__(self, "_weights", weights)
        object.__setattr__(self, "_group", group_of)

    def value(self, W: np.ndarray) -> float:
        """alpha sum_g weight_g |w_g|_2."""
        return float(self.values(W).sum())

    def values(self, W: np.ndarray) -> np.ndarray:
        """The penalty of each target by itself, (t,) for weights (D, t); (1,) where they share their groups."""
        return self.levels() @ self.norms(W)

    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """w_g max(0, 1 - step strength weight_g / |w_g|)."""
        norms = self.norms(W)
        # max(0, 1 - level / norm), without the division by a norm of zero
        kept = np.maximum(norms - step * self.levels(W.ndim), 0) / np.where(norms > 0, norms, 1)
        return W * kept[self._group].astype(W.dtype)

    def norms(self, W: np.ndarray) -> np.ndarray:
        """|w_g|_2, (groups,) or (groups, t) float64; (groups, 1) where targets share their groups.

        Raises ValueError for weights of another number of features.
        """
        if W.shape[0] != self.n_features:
            raise ValueError(f"weights of {W.shape[0]} features; the groups are of {self.n_features}.")
        columns = _columns(W)
        norms = np.empty((len(self._weights), 1 if self.shared else columns.shape[1]))
        _loops.group_norms(columns, self._order, self._starts, norms)
        return norms[:, 0] if W.ndim == 1 else norms

    def residuals(self, W: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """How far W is from a minimum of this penalty and a function of that gradient, group by group, as ``norms``.

        The distance of minus the gradient from the subdifferential, over strength times weight of the group: that of
        -g_g / level from w_g / |w_g|, or from the unit ball where w_g is zero. At a minimum all are 0.
        """
        norms = self.norms(W)
        residuals = np.empty_like(norms)
        _loops.group_residuals(
            _columns(W), _columns(gradient), self._order, self._starts, self.levels(),
            _columns(norms), _columns(residuals),
        )  # fmt: skip
        return residuals

    def largest(self, gradient: np.ndarray) -> float:
        """The least strength at which zero weights are a minimum, given the gradient of the rest at them."""
        return self.alpha * float((self.norms(gradient) / self.levels(gradient.ndim)).max())

    @property
    def members(self) -> list[np.ndarray]:
        """Columns of each group."""
        return np.split(self._order, self._starts[1:-1])

    def with_alpha(self, alpha: float) -> L21:
        """The same groups at another strength: they are not checked again, since paths ask for hundreds."""
        check_positive(alpha, "alpha")
        other = copy(self)
        object.__setattr__(other, "alpha", float(alpha))
        return other

    def levels(self, ndim: int = 1) -> np.ndarray:
        """strength times weight of each group, (groups,), or (groups, 1) for weights of two dimensions."""
        return (self.alpha * self._weights).reshape(-1, *(1,) * (ndim - 1))


def _columns(W: np.ndarray) -> np.ndarray:
    """(D, t) float64, a view where W is one."""
    return np.ascontiguousarray(W, np.float64).reshape(W.shape[0], -1)
