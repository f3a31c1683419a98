"""Linear models that use few of the given features, from the moments of one pass: LASSO, elastic net, group LASSO."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from chimap._validation import check_positive
from chimap.estimators.from_moments import MomentsModel
from chimap.estimators.targets import RealTargets
from chimap.moments import FoldMoments, Moments
from chimap.penalties import check_groups
from chimap.solvers import LinearSolution
from chimap.solvers.sparse import (
    SparsePath,
    check_strengths,
    elastic_net,
    group_lasso,
    largest_group_strength,
    largest_strength,
    score_path,
    strengths_below,
)


class _SparseModel(RealTargets, MomentsModel):
    """A path of strengths, of which the folds choose one."""

    n_strengths: int

    def _solve(self, folds: FoldMoments, whole: Moments) -> LinearSolution:
        strengths = self._strengths(whole)
        best = float(strengths.max())
        self.scores_ = None
        if len(folds.folds) > 1:
            self.scores_ = score_path(folds, whole, lambda rest: self._path(rest, strengths))
            strengths = np.sort(strengths)[::-1]
            counts = [fold.count for fold in folds.folds]
            best = float(strengths[np.argmin(np.average(self.scores_, axis=1, weights=counts))])
        path = self._path(whole, strengths)
        self.path_ = path
        chosen = int(np.argmin(np.abs(path.strengths - best)))
        self.kkt_residual_ = float(path.residuals[chosen])
        return path.solutions[chosen]

    def _strengths(self, whole: Moments) -> np.ndarray:
        if isinstance(self.strengths, str):
            return strengths_below(self._largest(whole), self.n_strengths)
        return check_strengths(self.strengths)

    @abstractmethod
    def _largest(self, moments: Moments) -> float:
        """The strength at which all weights are zero."""

    @abstractmethod
    def _path(self, moments: Moments, strengths: np.ndarray) -> SparsePath:
        """Solutions at all strengths."""

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add rows; the first call fixes what moments are taken about. Returns self."""
        if getattr(self, "_moments", None) is None:
            self._learn_targets(y)
        return self._partial_fit(X, y)


class MomentsLasso(_SparseModel):
    """LASSO or elastic net from moments.

    min sum (z'w + b - y)^2 / (2n) + strength (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2).

    Parameters
    ----------
    strengths : "auto" (a path of ``n_strengths`` of which folds choose one), numbers, or one number: scikit-learn's
        ``alpha``.
    l1_ratio : 1 is the LASSO; in (0, 1].
    n_strengths : of the automatic path.
    n_folds, random_state : of the cross-validation.

    Learned: ``coef_`` (1, D), ``intercept_`` (1,), ``strength_``, ``path_`` (a ``SparsePath``: solutions, numbers of
    features used, optimality residuals), ``kkt_residual_``, ``scores_`` (strengths, folds).

    >>> import numpy as np
    >>> Z = np.random.default_rng(0).standard_normal((300, 20))
    >>> model = MomentsLasso(random_state=0).fit(Z, Z[:, 3] - Z[:, 7])
    >>> sorted(np.argsort(-np.abs(model.coef_[0]))[:2].tolist())
    [3, 7]
    """

    def __init__(
        self,
        strengths: Any = "auto",
        l1_ratio: float = 1.0,
        n_strengths: int = 30,
        n_folds: int = 5,
        random_state: Any = None,
    ):
        self.strengths = strengths
        self.l1_ratio = l1_ratio
        self.n_strengths = n_strengths
        self.n_folds = n_folds
        self.random_state = random_state

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        check_positive(self.n_strengths, "n_strengths", integer=True)
        check_positive(self.l1_ratio, "l1_ratio")
        if self.l1_ratio > 1:
            raise ValueError(f"l1_ratio must be in (0, 1]; got {self.l1_ratio!r}.")

    def _largest(self, moments: Moments) -> float:
        return largest_strength(moments, self.l1_ratio)

    def _path(self, moments: Moments, strengths: np.ndarray) -> SparsePath:
        return elastic_net(moments, strengths, self.l1_ratio)


class MomentsGroupLasso(_SparseModel):
    """Group LASSO from moments: whole groups of features are used or left out.

    min sum (z'w + b - y)^2 / (2n) + strength sum_g sqrt(|g|) |w_g|_2. Needs skglm (the extra "sparse").

    Parameters
    ----------
    groups : lists of columns, or slices; each column in exactly one group.
    strengths, n_strengths, n_folds, random_state : as in ``MomentsLasso``.

    Learned: as in ``MomentsLasso``. Raises ImportError where skglm is missing, ValueError for groups that overlap or
    leave features out.

    Source: Yuan and Lin, Model selection and estimation in regression with grouped variables (2006).

    >>> import numpy as np
    >>> Z = np.random.default_rng(0).standard_normal((300, 6))
    >>> model = MomentsGroupLasso([[0, 1], [2, 3], [4, 5]], strengths=0.1, random_state=0).fit(Z, Z[:, 2] - Z[:, 3])
    >>> np.flatnonzero(model.coef_[0]).tolist()
    [2, 3]
    """

    def __init__(
        self,
        groups: Any = None,
        strengths: Any = "auto",
        n_strengths: int = 30,
        n_folds: int = 5,
        random_state: Any = None,
    ):
        self.groups = groups
        self.strengths = strengths
        self.n_strengths = n_strengths
        self.n_folds = n_folds
        self.random_state = random_state

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        check_positive(self.n_strengths, "n_strengths", integer=True)
        groups = [[i] for i in range(n_features)] if self.groups is None else self.groups
        self._groups = check_groups(groups, n_features)

    def _largest(self, moments: Moments) -> float:
        return largest_group_strength(moments, self._groups)

    def _path(self, moments: Moments, strengths: np.ndarray) -> SparsePath:
        return group_lasso(moments, strengths, self._groups)
