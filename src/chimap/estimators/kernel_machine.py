"""Exact kernel machines, one class against the rest: a reference for explicit features, for data that fit memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._errors import InputError
from chimap._memory import format_bytes, parse_memory, whole_mebibytes
from chimap._messages import Message
from chimap._threads import suited, threads
from chimap._types import ArrayLike, ClassWeight, MatrixLike, RandomState, Rows, Shape, Sometimes
from chimap._validation import MemoryBudgetError, check_choice, check_histograms, validated
from chimap.data.doubts import Units
from chimap.data.formats.frames import frame_rows
from chimap.data.views import fitted_names
from chimap.estimators.forwarding import forwarded, outputs_of_rows, rows_as_read
from chimap.estimators.targets import ClassTargets, CountedRows, Encoding
from chimap.explain import mean_and_deviation
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.base import FittedFeatures
from chimap.features.exact import ExactFeatures
from chimap.fit.holding_out import holding_out
from chimap.fit.rows import FEWEST_UNITS, sufficient_folds
from chimap.kernels import Kernel, Linear, as_kernel
from chimap.model_files import saved
from chimap.models.explain import effects, explain, importance, nearest
from chimap.models.model import Model
from chimap.moments import rows_by_weight
from chimap.recipe import Recipe
from chimap.recipe.recipe import checked_alpha
from chimap.recipe.task import HeldOutRows, checked_groups
from chimap.recipe.weights import checked_sample_weight
from chimap.selection import SelectionResult
from chimap.selection.base import OpenSettings, fold_count
from chimap.selection.choose import choose
from chimap.solvers.exact_hinge import CACHE_MIB
from chimap.solvers.gram import GRAM_LOSSES, GramProblem, Split
from chimap.solvers.held_out import HeldOut

if TYPE_CHECKING:
    from sklearn.base import TransformerMixin
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils import Tags


class KernelClassifier(ClassTargets, Encoding, BaseEstimator):
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
        Folds that choose alpha: their number, "auto" for five, or a scikit-learn splitter. Rows of a group are in one.
    memory : str or int, default="2GiB"
        Memory budget of the matrices.
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
    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    map_: Sometimes[AdditiveMap]
    kernel_: Sometimes[Kernel]
    rows_: Sometimes[Rows]
    coef_: Sometimes[np.ndarray]
    dual_coef_: Annotated[np.ndarray, Shape("t", "n")]
    intercept_: Annotated[np.ndarray, Shape("t")]
    scale_: float
    alpha_: float
    selection_: SelectionResult | None
    units_: ClassVar[Units | None] = None

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
        memory: str | int = "2GiB",
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
        """Fit the machine.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, bins)
            Rows, or the kernel matrix (n, n) if it is precomputed.
        y : array of shape (n,)
            Labels.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows in every sum, 0 for none.
        groups : array of shape (n,) or None, default=None
            Group of each row; the rows of a group are held out together.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        MemoryBudgetError
            If the kernel matrix does not fit.
        """
        given = checked_alpha(self.alpha)
        selection = self.selection
        if isinstance(selection, str) or not hasattr(selection, "split"):
            selection = fold_count(selection, 1 if isinstance(given, float) else 2)
        check_choice(self.loss, "loss", GRAM_LOSSES)
        X, y = frame_rows(X, y, sample_weight=sample_weight)
        valid_rows, labels = validated(self, X, y)
        n_given, rows = valid_rows.shape[0], self._checked(valid_rows)
        weights = checked_sample_weight(sample_weight, n_given)
        places = np.arange(n_given) if weights is None else np.flatnonzero(weights)
        counted = self._counted(rows, labels, weights)
        rows, labels, weights, _ = counted
        groups = None if groups is None else checked_groups(groups, n_given)[places]
        if self._is_precomputed:
            rows = rows[:, places]
        self.row_numbers_ = places
        self._learn_targets(labels)
        self._check_memory(rows.shape[0])
        for name, row in mean_and_deviation(rows).items():
            setattr(self, name, row)
        with threads(suited(self.n_jobs, rows.shape[0])):
            w = np.ones(len(labels)) if weights is None else weights
            gram, means = self._training_gram(rows, w / w.sum())
            self.scale_ = float(w @ gram.diagonal() / w.sum()) or 1.0
            splits = self._splits(labels, groups, selection)
            problem = GramProblem(
                self.loss,
                gram,
                np.asarray(self._encode(labels), dtype=np.float64),
                w,
                self.scale_ * counted.mean_weight,
                splits,
                self._codec.score(labels, None, w),
                self._held_folds(labels, splits),
                None if groups is None else [np.flatnonzero(groups == k) for k in np.unique(groups)],
            )
            chosen = choose(problem, OpenSettings(given))
        self.alpha_, self.selection_ = chosen.solution.alpha, chosen.selection
        duals, intercept = chosen.solution.coef, chosen.solution.intercept
        self._take_held_out(_with_labels(chosen.held_out, counted, groups))
        self.dual_coef_ = np.ascontiguousarray(duals.T)  # in the order of a file, for the same bits
        if self._is_precomputed and len(labels) < n_given:  # at prediction, rows of weight 0 have columns too
            dual_coef = np.zeros((duals.shape[1], n_given))
            dual_coef[:, places], column_means = self.dual_coef_, np.zeros(n_given)
            column_means[places] = means
            self.dual_coef_, means = dual_coef, column_means
        # The weights of a class sum to 0, so the centring only leaves a constant.
        weights = self.dual_coef_
        if self.map is not None:
            weights = self.coef_ = self.dual_coef_ @ self._features
            del self._features
        self.intercept_ = intercept - weights @ means
        return self

    def _splits(
        self, labels: np.ndarray, groups: np.ndarray | None, selection: int | BaseCrossValidator
    ) -> list[Split]:
        """Return the folds: those of a splitter, of whole groups, or with rows of every class if there are enough.

        There are none if there are too few rows to hold some out.
        """
        n = len(labels)
        if groups is not None:
            holding = holding_out(selection, is_fixed=False, has_gcv=False, has_score=False)
            folds = holding.folds(n, labels, groups, 0)
            numbers = folds(0, n)
            return [(np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in range(folds.n_folds)]
        if not isinstance(selection, int):
            return list(selection.split(np.zeros(n), labels))
        n_folds = min(selection, n // 2)
        if n_folds < 2:
            return []
        seed = check_random_state(self.random_state).randint(2**31)
        fewest = np.unique(labels, return_counts=True)[1].min()
        from sklearn.model_selection import KFold, StratifiedKFold

        kind = StratifiedKFold if fewest >= n_folds else KFold
        return list(kind(n_folds, shuffle=True, random_state=seed).split(np.zeros(n), labels))

    def _held_folds(self, labels: np.ndarray, splits: list[Split]) -> list[int] | None:
        """Return as many folds as are enough to calibrate by; None if rows are left out in closed form.

        Ridge leaves out each row, or group, alone; the hinge, and a user's splitter, hold out folds.
        """
        has_splitter = not isinstance(self.selection, str) and hasattr(self.selection, "split")
        if self.loss == "square" and not has_splitter:
            return None
        if not splits:
            return []
        fold_of = np.repeat(np.arange(len(splits)), [test.size for _, test in splits])
        held = np.concatenate([test for _, test in splits])
        is_rare = self._codec.rare(labels, splits[0][1].size, FEWEST_UNITS)[held]
        return list(sufficient_folds(fold_of, len(splits), is_rare, None))

    def _say_doubts_of(self, X: Rows, y: np.ndarray) -> None:
        if not self._is_precomputed:  # kernel values are no rows
            super()._say_doubts_of(X, y)

    def _training_gram(self, rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel matrix, centred, and the means that were subtracted.

        The means are those of the matrix rows, or of the features of a map, with the shares (n,) of the rows in the sum
        of weights. Map and kernel are fitted on rows drawn with these shares.
        """
        sample = rows
        if np.ptp(shares) > 0 and not self._is_precomputed:
            sample = _arrays.take_rows(rows, rows_by_weight(shares, rows.shape[0], 0))
        if self.map is not None:
            self.map_ = clone(self.map).fit(sample)
            self._features = np.array(_arrays.to_dense(self.map_.transform(rows)), dtype=np.float64)
            means = shares @ self._features
            self._features -= means
            return self._features @ self._features.T, means
        if self._is_precomputed:
            gram = np.array(rows, dtype=np.float64)
        else:
            self.kernel_ = as_kernel(self.kernel, self.gamma).fitted(sample)
            self.rows_ = rows
            gram = np.asarray(self.kernel_(rows))
        means = shares @ gram
        gram -= means
        gram -= (gram @ shares)[:, None]
        return gram, means

    # --- the fitted model

    @property
    def fitted(self) -> Model:
        """The fitted model: an expansion over the training rows, or over the features of a map."""
        check_is_fitted(self)
        kernel: Kernel = Linear()
        if self.map is not None:
            features = _features_of(self.map_, self.coef_.shape[1])
        elif self._is_precomputed:
            features = IdentityMap()
            features.n_features_in_ = self.n_features_in_
        else:
            kernel = self.kernel_
            features = ExactFeatures.of_values(kernel, self.rows_)
        coef = self.dual_coef_ if self.map is None else self.coef_
        learned = {name: vars(self)[name] for name in _SHOWN if name in vars(self)}
        return Model(
            self._recipe(),
            self._task,
            self.n_features_in_,
            fitted_names(self),
            features,
            kernel,
            coef.T,
            self.intercept_,
            self._answers,
            learned=learned,
        )

    def _recipe(self) -> Recipe:
        """Return the settings that prepared rows and answers depend on."""
        kernel = "linear" if self.map is not None or self._is_precomputed else self.kernel
        return Recipe(type(self).__name__, True, kernel, gamma=self.gamma, precision="float64", n_jobs=self.n_jobs)

    def _check_bins(self) -> None:
        """Raise ValueError for kernel="precomputed", whose columns are rows and not bins."""
        if self._is_precomputed:
            raise InputError(
                Message("a model with {kernel='precomputed'} has no bins, so there is nothing to explain by.")
            )

    _outputs = outputs_of_rows
    rows_as_read = rows_as_read
    explain = forwarded(explain, _check_bins)
    importance = forwarded(importance, _check_bins)
    effects = forwarded(effects, _check_bins)
    nearest = forwarded(nearest, _check_bins)
    save = saved.save
    load = saved.Load()

    @property
    def positive_(self) -> object:
        """The class that ``positive`` named when the model was fitted, as in ``classes_``; None for none."""
        return self.fitted.task.positive_class

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed" and self.map is None

    @property
    def _is_signed(self) -> bool:
        """Whether entries may be negative; a map checks this itself."""
        return self._is_precomputed or self.map is not None or as_kernel(self.kernel, self.gamma).is_signed

    def _checked(self, X: MatrixLike) -> Rows:
        rows = _arrays.as_rows(X, np.float64)
        check_histograms(rows, signed=self._is_signed)
        return _arrays.to_dense(rows) if self._is_precomputed else rows

    def _check_memory(self, n_rows: int) -> None:
        needed = 8.0 * n_rows**2 * 3 + CACHE_MIB * 2**20
        if needed > parse_memory(self.memory):
            raise MemoryBudgetError(
                Message(
                    "{memory=} is too small for the kernel matrix of {:,} rows: it takes {}. Give {memory=}, take "
                    "fewer rows, or use HistogramClassifier, whose memory does not grow with the rows.",
                    self.memory,
                    n_rows,
                    format_bytes(needed),
                    whole_mebibytes(needed),
                )
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.positive_only = not self._is_signed
        return tags


_SHOWN = ("mean_row_", "deviation_row_", "row_numbers_")  # what explanations ask of the rows of the fit


class TransformerFeatures(FittedFeatures):
    """Features of a fitted transformer of scikit-learn."""

    def __init__(self, transformer: TransformerMixin, n_features: int):
        self._transformer, self._width = transformer, n_features

    @property
    def _n_features_out(self) -> int:
        return self._width

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """See ``FittedFeatures``."""
        out[:] = _arrays.to_dense(self._transformer.transform(rows))
        if shift is not None:
            out -= shift


def _features_of(map: AdditiveMap | TransformerMixin, n_features: int) -> FittedFeatures:
    """Return a fitted map, or any transformer, as features."""
    return map if isinstance(map, FittedFeatures) else TransformerFeatures(map, n_features)


def _with_labels(held_out: HeldOut | None, rows: CountedRows, groups: np.ndarray | None) -> HeldOutRows | None:
    """Return the outputs of left-out rows with what is known of these rows; None if there are too few."""
    if held_out is None:
        return None
    of_rows = [None if part is None else part[held_out.rows] for part in (rows.weights, rows.counts, groups)]
    weights, counts, groups = of_rows
    return HeldOutRows(held_out.outputs, rows.y[held_out.rows], weights, counts=counts, groups=groups)
