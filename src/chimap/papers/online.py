"""The online intersection kernel machine: one table per bin, updated row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops, _threads
from chimap._threads import threads
from chimap._types import CSR, JSON, ArrayLike, ClassWeight, MatrixLike, RandomState, Rows, Shape, Sometimes
from chimap._validation import check_histograms, check_positive, rows_as_fitted, validated
from chimap.data.frames import frame_rows
from chimap.estimators.targets import ClassTargets
from chimap.kernels import intersection
from chimap.model_files import register, saved
from chimap.model_files.restoring import Agreeing
from chimap.moments import rows_by_weight
from chimap.papers.in_memory import CountedRows, Encoding, held_out_in_memory
from chimap.recipe.codecs import Codec
from chimap.recipe.task import HeldOutRows

if TYPE_CHECKING:
    from sklearn.utils import Tags


_MOST_STEPS = 10  # of a pass, for each row


class OnlineIntersectionClassifier(ClassTargets, Encoding, BaseEstimator):
    """One-versus-rest support vector machine with the intersection kernel, learned in one step per row (SIKMA).

    For each class, with y = 1 for the class and -1 otherwise, the machine learns

        minimise over f, b:  sum_n max(0, 1 - y_n (f(x_n) + b)) / N + alpha/2 |f|^2

    over N rows, where |f| is the norm of the kernel K / m and m is the mean K(x, x) of the first rows. The loss is a
    mean and K / m has mean diagonal 1, so alpha depends neither on the number of rows nor on the units of the data. The
    strength beside the sum of the losses on the kernel as it is, 1/C of LIBSVM, is N m alpha.

    A function in the space of the kernel is a sum of functions of single bins, f(x) = sum_i f_i(x_i). Each is kept as a
    table of its values at equally spaced knots from 0 to the largest value of the bin. For each row,

        f <- (1 - eta alpha) f + eta y K(x, .) / m   where y (f(x) + b) < 1,   f <- (1 - eta alpha) f   elsewhere,

    with eta = 1/(alpha (t0 + t)) at step t. These are stochastic subgradients of the objective. A step takes O(bins
    n_knots), whatever the number of rows seen, and a prediction O(bins).

    Parameters
    ----------
    alpha : float, default=0.0001
        Strength of the penalty beside the mean loss, as in scikit-learn's ``SGDClassifier``.
    n_knots : int, default=50
        Number of knots per bin, besides 0.
    max_iter : int, default=10
        Number of passes of ``fit`` over the rows, each in a new random order.
    class_weight : "balanced", dict or None, default=None
        Factors of the row weights by class. See ``HistogramClassifier``.
    weights : {"importance", "frequency"}, default="importance"
        Meaning of ``sample_weight``: how much a row matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    random_state : int, RandomState or None, default=None
        Seed of these orders.
    n_jobs : int or None, default=None
        Number of threads, which share the classes. None and -1 use all cores.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The class labels.
    tables_ : ndarray of shape (t, bins, n_knots + 1)
        Values of the functions at the knots; t is 1 for two classes.
    intercept_ : ndarray of shape (t,)
        Intercepts b.
    ranges_ : ndarray of shape (bins,)
        The last knot of each bin; larger values count as this one.
    feature_importances_ : ndarray of shape (bins,)
        The share of each bin in what the tables say.
    t_ : int
        Number of steps made.
    n_iter_ : int
        Number of passes of ``fit``.

    References
    ----------
    Wang, Hoiem and Forsyth, Learning image similarity from Flickr groups using stochastic intersection kernel machines;
    t0 is L. Bottou's.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OnlineIntersectionClassifier(random_state=0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    """

    file_kind: ClassVar[str] = "estimator"
    save = saved.save
    load = saved.Load()
    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    tables_: Annotated[np.ndarray, Shape("t", "n_features_in_", "knots")]
    intercept_: Annotated[np.ndarray, Shape("t")]
    ranges_: Annotated[np.ndarray, Shape("n_features_in_")]
    t_: int
    n_iter_: Sometimes[int]
    _scale: float
    _codec: Codec

    def __init__(
        self,
        *,
        alpha: float = 1e-4,
        n_knots: int = 50,
        max_iter: int = 10,
        class_weight: ClassWeight = None,
        weights: str = "importance",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ):
        self.alpha = alpha
        self.n_knots = n_knots
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.weights = weights
        self.random_state = random_state
        self.n_jobs = n_jobs

    @saved.whole
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the machine in ``max_iter`` passes over the rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, bins)
            Non-negative rows.
        y : array of shape (n,)
            Labels.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows. A pass makes one step for the lightest row, and for the others as many as their weights
            are larger, at most ten for each row on average; a fraction is rounded up or down at random. With
            ``weights="frequency"`` it makes as many steps as the weight says.

        Returns
        -------
        self
            The fitted estimator.
        """
        all_rows, labels = self._rows(X, y, sample_weight, reset=True)
        self._check_settings()
        counted = self._counted(all_rows, labels, sample_weight)
        rows, labels, weights, counts = counted
        self._learn_targets(labels)
        self._step_weight = _step_weight(weights, counts)
        steps = _steps_of(weights, rows.shape[0], self._step_weight)
        self._start(rows, steps)
        random = check_random_state(self.random_state)
        for _ in range(self.max_iter):
            self._steps(_arrays.to_sparse(rows), labels, steps[random.permutation(steps.size)])
        self.n_iter_ = self.max_iter
        self._take_held_out(self._held_out(counted))
        return self

    def _held_out(self, counted: CountedRows) -> HeldOutRows | None:
        """Return outputs for a fifth of the rows, from a machine that learns from the others in as many passes."""
        rows, y, weights, _ = counted

        def outputs(learning: np.ndarray, testing: np.ndarray) -> np.ndarray:
            machine = clone(self)
            machine._learn_targets(self.classes_)
            machine.n_features_in_ = self.n_features_in_
            machine._step_weight = self._step_weight
            learning_weights = None if weights is None else weights[learning]
            steps = learning[_steps_of(learning_weights, learning.size, self._step_weight)]
            machine._start(rows, steps)
            random = check_random_state(0)
            for _ in range(self.max_iter):
                machine._steps(_arrays.to_sparse(rows), y, random.permutation(steps))
            return machine._outputs(_arrays.take_rows(rows, testing))

        return held_out_in_memory(counted, self._codec, outputs)

    @saved.whole
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Make one step for each row of X, in order; the first call fixes the ranges of the bins.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, bins)
            Non-negative rows of the batch.
        y : array of shape (n,)
            Labels.
        classes : array of shape (classes,) or None, default=None
            All classes, at the first call; None takes those of its y.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows; see ``fit``.

        Returns
        -------
        self
            The estimator.
        """
        is_first = not hasattr(self, "tables_")
        all_rows, labels = self._rows(X, y, sample_weight, reset=is_first)
        if is_first:
            self._check_settings()
            self._learn_targets(labels if classes is None else classes)
        counted = self._counted(all_rows, labels, sample_weight, is_batch=True)
        rows, labels, weights, counts = counted
        if is_first:
            self._step_weight = _step_weight(weights, counts)
        steps = _steps_of(weights, rows.shape[0], self._step_weight)
        if is_first:
            self._start(rows, steps)
            self._take_held_out(None)
        else:
            self._encode(labels)  # raises for an unknown label before anything is learned from it
            # while the rows are unseen
            self._take_held_out(HeldOutRows(self._outputs(rows), labels, weights, counts=counts))
        self._steps(_arrays.to_sparse(rows), labels, steps)
        return self

    def _rows(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[CSR, np.ndarray]:
        table, y = frame_rows(X, y, sample_weight=sample_weight)
        X, labels = validated(self, table, y, reset=reset)
        rows = _arrays.as_rows(X)
        check_histograms(rows)
        return _arrays.to_sparse(rows), labels

    def _check_settings(self) -> None:
        check_positive(self.alpha, "alpha")
        check_positive(self.n_knots, "n_knots", integer=True)
        check_positive(self.max_iter, "max_iter", integer=True)

    def _start(self, rows: Rows, steps: np.ndarray) -> None:
        step_rows = _arrays.take_rows(rows, np.unique(steps))
        self.ranges_ = _arrays.column_maxima(step_rows)
        self._scale = float(intersection.diagonal(rows)[steps].mean(dtype=np.float64)) or 1.0
        self.tables_ = np.zeros((self._n_targets, rows.shape[1], self.n_knots + 1))
        self.intercept_ = np.zeros(self._n_targets)
        self.t_ = 0

    def _steps(self, rows: CSR, y: np.ndarray, order: np.ndarray) -> None:
        signs = np.ascontiguousarray(np.asarray(self._encode(y)).T)
        # The first step is about as long as a typical weight, as in Bottou's stochastic gradient descent tricks.
        first = self.t_ + self.alpha**-0.75
        with threads(self.n_jobs):
            _threads.over_rows(
                self._n_targets,
                rows.nnz,
                lambda part: _loops.intersection_steps(
                    rows.data,
                    rows.indices,
                    rows.indptr,
                    order,
                    signs[part],
                    self._rates(),
                    self._scale,
                    float(self.alpha),
                    first,
                    self.tables_[part],
                    self.intercept_[part],
                ),
            )
        self.t_ += order.size

    def _rates(self) -> np.ndarray:
        """Return the number of knots per unit of x, (bins,); 0 for bins whose values are all 0."""
        n_knots = self.tables_.shape[2] - 1
        return np.divide(n_knots, self.ranges_, out=np.zeros_like(self.ranges_), where=self.ranges_ > 0)

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        """Return f(x) for rows X, (n, t) float64."""
        check_is_fitted(self)
        X = rows_as_fitted(self, X)
        rows = _arrays.as_rows(X)
        check_histograms(rows)
        sparse, out = _arrays.to_sparse(rows), np.empty((rows.shape[0], self._n_targets))
        with threads(self.n_jobs):
            _threads.over_rows(
                out.shape[0],
                max(1, sparse.nnz * self._n_targets // max(1, out.shape[0])),
                lambda part: _loops.table_scores(
                    sparse.data,
                    sparse.indices,
                    sparse.indptr[part.start : part.stop + 1],
                    self._rates(),
                    self.tables_,
                    out[part],
                ),
            )
        return out + self.intercept_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _step_weight(weights: np.ndarray | None, counts: np.ndarray | None) -> float:
    """Return the weight of a step, so that the lightest row has one, and a pass at most ``_MOST_STEPS`` for each row.

    Numbers of equal rows have a step each.
    """
    if weights is None or counts is not None:
        return 1.0
    return max(float(weights.min()), float(weights.mean()) / _MOST_STEPS)


def _steps_of(weights: np.ndarray | None, n_rows: int, step_weight: float) -> np.ndarray:
    """Return the rows of the steps of a pass, ascending; each row occurs as often as its weight says."""
    if weights is None:
        return np.arange(n_rows)
    return rows_by_weight(weights, max(1, round(float(weights.sum()) / step_weight)), 0)


def _agreeing(state: JSON, sizes: dict[str, int]) -> Agreeing:
    return [
        ("whether a bin has two knots or more", sizes["knots"] >= 2, True),
        ("targets", state["_codec"].n_targets, sizes["t"]),
    ]


register(OnlineIntersectionClassifier, agreeing=_agreeing)
