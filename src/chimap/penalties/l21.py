"""The l21 norm over groups of features."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from chimap import _loops
from chimap._errors import InputError
from chimap._validation import check_positive
from chimap.penalties.groups import Group, check_groups


@dataclass(frozen=True)
class L21:
    """The norm alpha sum_g weight_g |w_g|_2 of the group LASSO and multiple kernels, under which few groups are used.

    Parameters
    ----------
    alpha : float
        Positive strength.
    groups : sequence of slices or of sequences of int
        Columns of each group; each of the ``n_features`` columns is in exactly one.
    n_features : int
        Number of columns D.
    group_weights : sequence of float, default=None
        A positive number for each group, such as the root of its size; None for all ones, as in the paper.
    shared : bool, default=False
        For weights (D, t), whether a group holds its columns for all targets together, so that all targets use it or
        all leave it out; otherwise each target is a separate problem.

    Raises
    ------
    ValueError
        If groups are empty, overlap or leave columns out, or ``group_weights`` does not fit them.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.4.

    Examples
    --------
    >>> penalty = L21(1.0, [[0, 1], [2]], n_features=3)
    >>> penalty.value(np.array([3.0, 4.0, -1.0])), penalty.norms(np.array([3.0, 4.0, -1.0])).tolist()
    (6.0, [5.0, 1.0])
    """

    alpha: float
    groups: Sequence[Group]
    n_features: int
    group_weights: Sequence[float] | None = None
    shared: bool = False
    _order: np.ndarray = field(init=False, repr=False, compare=False)  # columns in the order of the groups
    _starts: np.ndarray = field(init=False, repr=False, compare=False)
    _weights: np.ndarray = field(init=False, repr=False, compare=False)  # (groups,)

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")
        check_positive(self.n_features, "n_features", integer=True)
        groups = check_groups(self.groups, self.n_features)
        weights = np.ones(len(groups)) if self.group_weights is None else np.asarray(self.group_weights, float)
        if weights.shape != (len(groups),) or not np.all((weights > 0) & np.isfinite(weights)):
            raise InputError(
                f"group_weights must be {len(groups)} positive numbers, one for each group; got {self.group_weights!r}."
            )
        sizes = [group.size for group in groups]
        object.__setattr__(self, "_order", np.concatenate(groups))
        object.__setattr__(self, "_starts", np.cumsum([0, *sizes]))
        object.__setattr__(self, "_weights", weights)

    def value(self, W: np.ndarray) -> float:
        """Return alpha sum_g weight_g |w_g|_2, summed over the targets.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.
        """
        return float(self.values(W).sum())

    def values(self, W: np.ndarray) -> np.ndarray:
        """Return the penalty of each target, (t,) for weights (D, t); (1,) if the targets share their groups.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.
        """
        return self.levels() @ self.norms(W)

    def norms(self, W: np.ndarray) -> np.ndarray:
        """Return |w_g|_2, (groups,) or (groups, t) float64; (groups, 1) if the targets share their groups.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.

        Raises
        ------
        ValueError
            If W has another number of features.
        """
        if W.shape[0] != self.n_features:
            raise InputError(f"W holds weights of {W.shape[0]} features; the groups cover {self.n_features}.")
        columns = _columns(W)
        norms = np.empty((len(self._weights), 1 if self.shared else columns.shape[1]))
        _loops.group_norms(columns, self._order, self._starts, norms)
        return norms[:, 0] if W.ndim == 1 else norms

    def residuals(self, W: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the residual of the optimality condition in each group, of the shape of ``norms``; 0 at a minimum.

        With a loss of the given gradient g, it is the distance of -g from the subdifferential of the penalty, divided
        by alpha weight_g: the distance of -g_g / (alpha weight_g) from w_g / |w_g|, or from the unit ball if w_g is
        zero.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.
        gradient : ndarray of the shape of W
            Gradient of the loss at W.
        """
        norms = self.norms(W)
        residuals = np.empty_like(norms)
        _loops.group_residuals(
            _columns(W),
            _columns(gradient),
            self._order,
            self._starts,
            self.levels(),
            _columns(norms),
            _columns(residuals),
        )
        return residuals

    def largest(self, gradient: np.ndarray) -> float:
        """Return the least alpha at which zero weights are a minimum.

        Parameters
        ----------
        gradient : ndarray of shape (D,) or (D, t)
            Gradient of the loss at zero weights.
        """
        return self.alpha * float((self.norms(gradient) / self.levels(gradient.ndim)).max())

    @property
    def members(self) -> list[np.ndarray]:
        """Columns of each group."""
        return np.split(self._order, self._starts[1:-1])

    def with_alpha(self, alpha: float) -> L21:
        """Return the penalty with the same groups and another strength.

        The groups are not checked again, because a path makes hundreds of such penalties.

        Parameters
        ----------
        alpha : float
            Positive strength.

        Raises
        ------
        ValueError
            If alpha is not positive.
        """
        check_positive(alpha, "alpha")
        penalty = copy(self)
        object.__setattr__(penalty, "alpha", float(alpha))
        return penalty

    def levels(self, ndim: int = 1) -> np.ndarray:
        """Return alpha times the weight of each group.

        Parameters
        ----------
        ndim : int, default=1
            Dimensions of the weights: the result has shape (groups,) for 1 and (groups, 1) for 2.
        """
        return (self.alpha * self._weights).reshape(-1, *(1,) * (ndim - 1))


def _columns(W: np.ndarray) -> np.ndarray:
    """Return W as (D, t) float64, a view if it is one already."""
    return np.ascontiguousarray(W, np.float64).reshape(W.shape[0], -1)
