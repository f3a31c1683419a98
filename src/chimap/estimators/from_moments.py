"""Linear models on given features, solved from the moments of one pass: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, ClassWeight, MatrixLike, RandomState, Rows, Shape, Sometimes
from chimap._validation import DataError, check_positive, check_weights, validated
from chimap.backends import check_device
from chimap.backends.host import HOST
from chimap.data.reading import check_rows_order
from chimap.data.source import choose_rows
from chimap.engines import Stopwatch
from chimap.engines.local import Pass
from chimap.engines.memory import FIRST_ROWS
from chimap.estimators.component_curves import ComponentCurves, component_curves
from chimap.estimators.targets import ClassTargets, CountedRows, Encoding, RealTargets, without_posterior
from chimap.features.additive.identity import IdentityMap
from chimap.features.principal import PCA
from chimap.model_files import saved
from chimap.models.answers import ClassAnswers
from chimap.moments import DealtFolds, FoldMoments, Moments, RowWeights, provisional_mean
from chimap.penalties import check_groups
from chimap.penalties.groups import Group
from chimap.recipe.recipe import checked_alpha
from chimap.recipe.task import HeldOutRows
from chimap.selection import SelectionResult, fold_count
from chimap.selection.base import OpenSettings
from chimap.selection.choose import choose
from chimap.solvers.base import Problem
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.groups import group_lasso, largest_group_alpha
from chimap.solvers.held_out import ValidationRows
from chimap.solvers.principal import PrincipalProblem
from chimap.solvers.sparse import SparsePath, SparseProblem, elastic_net, largest_alpha

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils import Tags

_ROWS = 8192  # rows that are made dense and added together
_WITNESSES = 2000  # rows for which held-out outputs are computed


_FINITE_FLOATS: JSON = {"dtype": [np.float64, np.float32], "ensure_all_finite": True}


class MomentsModel(Encoding, BaseEstimator):
    """What the linear models share: they add rows to the moments of folds, solve for weights, and do not keep rows.

    ``partial_fit`` adds rows to the moments; the weights are solved for again at the next use. A model file holds the
    weights and not the moments, so a model that comes from one predicts, and takes no more rows.
    """

    file_kind: ClassVar[str] = "estimator"
    selection: str | int | BaseCrossValidator
    random_state: RandomState
    save = saved.save
    load = saved.Load()

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, D)
            Features.
        y : array of shape (n,)
            Labels or targets.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows in every sum, 0 for none.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            If values or labels are invalid.
        ValueError
            If a parameter is out of range.
        """
        check_rows_order(X, y=y, sample_weight=sample_weight)
        rows, labels = self._valid(X, y, reset=True)
        counted = self._counted(rows, labels, sample_weight)
        self._learn_targets(counted.y)
        self._moments = self._empty(counted.X)
        self._witness(counted)
        self._add(counted)
        return self._solve_now()

    def _witness(self, rows: CountedRows) -> None:
        """Keep some rows, for which held-out outputs are computed."""
        chosen = choose_rows(rows.X.shape[0], _WITNESSES, self._seed)
        weights, counts = (None if part is None else part[chosen] for part in (rows.weights, rows.counts))
        self._validation = CountedRows(_arrays.take_rows(rows.X, chosen), rows.y[chosen], weights, counts)

    def _partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        first = self._is_new
        check_rows_order(X, y=y, sample_weight=sample_weight)
        rows, labels = self._valid(X, y, reset=first)
        counted = self._counted(rows, labels, sample_weight, is_batch=True)
        self._encode(counted.y)  # checks the labels before anything is added
        if first:
            self._moments = self._empty(counted.X)
            self._witness(counted)
        self._add(counted)
        self._stale = True
        return self

    def _valid(self, X: MatrixLike, y: ArrayLike, *, reset: bool) -> tuple[Rows, np.ndarray]:
        return validated(self, X, y, reset=reset, **_FINITE_FLOATS, **self._y_checks)

    def _empty(self, X: Rows) -> FoldMoments:
        self._check_settings(X.shape[1])
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        n_folds = max(1, min(fold_count(self.selection, 1), X.shape[0] // 2)) if self._chooses() else 1
        shift = provisional_mean(X[:FIRST_ROWS])
        return FoldMoments(n_folds, X.shape[1], self._n_targets, shift, self._target_shift(), X.dtype)

    def _add(self, rows: CountedRows) -> None:
        X, y, weights, _ = rows
        moments, n_before = self._moments, self._moments.n_rows
        sums = HOST.sums(IdentityMap(), moments)
        folds = DealtFolds(len(moments.folds), self._seed)
        adding = Pass(self._rows, self._encode, sums, folds, Stopwatch(), RowWeights(weights, n_before))
        for first in range(0, X.shape[0], _ROWS):
            chunk = slice(first, first + _ROWS)
            adding.add(_arrays.take_rows(X, chunk), y[chunk], n_before + first, "X")

    def _rows(self, X: Rows, first_row: int, name: str) -> Rows:
        """Return rows as the pass takes them; they are checked already."""
        return _arrays.as_rows(X, self._moments.dtype)

    def _solve_now(self) -> Self:
        rows, shift = self._validation, self._moments.folds[0].shifts[0]
        validation = ValidationRows(
            np.arange(rows.y.shape[0]),
            _arrays.to_dense(_arrays.as_rows(rows.X, np.float64)) - shift,
            np.asarray(self._encode(rows.y)),
            np.zeros(rows.y.shape[0], dtype=np.intp),
            rows.weights,
            counts=rows.counts,
        )
        choice = choose(self._problem(self._moments), self._open, validation=validation)
        solution, held_out = choice.solution, choice.held_out
        check_weights(solution.coef, solution.alpha)
        self.selection_ = choice.selection
        for name, value in choice.attributes.items():
            setattr(self, name, value)
        # The order in memory is that of a file, so that products with weights from one give the same bits.
        self.coef_ = np.ascontiguousarray(solution.coef.T)
        self.intercept_, self.alpha_ = solution.intercept, solution.alpha
        self.n_rows_ = choice.n_rows
        self._stale = False
        self._take_held_out(
            None if held_out is None else HeldOutRows(held_out.outputs, rows.y, rows.weights, counts=rows.counts)
        )
        return self

    def _refresh(self) -> None:
        """Solve for the rows that ``partial_fit`` has added since the last solution."""
        if self._stale:
            self._solve_now()
        elif not hasattr(self, "coef_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted: call fit or partial_fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return self._stale or hasattr(self, "coef_")

    @property
    def _is_new(self) -> bool:
        """Whether no rows were added yet. Raise DataError for a model from a file, which has forgotten their sums."""
        if hasattr(self, "_moments"):
            return False
        self._check_has_sums("partial_fit")
        return True

    def _check_has_sums(self, method: str) -> None:
        if hasattr(self, "coef_") and not hasattr(self, "_moments"):
            raise DataError(
                f"{method} needs the sums of the rows, and this {type(self).__name__} comes from a file, which holds "
                "its weights only. Call fit on all rows; sums are kept by Moments.save."
            )

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        self._refresh()
        rows = validated(self, X, reset=False, **_FINITE_FLOATS)
        return np.asarray(rows @ self.coef_.T.astype(rows.dtype)) + self.intercept_

    def _variance_factors(self, X: MatrixLike) -> np.ndarray:
        """Raise ValueError: there is no posterior."""
        raise without_posterior(self)

    def _chooses(self) -> bool:
        """Whether folds choose a setting."""
        return not isinstance(self._given_alpha, float)

    @property
    def _given_alpha(self) -> float | tuple[float, ...] | None:
        """One strength, several to choose from, or None for "auto"."""
        return checked_alpha(self.alpha)

    def _check_settings(self, n_features: int) -> None:
        # Given strengths make a path, which takes no folds.
        fold_count(self.selection, 2 if self._given_alpha is None else 1)

    @property
    def _open(self) -> OpenSettings:
        """What the folds choose."""
        return OpenSettings(self._given_alpha)

    @abstractmethod
    def _problem(self, folds: FoldMoments) -> Problem:
        """Return what the weights solve."""

    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    coef_: Annotated[np.ndarray, Shape("t", "n_features_in_")]
    intercept_: Annotated[np.ndarray, Shape("t")]
    alpha_: float
    n_rows_: int
    selection_: SelectionResult | None
    alpha: str | float | Sequence[float]
    _moments: FoldMoments
    _stale: bool = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


class RealMomentsModel(RealTargets, MomentsModel):
    """A model of one real target, which takes batches."""

    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to the moments; the first call fixes the point around which moments are taken.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, D)
            Features.
        y : array of shape (n,)
            Targets.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.

        Returns
        -------
        self
            The estimator.
        """
        if self._is_new:
            self._learn_targets(y)
        return self._partial_fit(X, y, sample_weight)


class RidgeFromMoments(MomentsModel):
    """What regressor and classifier share: their parameters, and the choice of alpha and of components."""

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

    def _problem(self, folds: FoldMoments) -> Problem:
        if self.n_components is None:
            return RidgeProblem(folds, spans=False)
        return PrincipalProblem(folds, np.atleast_1d(self.n_components).tolist(), self.device)

    def curves(self, X: MatrixLike, y: ArrayLike) -> ComponentCurves:
        """Return the scores on other rows for every number of components and every strength tried.

        One decomposition gives all of them; ``reports.SelectionPage`` draws them.

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
                Message("curves compare numbers of principal components: give {n_components}, a number or several.")
            )
        X, y = self._valid(X, y, reset=False)
        alphas = [self.alpha_] if self.selection_ is None else np.unique(self.selection_.alphas).tolist()
        Z = _arrays.to_dense(_arrays.as_rows(X, self._moments.dtype))
        Y = np.asarray(self._encode(y)) + self._moments.target_shift
        answers = self._answers
        is_right = (lambda outputs: answers.labels(outputs) == y) if isinstance(answers, ClassAnswers) else None
        return component_curves(
            self._moments.whole(), np.atleast_1d(self.n_components).tolist(), alphas, Z, Y, is_right
        )


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
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.

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

    def __init__(
        self,
        alpha: str | float | Sequence[float] = "auto",
        n_components: int | Sequence[int] | None = None,
        selection: str | int | BaseCrossValidator = "auto",
        random_state: RandomState = None,
        device: str = "cpu",
        weights: str = "importance",
    ):
        self.alpha = alpha
        self.n_components = n_components
        self.selection = selection
        self.random_state = random_state
        self.device = device
        self.weights = weights


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
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
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

    def __init__(
        self,
        alpha: str | float | Sequence[float] = "auto",
        n_components: int | Sequence[int] | None = None,
        selection: str | int | BaseCrossValidator = "auto",
        random_state: RandomState = None,
        device: str = "cpu",
        class_weight: ClassWeight = None,
        weights: str = "importance",
    ):
        self.alpha = alpha
        self.n_components = n_components
        self.selection = selection
        self.random_state = random_state
        self.device = device
        self.class_weight = class_weight
        self.weights = weights

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
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


class _SparseModel(RealMomentsModel):
    """A path of strengths, from which the folds choose one."""

    n_alphas: int
    path_: SparsePath
    kkt_residual_: float

    @property
    def _open(self) -> OpenSettings:
        return OpenSettings(self._given_alpha, n_alphas=self.n_alphas)

    def _problem(self, folds: FoldMoments) -> SparseProblem:
        return SparseProblem(folds, self._path, self._largest(folds.whole()))

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
