"""Linear models that use few of the given features, from the moments of one pass: LASSO, elastic net, group LASSO."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._errors import InputError
from chimap._types import RandomState
from chimap._validation import check_positive
from chimap.estimators.from_moments import RealMomentsModel
from chimap.moments import FoldMoments, Moments
from chimap.penalties import check_groups
from chimap.penalties.groups import Group
from chimap.selection import score_path
from chimap.solvers import LinearSolution
from chimap.solvers.groups import group_lasso, largest_group_alpha
from chimap.solvers.sparse import SparsePath, alphas_below, elastic_net, largest_alpha

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


class _SparseModel(RealMomentsModel):
    """A path of strengths, from which the folds choose one."""

    n_alphas: int
    path_: SparsePath
    kkt_residual_: float

    def _solve(self, folds: FoldMoments, whole: Moments) -> LinearSolution:
        alphas = self._alphas(whole)
        best = float(alphas.max())
        self.selection_ = None
        if len(folds.folds) > 1:
            self.selection_ = score_path(folds, whole, np.sort(alphas)[::-1], self._path)
            best = self.selection_.best["alpha"]
        path = self._path(whole, alphas)
        self.path_ = path
        chosen = int(np.argmin(np.abs(path.alphas - best)))
        self.kkt_residual_ = float(path.residuals[chosen])
        return path.solutions[chosen]

    def _alphas(self, whole: Moments) -> np.ndarray:
        given = self._given_alpha
        return alphas_below(self._largest(whole), self.n_alphas) if given is None else np.atleast_1d(given)

    @abstractmethod
    def _largest(self, moments: Moments) -> float:
        """Return the strength at which all weights are zero."""

    @abstractmethod
    def _path(self, moments: Moments, alphas: np.ndarray) -> SparsePath:
        """Return the solutions at all strengths."""


class MomentsLasso(_SparseModel):
    """LASSO or elastic net from moments.

        minimise over w, b:  sum_n (z_n'w + b - y_n)^2 / (2N) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2),

    with N rows, or N the sum of their weights. The loss is a mean, as in scikit-learn, so alpha does not grow with the
    rows; the strength beside the sum of the losses, as in ``MomentsRidge``, is N alpha.

    Parameters
    ----------
    alpha : float, sequence of float or "auto", default="auto"
        Strength beside the mean loss, ``alpha`` of scikit-learn's ``ElasticNet``: a number, several to choose from, or
        "auto", a path of ``n_alphas`` strengths. Folds choose.
    l1_ratio : float, default=1.0
        Share of the l1 norm, in (0, 1]; 1 is the LASSO.
    n_alphas : int, default=30
        Number of strengths on the automatic path.
    selection : int or "auto", default="auto"
        Number of folds of the cross-validation; "auto" is five.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    coef_ : ndarray of shape (1, D)
        Weights.
    intercept_ : ndarray of shape (1,)
        Intercept.
    alpha_ : float
        The strength used.
    path_ : SparsePath
        Solutions, numbers of features used, and optimality residuals at all strengths.
    kkt_residual_ : float
        Optimality residual of the solution.
    selection_ : SelectionResult or None
        Errors of every fold.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.default_rng(0).standard_normal((300, 20))
    >>> model = MomentsLasso(random_state=0).fit(Z, Z[:, 3] - Z[:, 7])
    >>> sorted(np.argsort(-np.abs(model.coef_[0]))[:2].tolist())
    [3, 7]
    """

    def __init__(
        self,
        alpha: str | float | Sequence[float] = "auto",
        l1_ratio: float = 1.0,
        n_alphas: int = 30,
        selection: str | int | BaseCrossValidator = "auto",
        random_state: RandomState = None,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.n_alphas = n_alphas
        self.selection = selection
        self.random_state = random_state

    def _check_settings(self, n_features: int) -> None:
        super()._check_settings(n_features)
        check_positive(self.n_alphas, "n_alphas", integer=True)
        check_positive(self.l1_ratio, "l1_ratio")
        if self.l1_ratio > 1:
            raise InputError(f"l1_ratio must be in (0, 1]; got {self.l1_ratio!r}.")

    def _largest(self, moments: Moments) -> float:
        return largest_alpha(moments, self.l1_ratio)

    def _path(self, moments: Moments, alphas: np.ndarray) -> SparsePath:
        return elastic_net(moments, alphas, self.l1_ratio)


class MomentsGroupLasso(_SparseModel):
    """Group LASSO from moments: whole groups of features are used or left out.

        minimise over w, b:  sum_n (z_n'w + b - y_n)^2 / (2N) + alpha sum_g sqrt(|g|) |w_g|_2,

    with N rows, or N the sum of their weights, and |g| columns in group g. The loss is a mean, as in ``MomentsLasso``;
    the strength beside the sum of the losses is N alpha.

    Parameters
    ----------
    groups : sequence of lists or slices, default=None
        Columns of each group; each column must be in exactly one. None makes each column a group.
    alpha : float, sequence of float or "auto", default="auto"
        Strength beside the mean loss. See ``MomentsLasso``.
    n_alphas : int, default=30
        Number of strengths on the automatic path.
    selection : int or "auto", default="auto"
        Number of folds of the cross-validation; "auto" is five.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Raises
    ------
    ValueError
        If groups overlap or leave features out.

    Notes
    -----
    The attributes are those of ``MomentsLasso``.

    References
    ----------
    Yuan and Lin, Model selection and estimation in regression with grouped variables (2006).

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.default_rng(0).standard_normal((300, 6))
    >>> model = MomentsGroupLasso([[0, 1], [2, 3], [4, 5]], alpha=0.1, random_state=0).fit(Z, Z[:, 2] - Z[:, 3])
    >>> np.flatnonzero(model.coef_[0]).tolist()
    [2, 3]
    """

    def __init__(
        self,
        groups: Sequence[Group] | None = None,
        alpha: str | float | Sequence[float] = "auto",
        n_alphas: int = 30,
        selection: str | int | BaseCrossValidator = "auto",
        random_state: RandomState = None,
    ):
        self.groups = groups
        self.alpha = alpha
        self.n_alphas = n_alphas
        self.selection = selection
        self.random_state = random_state

    def _check_settings(self, n_features: int) -> None:
        super()._check_settings(n_features)
        check_positive(self.n_alphas, "n_alphas", integer=True)
        self._checked_groups(n_features)

    def _checked_groups(self, n_features: int) -> list[np.ndarray]:
        groups = [[i] for i in range(n_features)] if self.groups is None else self.groups
        return check_groups(groups, n_features)

    def _largest(self, moments: Moments) -> float:
        return largest_group_alpha(moments, self._checked_groups(moments.n_features))

    def _path(self, moments: Moments, alphas: np.ndarray) -> SparsePath:
        return group_lasso(moments, alphas, self._checked_groups(moments.n_features))
