"""The online intersection kernel machine: tables of bins, updated row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap import _arrays, _loops, _threads
from chimap._threads import threads
from chimap._types import CSR, ArrayLike, ClassWeight, MatrixLike, RandomState, Rows
from chimap._validation import check_histograms, check_positive, rows_as_fitted
from chimap.data.formats.frames import frame_rows
from chimap.estimators.class_targets import ClassTargets
from chimap.fit.result import HeldOutRows
from chimap.kernels import intersection
from chimap.moments import fold_of_rows, rows_by_weight
from chimap.selection.base import USUAL_FOLDS

if TYPE_CHECKING:
    from sklearn.utils import Tags


_FEWEST_ROWS = 10  # that some are held out of


class OnlineIntersectionClassifier(ClassTargets, BaseEstimator):
    """One-versus-all support vector machine of the intersection kernel, learned by one step a row (SIKMA).

    A function in the kernel's space is a sum of functions of single bins, f(x) = sum_i f_i(x_i) + b, each kept as a
    table of its values at equally spaced knots from 0 to the largest value of the bin. For each row, with y = +-1,

        f <- (1 - eta alpha) f + eta y K(x, .)   where y f(x) < 1,   f <- (1 - eta alpha) f   elsewhere,

    eta = 1/(alpha (t0 + t)) at step t: stochastic subgradients of alpha/2 |f|^2 + mean hinge loss. A step takes
    O(bins n_knots), whatever the number of rows seen, and prediction O(bins). The kernel is divided by the mean K(x, x)
    of the first rows, so that alpha does not depend on the units of the data.

    Parameters
    ----------
    alpha : strength of the ridge against the mean loss, as in scikit-learn's ``SGDClassifier``.
    n_knots : knots a bin beyond 0.
    max_iter : passes of ``fit`` over the rows, each in a new random order.
    class_weight : None, "balanced", or a dictionary of labels and weights, as in ``HistogramClassifier``.
    random_state : int, RandomState or None, for these orders.
    n_jobs : threads, which share out the classes; None and -1 are all cores.

    Learned: ``classes_``, ``tables_`` (t, bins, n_knots + 1), ``intercept_`` (t,), ``ranges_`` (bins,), the last knots:
    larger values count as these; ``t_``, steps made; ``n_iter_``, passes of ``fit``.

    Source: Wang, Hoiem and Forsyth, Learning image similarity from Flickr groups using stochastic intersection kernel
    machines; t0 is L. Bottou's.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OnlineIntersectionClassifier(random_state=0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        alpha: float = 1e-4,
        n_knots: int = 50,
        max_iter: int = 10,
        class_weight: ClassWeight = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ):
        self.alpha = alpha
        self.n_knots = n_knots
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on rows X (n, bins), dense or sparse, non-negative, in ``max_iter`` passes; returns self.

        sample_weight (n,): a pass has a step a unit of weight, those of a row of weight 2 being two; what is left over
        is rounded up or down at random.
        """
        given, labels = self._rows(X, y, reset=True)
        self._check_settings()
        rows, labels, weights = self._counted(given, labels, sample_weight)
        self._learn_targets(labels)
        steps = _steps_of(weights, rows.shape[0])
        self._start(rows, steps)
        random = check_random_state(self.random_state)
        for _ in range(self.max_iter):
            self._steps(_arrays.to_sparse(rows), labels, steps[random.permutation(steps.size)])
        self.n_iter_ = self.max_iter
        self._take_held_out(self._held_out(rows, labels, weights))
        return self

    def _held_out(self, rows: Rows, y: np.ndarray, weights: np.ndarray | None) -> HeldOutRows | None:
        """Outputs of a fifth of the rows by a machine of the others, of as many passes."""
        if len(y) < _FEWEST_ROWS:
            return None
        held = fold_of_rows(0, len(y), USUAL_FOLDS, 0) == 0
        learning, rest = np.flatnonzero(~held), np.flatnonzero(held)
        other = clone(self)
        other._learn_targets(self.classes_)
        other.n_features_in_ = self.n_features_in_
        steps = learning[_steps_of(None if weights is None else weights[learning], learning.size)]
        other._start(rows, steps)
        random = check_random_state(0)
        for _ in range(self.max_iter):
            other._steps(_arrays.to_sparse(rows), y, random.permutation(steps))
        own = None if weights is None else weights[rest]
        return HeldOutRows(other._outputs(_arrays.take_rows(rows, rest)), y[rest], own)

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One step for each row of X, in order; the first call takes all ``classes``, and ranges from its rows."""
        is_first = not hasattr(self, "tables_")
        given, labels = self._rows(X, y, reset=is_first)
        if is_first:
            self._check_settings()
            self._learn_targets(labels if classes is None else classes)
        rows, labels, weights = self._counted(given, labels, sample_weight, is_batch=True)
        steps = _steps_of(weights, rows.shape[0])
        if is_first:
            self._start(rows, steps)
            self._take_held_out(None)
        else:
            self._encode(labels)  # refuses an unknown label before anything is learned from it
            self._take_held_out(HeldOutRows(self._outputs(rows), labels, weights))  # before it has seen them
        self._steps(_arrays.to_sparse(rows), labels, steps)
        return self

    def _rows(self, X: MatrixLike, y: ArrayLike, *, reset: bool) -> tuple[CSR, np.ndarray]:
        given, y = frame_rows(X, y)
        X, labels = validate_data(
            self, given, y, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
        )
        rows = _arrays.as_rows(X)
        check_histograms(rows)
        return _arrays.to_sparse(rows), labels

    def _check_settings(self) -> None:
        check_positive(self.alpha, "alpha")
        check_positive(self.n_knots, "n_knots", integer=True)
        check_positive(self.max_iter, "max_iter", integer=True)

    def _start(self, rows: Rows, steps: np.ndarray) -> None:
        own = _arrays.take_rows(rows, np.unique(steps))
        self.ranges_ = _arrays.column_maxima(own)
        self._scale = float(intersection.diagonal(rows)[steps].mean(dtype=np.float64)) or 1.0
        self.tables_ = np.zeros((self._n_targets, rows.shape[1], self.n_knots + 1))
        self.intercept_ = np.zeros(self._n_targets)
        self.t_ = 0

    def _steps(self, rows: CSR, y: np.ndarray, order: np.ndarray) -> None:
        signs = np.ascontiguousarray(np.asarray(self._encode(y)).T)
        # the first step is about as long as a typical weight, as in Bottou's stochastic gradient descent tricks
        first = self.t_ + self.alpha**-0.75
        with threads(self.n_jobs):
            _threads.over_rows(
                self._n_targets,
                rows.nnz,
                lambda part: _loops.intersection_steps(
                    rows.data, rows.indices, rows.indptr, order, signs[part], self._rates(), self._scale,
                    float(self.alpha), first, self.tables_[part], self.intercept_[part],
                ),
            )  # fmt: skip
        self.t_ += order.size

    def _rates(self) -> np.ndarray:
        """Knots a unit of x, (bins,); 0 for bins whose values are all 0."""
        return np.divide(self.n_knots, self.ranges_, out=np.zeros_like(self.ranges_), where=self.ranges_ > 0)

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        """f(x) of rows X, (n, t) float64."""
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
                    sparse.data, sparse.indices, sparse.indptr[part.start : part.stop + 1], self._rates(),
                    self.tables_, out[part],
                ),
            )  # fmt: skip
        return out + self.intercept_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _steps_of(weights: np.ndarray | None, n_rows: int) -> np.ndarray:
    """Places of the rows of the steps of a pass, ascending: each row as often as its weight says, or, of weights that
    average less than one, in their proportion."""
    if weights is None:
        return np.arange(n_rows)
    return rows_by_weight(weights, max(n_rows, round(float(weights.sum()))), 0)
