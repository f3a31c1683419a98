"""Ridge on given features, solved from the moments of one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike, ClassWeight, MatrixLike, RandomState, Sometimes
from chimap._validation import check_positive
from chimap.backends import check_device
from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.component_curves import ComponentCurves, component_curves
from chimap.estimators.from_moments import MomentsModel, RealMomentsModel
from chimap.fit.result import HeldOutRows
from chimap.losses import Square
from chimap.moments import PCA, FoldMoments, Moments
from chimap.selection import choose_alpha, fold_count, score_principal
from chimap.selection.components import DECADES
from chimap.solvers import LinearSolution, PrincipalRidge, ridge
from chimap.solvers.held_out import left_out, leverages

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


class RidgeFromMoments(MomentsModel):
    """What regressor and classifier share: their parameters, and the choice of alpha and of components."""

    def __init__(
        self,
        alpha: str | float | Sequence[float] = "auto",
        n_components: int | Sequence[int] | None = None,
        selection: str | int | BaseCrossValidator = "auto",
        random_state: RandomState = None,
        device: str = "cpu",
        class_weight: ClassWeight = None,
    ):
        self.alpha = alpha
        self.n_components = n_components
        self.selection = selection
        self.random_state = random_state
        self.device = device
        self.class_weight = class_weight

    n_components_: Sometimes[int]
    pca_: Sometimes[PCA]

    def _chooses(self) -> bool:
        return super()._chooses() or (self.n_components is not None and np.ndim(self.n_components) > 0)

    def _check_settings(self, n_features: int) -> None:
        super()._check_settings(n_features)
        fold_count(self.selection, 2 if self._chooses() else 1)
        check_device(self.device)
        for p in () if self.n_components is None else np.atleast_1d(self.n_components):
            check_positive(p.item(), "n_components", integer=True)
            if p > n_features:
                raise InputError(Message("{n_components=!s}, but there are {} features.", p, n_features))

    def _solve(self, folds: FoldMoments, whole: Moments) -> LinearSolution:
        scale = float(whole.scatter_diagonal().mean()) or 1.0
        if self.n_components is None:
            return self._solve_features(folds, whole, scale)
        components = np.atleast_1d(self.n_components)
        given = self._given_alpha
        alphas = scale * DECADES if given is None else np.atleast_1d(given)
        self.selection_ = None
        n_components, alpha = int(components.max()), scale if given is None else float(alphas.max())
        if len(folds.folds) > 1:
            self.selection_ = score_principal(folds, whole, components, alphas, device=self.device)
            n_components, alpha = (self.selection_.best[name] for name in ("n_components", "alpha"))
        self.n_components_ = n_components
        model = PrincipalRidge.of(whole, n_components, self.device)
        self.pca_ = model.pca
        return model.solution(n_components, alpha)

    def _held_out(
        self,
        whole: Moments,
        solution: LinearSolution,
        Z: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
    ) -> HeldOutRows | None:
        if self.n_components is None:
            h = leverages(whole, solution.alpha, Z - whole.shifts[0])
        else:
            coordinates = self.pca_.transform(Z)[:, : self.n_components_]
            scatters = self.pca_.scatters[: self.n_components_]
            h = np.square(coordinates) @ (1 / (scatters + solution.alpha)) + 1 / whole.count
        Y = np.asarray(self._encode(y)) + self._target_shift()
        h = h if weights is None else h * weights
        return HeldOutRows(left_out(Square(), Y, Z @ solution.coef + solution.intercept, h), y, weights)

    def curves(self, X: MatrixLike, y: ArrayLike) -> ComponentCurves:
        """Return the scores on other rows for every number of components and every strength tried.

        One decomposition gives all of them; ``report.write_selection`` draws them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, D)
            Features of rows that were not fitted on.
        y : array of shape (n,)
            Labels or targets.

        Returns
        -------
        ComponentCurves
            R^2 and, for a classifier, accuracy.

        Raises
        ------
        ValueError
            If the model has no principal components.
        """
        self._refresh()
        self._check_has_sums("curves")
        if self.n_components is None:
            raise InputError(
                Message(
                    "curves compare numbers of principal components: give {n_components}, a number or several."
                )
            )
        X, y = self._valid(X, y, reset=False)
        alphas = [self.alpha_] if self.selection_ is None else np.unique(self.selection_.alphas).tolist()
        Z = _arrays.to_dense(_arrays.as_rows(X, self._moments.dtype))
        Y = np.asarray(self._encode(y)) + self._moments.target_shift
        labels_of = getattr(self, "labels_of", None)
        is_right = None if labels_of is None else lambda outputs: labels_of(outputs) == y
        return component_curves(
            self._moments.whole(), np.atleast_1d(self.n_components).tolist(), alphas, Z, Y, is_right
        )

    def _solve_features(self, folds: FoldMoments, whole: Moments, scale: float) -> LinearSolution:
        given = self._given_alpha
        if len(folds.folds) > 1:
            self.selection_ = choose_alpha(folds, whole, "auto" if given is None else np.atleast_1d(given))
            return ridge(whole, self.selection_.best["alpha"])
        self.selection_ = None
        return ridge(whole, scale if given is None else float(np.max(given)))


class MomentsRidge(RealMomentsModel, RidgeFromMoments):
    """Ridge regression from moments, on all features or on their leading principal components.

        minimise over w, b:  sum_n (z_n'w + b - y_n)^2 / 2 + alpha/2 |w|^2,

    with w in the span of the first ``n_components`` components of the rows.

    Parameters
    ----------
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty alpha/2 |w|^2 beside the sum of the losses, ``alpha`` of scikit-learn's ``Ridge``: a
        number, several to choose from, or "auto". Folds choose.
    n_components : int, sequence of int or None, default=None
        Number of principal components, or several to choose from by exact folds, with components and weights fitted
        anew for each fold. None takes all features as they are.
    selection : int or "auto", default="auto"
        Number of folds of the cross-validation; "auto" is five.
    random_state : int, RandomState or None, default=None
        Seed of the folds.
    device : str, default="cpu"
        "cpu", or "cuda" (needs torch), where the eigenproblems of ``n_components`` are solved if they fit there.
    class_weight : None, default=None
        Not used in regression; must be None.

    Attributes
    ----------
    coef_ : ndarray of shape (1, D)
        Weights.
    intercept_ : ndarray of shape (1,)
        Intercept.
    alpha_ : float
        The strength used.
    n_components_ : int
        The number of components used, if ``n_components`` is not None.
    pca_ : PCA
        The components, if ``n_components`` is not None.
    selection_ : SelectionResult or None
        Errors of every fold.
    n_rows_ : int
        Number of rows learned from.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel, sec. 6, Algorithms 3 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.default_rng(0).random((200, 10))
    >>> model = MomentsRidge(n_components=[5, 10], random_state=0).fit(Z, Z[:, 0] + 2 * Z[:, 1])
    >>> model.n_components_, bool(model.score(Z, Z[:, 0] + 2 * Z[:, 1]) > 0.99)
    (10, True)
    """


class MomentsRidgeClassifier(ClassTargets, RidgeFromMoments):
    """One-versus-rest ridge classifier from moments, on all features or on their leading principal components.

    Parameters
    ----------
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty. See ``MomentsRidge``.
    n_components : int, sequence of int or None, default=None
        Number of principal components, or several to choose from. See ``MomentsRidge``.
    selection : int or "auto", default="auto"
        Number of folds of the cross-validation; "auto" is five.
    random_state : int, RandomState or None, default=None
        Seed of the folds.
    device : str, default="cpu"
        "cpu", or "cuda" (needs torch). See ``MomentsRidge``.
    class_weight : "balanced", dict or None, default=None
        Factors of the row weights by class: "balanced", or a dictionary from labels to weights. See
        ``HistogramClassifier``.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The class labels.
    coef_ : ndarray of shape (t, D)
        Weights, one row per class (one row for two classes).

    Notes
    -----
    The other attributes are those of ``MomentsRidge``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MomentsRidgeClassifier(n_components=[10, 30, 60], random_state=0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.85)
    True
    """

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the moments; the first call fixes the point around which moments are taken.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, D)
            Features.
        y : array of shape (n,)
            Labels.
        classes : array of shape (classes,) or None, default=None
            All classes; required at the first call.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        ValueError
            If ``classes`` is missing at the first call.
        """
        if self._is_new:
            if classes is None:
                raise InputError(
                    "classes must be given at the first call of partial_fit: all labels that will ever occur."
                )
            self._learn_targets(classes)
        return self._partial_fit(X, y, sample_weight)
