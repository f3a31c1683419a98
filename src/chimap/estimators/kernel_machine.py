"""Exact kernel machines, one class against the rest: a reference for explicit features, for data that fit memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin

from chimap import _arrays
from chimap._types import ArrayLike, ClassWeight, MatrixLike, RandomState, Rows
from chimap._validation import check_choice
from chimap.estimators.base import HistogramModel
from chimap.estimators.targets import ClassTargets
from chimap.features.additive.base import AdditiveMap
from chimap.features.base import Features, FittedFeatures
from chimap.features.exact import FormulaValues, MapProducts, PrecomputedValues, TransformerFeatures
from chimap.kernels import Kernel
from chimap.recipe import Recipe
from chimap.recipe.recipe import checked_alpha
from chimap.recipe.weights import checked_sample_weight
from chimap.selection.base import fold_count
from chimap.solvers.gram import GRAM_LOSSES, GramSolver

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils import Tags


class KernelClassifier(ClassTargets, HistogramModel):
    """Exact kernel machine, one class against the rest: f(x) = sum_i a_i K(x_i, x) + b over all training rows x_i.

    For each class, the machine solves

        minimise over a, b:  sum_i loss(y_i, f(x_i)) + alpha/2 |w|^2,   |w|^2 = sum_ij a_i a_j K(x_i, x_j),

    with y_i = 1 for the class and -1 otherwise. The penalty is that of ``HistogramClassifier`` on the kernel as it is,
    and alpha is LIBSVM's 1/C. The kernel matrix is computed once for all classes, in float64, and centred (minus the
    means of its rows and columns, which the intercept takes up). Time and memory grow with the square of the number of
    rows: it is meant for up to about ten thousand rows, and as the exact machine that explicit features are compared
    with. ``HistogramClassifier`` takes any number of rows.

    Parameters
    ----------
    kernel : str or Kernel, default="chi2"
        The kernel, see ``HistogramClassifier``, or "precomputed". Then X is the kernel matrix: of the training rows,
        (n, n), in ``fit``; of new rows with training rows, (m, n), in ``predict``.
    gamma : float or str, default="mean"
        The factor of the distance in exponential kernels. See ``HistogramClassifier``.
    map : additive map or None, default=None
        A transformer that replaces the kernel: K is then the dot product of its features, and the machine is the linear
        one on these features, with weights ``coef_``. It is found in the span of the training rows, which is faster if
        they are fewer than the features.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty alpha/2 |w|^2 beside the sum of the losses, 1/C of LIBSVM, or several to choose from.
        "auto" compares 0.001, 0.01, 0.1, 1 and 10 times ``scale_``. The most accurate on held-out folds is taken, and
        the largest of those that tie.
    loss : {"hinge", "square"}, default="hinge"
        "hinge", max(0, 1 - y f), is a support vector machine by LIBSVM; "square", (y - f)^2 / 2, is ridge, solved for
        all classes at once.
    class_weight : "balanced", dict or None, default=None
        Factors of the row weights by class. See ``HistogramClassifier``.
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    threshold : "f1", "balanced", float or None, default=None
        How to set the threshold of two classes. See ``HistogramClassifier``.
    positive : label or None, default=None
        The positive one of two classes, that of ``threshold``; None is the second, ``classes_[1]``.
    selection : int, "auto" or splitter, default=3
        Folds that choose alpha: their number, "auto" for five, or a scikit-learn splitter that holds out every row
        once. Random folds have their share of every class. Rows of a group are in one fold.
    memory : str or int, default="auto"
        Memory budget of the matrices. "auto" is what they take, up to half of the free memory.
    n_jobs : int or None, default=None
        Number of threads, which share the classes. None and -1 use all cores.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The class labels.
    dual_coef_ : ndarray of shape (t, n)
        Dual weights a of the training rows; t is 1 for two classes.
    intercept_ : ndarray of shape (t,)
        Intercepts b.
    scale_ : float
        Mean diagonal of the centred kernel.
    alpha_ : float
        The strength used.
    selection_ : SelectionResult or None
        Accuracies of every strength on every fold; None if there was nothing to choose.
    kernel_ : Kernel
        The kernel, with its parameters set to numbers.
    rows_ : array or sparse matrix of shape (n, bins)
        The training rows.
    row_numbers_ : ndarray of shape (n,)
        Places of these rows in the array that was fitted on; rows of weight 0 are left out.
    map_ : additive map
        The fitted map, if one was given; it replaces ``kernel_`` and ``rows_``.
    coef_ : ndarray of shape (t, features)
        Weights of the features of ``map_``.

    References
    ----------
    Chang and Lin, LIBSVM: a library for support vector machines (the hinge, through scikit-learn).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> exact = KernelClassifier("chi2").fit(X[:500], y[:500])
    >>> bool(exact.score(X[500:], y[500:]) > 0.85)
    True
    """

    file_kind: ClassVar[str] = "estimator"
    verbose = False
    kernel: str | Kernel
    scale_: float
    dual_coef_: np.ndarray

    def __init__(
        self,
        kernel: str | Kernel = "chi2",
        *,
        gamma: float | str = "mean",
        map: AdditiveMap | None = None,
        alpha: str | float | Sequence[float] = "auto",
        loss: str = "hinge",
        class_weight: ClassWeight = None,
        weights: str = "importance",
        threshold: str | float | None = None,
        positive: object = None,
        selection: str | int | BaseCrossValidator = 3,
        memory: str | int = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.alpha = alpha
        self.loss = loss
        self.class_weight = class_weight
        self.weights = weights
        self.threshold = threshold
        self.positive = positive
        self.selection = selection
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Fit the machine on rows X, or their kernel matrix (n, n), and labels y; see ``HistogramClassifier.fit``."""
        if not self._is_precomputed or sample_weight is None:
            return super().fit(X, y, sample_weight, groups)
        # A row without a weight is left out with its column, which new rows have all the same.
        matrix = _arrays.to_dense(X) if _arrays.is_sparse(X) else np.asarray(X)
        weights = np.asarray(checked_sample_weight(sample_weight, len(matrix)))
        kept = np.flatnonzero(weights)
        groups = None if groups is None else np.asarray(groups)[kept]
        super().fit(matrix[np.ix_(kept, kept)], np.asarray(y)[kept], weights[kept], groups)
        model, self.n_features_in_ = self.fitted, len(matrix)
        coef = np.zeros((len(matrix), model.n_outputs))
        coef[kept] = model.coef
        learned = {**model.learned, "row_numbers_": kept, "dual_coef_": coef.T}
        features = PrecomputedValues.of_size(len(matrix))
        self.model_ = replace(model, n_bins=len(matrix), features=features, coef=coef, learned=learned)
        return self

    def _recipe(self) -> Recipe:
        check_choice(self.loss, "loss", GRAM_LOSSES)
        selection = self.selection
        if isinstance(selection, str) or not hasattr(selection, "split"):
            selection = fold_count(selection, 1 if isinstance(checked_alpha(self.alpha), float) else 2)
        return replace(
            Recipe.of(self),
            kernel=self._values.exact_kernel,
            features=self._values,
            selection=selection,
            solver=GramSolver.name,
            precision="float64",
        )

    @property
    def _values(self) -> Features:
        """The features, unfitted, whose values are the kernel matrix."""
        if self.map is not None:
            return MapProducts(self.map)
        return PrecomputedValues() if self._is_precomputed else FormulaValues(self.kernel, gamma=self.gamma)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed" and self.map is None

    @property
    def rows_(self) -> Rows:
        """The training rows, where the machine keeps them."""
        return self.fitted.features.rows_

    @property
    def map_(self) -> FittedFeatures | TransformerMixin:
        """The fitted map, if one was given."""
        if self.map is None:
            raise AttributeError(f"{type(self).__name__} was fitted without a map")
        features = self.fitted.features
        return features.transformer if isinstance(features, TransformerFeatures) else features

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.positive_only = not self._values.exact_kernel.is_signed
        return tags
