"""The user's score of held-out predictions: accuracy, R^2, areas under ROC curves, or any scorer of scikit-learn.

A codec makes the ``OutputScore`` of its labels. Races, rules that leave rows out and learning curves call it with
linear outputs. ``SortedOutputs`` gives the areas under ROC curves of many columns, or without each of many parts of the
rows, from one sort: ``sklearn.metrics.roc_auc_score`` gives the same, but takes 6 ms to check its input, and a race on
a dozen tasks computes 8000 areas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from chimap._messages import Message
from chimap._types import Scoring
from chimap._validation import DataError
from chimap.data.label_kinds import places_among
from chimap.losses import Loss
from chimap.moments import of_entries
from chimap.selection.jackknife import deviations_of, scores_without, standard_error


def area_under_curve(is_second: np.ndarray, outputs: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the area under the ROC curve; NaN if there is only one class.

    It is the share, by weight, of pairs of a row of the second class and one of the first in which the former has the
    larger output. Pairs with equal outputs count half.


    >>> area_under_curve(np.array([False, True, False, True]), np.array([0.1, 0.4, 0.4, 0.8]))
    0.875
    """
    w = np.ones(outputs.size) if weights is None else np.asarray(weights, dtype=np.float64)
    return float(SortedOutputs.of(is_second[:, None], outputs[:, None]).areas(w[:, None])[0])


@dataclass(frozen=True)
class SortedOutputs:
    """Columns of outputs in ascending order, whose ``areas`` can then be computed for any weights.

    ``order`` (t, n) has the rows of each column and ``is_second`` (t, n) their classes. ``ends`` are the ends of runs
    of equal outputs, in columns laid end to end, and ``starts`` (t,) the first run of each column. A row of weight 0
    may stand anywhere.
    """

    order: np.ndarray
    is_second: np.ndarray
    ends: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, is_second: np.ndarray, outputs: np.ndarray) -> SortedOutputs:
        """Sort outputs (n, t), of which ``is_second`` (n, t) says whether rows are of the second class."""
        order = np.argsort(outputs.T, axis=1)
        values = np.take_along_axis(outputs.T, order, axis=1)
        is_end = np.ones(values.shape, dtype=bool)
        np.not_equal(values[:, 1:], values[:, :-1], out=is_end[:, :-1])
        ends = np.flatnonzero(is_end)
        starts = np.searchsorted(ends, np.arange(values.shape[0]) * values.shape[1])
        return cls(order, np.take_along_axis(is_second.T, order, axis=1), ends, starts)

    def areas(self, weights: np.ndarray) -> np.ndarray:
        """Return the area (t,) of each column, with weights (n, t) of the rows; NaN where one class has no weight."""
        if not self.order.size:
            return np.full(self.order.shape[0], np.nan)
        w = np.take_along_axis(weights.T, self.order, axis=1)
        second_in, first_in = (
            np.diff(np.cumsum(of_class)[self.ends], prepend=0.0)
            for of_class in (w * self.is_second, w * ~self.is_second)
        )
        seconds, firsts = (np.add.reduceat(within, self.starts) for within in (second_in, first_in))
        # Weight of the first class in earlier columns: subtracted, so that a run only counts rows below it in its
        # column.
        before = np.repeat(np.cumsum(firsts) - firsts, np.diff(self.starts, append=self.ends.size))
        first = np.cumsum(first_in) - before
        won = np.add.reduceat(second_in * (first - first_in / 2), self.starts)
        pairs = firsts * seconds
        return np.divide(won, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)


OF_POSITIVE = ("f1", "precision", "recall", "jaccard", "average_precision")
"""Scorers of scikit-learn that look at the positive one of two classes, and not at both alike."""

_TEMPERATURES = (-3.0, 3.0)  # range of the search for a factor of the outputs, in decades


class OutputScore(ABC):
    """A score, greater is better, of linear outputs (n, t) for the rows at some places."""

    sample_weight: np.ndarray | None

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the score in tables."""

    @abstractmethod
    def __call__(self, outputs: np.ndarray, rows: slice | np.ndarray = slice(None)) -> float:
        """Return the score of the outputs of ``rows``; NaN if it is not defined for them."""

    def without_each(self, outputs: np.ndarray, rows: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Return the scores (k,) without the rows of each part; ``parts`` (n,) has the part of each row, from 0."""
        return scores_without(lambda kept: self(outputs[kept], rows[kept]), parts)

    def gain_and_error(
        self, before: np.ndarray, after: np.ndarray, rows: np.ndarray, parts: np.ndarray
    ) -> tuple[float, float]:
        """Return how much more outputs (n, t) score than those before them, for the same rows, and its standard error.

        ``rows`` and ``parts`` are those of ``without_each``. The error is NaN where the score is not defined without
        some part.
        """
        deviations = [deviations_of(self.without_each(outputs, rows, parts)) for outputs in (before, after)]
        return self(after, rows) - self(before, rows), standard_error(np.subtract(*deviations))


@dataclass(frozen=True)
class HeldOutScore(OutputScore):
    """A score, greater is better, of linear outputs (n, t) for held-out rows.

    Parameters
    ----------
    y : array of shape (n,)
        Labels or targets of all rows.
    classes : array of shape (k,) or None
        The classes; None for regression.
    scoring : None, str or callable, default=None
        None for accuracy or R^2; else the name of a scorer of scikit-learn, or a scorer that is called as
        ``scorer(model, rows, y)``. Scorers of probabilities get ``probabilities`` at the best temperature.
    sample_weight : array of shape (n,) or None, default=None
        Weights of all rows.
    positive : int or None, default=None
        Place of the positive one of two classes, for scorers such as "f1"; None is the second.

    Examples
    --------
    >>> score = HeldOutScore(np.array([0, 1, 1]), np.array([0, 1]), "roc_auc")
    >>> score(np.array([[-1.0], [0.5], [2.0]]))
    1.0
    """

    y: np.ndarray
    classes: np.ndarray | None
    scoring: Scoring = None
    sample_weight: np.ndarray | None = None
    positive: int | None = None

    @property
    def name(self) -> str:
        """Name of the score in tables; that of a scorer of the positive class names the class."""
        if self.scoring is None:
            return "r2" if self.classes is None else "accuracy"
        two = self._two_classes
        if two is not None and self.scoring in OF_POSITIVE:
            return f"{self.scoring} of {two[self._positive]}"
        return _scorer_name(self.scoring)

    def __call__(self, outputs: np.ndarray, rows: slice | np.ndarray = slice(None)) -> float:
        """Return the score of the outputs of some rows; NaN if it is not defined for them (the AUC of one class)."""
        y, weight = self.y[rows], None if self.sample_weight is None else self.sample_weight[rows]
        if self.scoring is None and self.classes is not None:
            return float(np.average(labels_of(outputs, self.classes) == y, weights=weight))
        if self.scoring is None:
            return r_squared(y.reshape(outputs.shape), outputs, weight)
        if self.scoring == "roc_auc" and self.classes is not None and self.classes.size == 2:
            return area_under_curve(y == self.classes[1], outputs[:, 0], weight)
        classes = self.classes
        if (two := self._two_classes) is not None:  # scorers know the positive class by the label 1
            y, classes = (y == two[self._positive]).astype(np.intp), np.array([0, 1])
            outputs = outputs if self._positive == 1 else -outputs
        model = _Regressor() if classes is None else _Classifier(classes, y)
        return scored(self.scoring, model, outputs, y, weight)

    @property
    def _positive(self) -> int:
        return 1 if self.positive is None else self.positive

    @property
    def _two_classes(self) -> np.ndarray | None:
        """The two classes whose score is one of scikit-learn by name; None for other classes or scores."""
        has_two = isinstance(self.scoring, str) and self.classes is not None and self.classes.size == 2
        return self.classes if has_two else None


@dataclass(frozen=True)
class LossScore(OutputScore):
    """The share of a loss that predictions explain, or a scorer of predictions, for losses with a score of their own.

    D^2 = 1 - deviance of the predictions / deviance of the best constant, averaged over targets; 1 is perfect.

    Parameters
    ----------
    y : array of shape (n,) or (n, t)
        Targets of all rows; NaN where one of several is missing.
    loss : Loss
        Says how scores become predictions, and what these are off by.
    scoring : None, str or callable, default=None
        None for D^2; else as in ``HeldOutScore``, with predictions in place of outputs.
    sample_weight : array of shape (n,) or None, default=None
        Weights of all rows.

    Examples
    --------
    >>> from chimap.losses import Poisson
    >>> y = np.array([1.0, 2.0, 6.0])
    >>> score = LossScore(y, Poisson())
    >>> score(np.log(y)[:, None]), abs(round(score(np.full((3, 1), np.log(3.0))), 9))
    (1.0, 0.0)
    """

    y: np.ndarray
    loss: Loss
    scoring: Scoring = None
    sample_weight: np.ndarray | None = None

    @property
    def name(self) -> str:
        if self.scoring is None:
            return self.loss.score_name
        return _scorer_name(self.scoring)

    def __call__(self, outputs: np.ndarray, rows: slice | np.ndarray = slice(None)) -> float:
        y, weight = self.y[rows], None if self.sample_weight is None else self.sample_weight[rows]
        predicted = self.loss.predicted(outputs)
        if self.scoring is None:
            return explained(self.loss, y, predicted, weight)
        return scored(self.scoring, _Regressor(), predicted, y, weight)


def explained(loss: Loss, targets: np.ndarray, predictions: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return 1 - deviance of predictions (n, s t) / that of the best constants, averaged over scores and targets.

    ``targets`` are (n,) or (n, t), NaN where one is missing; predictions are those of the t targets for each of the s
    scores of the loss. A target whose constant is perfect has 1 if it is met, and else 0. NaN for fewer than two rows.
    """
    Y = np.asarray(targets, dtype=np.float64).reshape(len(targets), -1)
    weights = np.ones(len(Y)) if weights is None else weights
    shares = []
    for target, y in enumerate(Y.T):
        seen = ~np.isnan(y)
        if seen.sum() < 2:
            continue
        entry_weights = (weights if weights.ndim == 1 else weights[:, target])[seen]
        given = predictions[seen, target :: Y.shape[1]]
        constants = np.broadcast_to(loss.constant(y[seen], entry_weights), given.shape)
        missed, most = (entry_weights @ loss.deviance(y[seen, None], p) for p in (given, constants))
        shares.extend(np.where(most > 0, 1 - missed / np.where(most > 0, most, 1), missed == 0).tolist())
    return float(np.mean(shares)) if shares else float("nan")


@dataclass(frozen=True)
class MeanScore(OutputScore):
    """The mean score of several tasks, from the entries that are not missing.

    Parameters
    ----------
    Y : array of shape (n, t)
        Labels 0 and 1, or targets; NaN where an entry is missing.
    classes : array [0, 1] or None
        The classes; None for regression.
    scoring : None, str or callable, default=None
        See ``HeldOutScore``.
    sample_weight : array of shape (n,) or (n, t), or None, default=None
        Weights of the rows, or of the entries.

    Examples
    --------
    >>> score = MeanScore(np.array([[0, 1], [1, np.nan], [1, 0]]), np.array([0, 1]))
    >>> score(np.array([[-1.0, 0.5], [0.5, 3.0], [-2.0, -1.0]]))
    0.8333333333333333
    """

    Y: np.ndarray
    classes: np.ndarray | None
    scoring: Scoring = None
    sample_weight: np.ndarray | None = None

    @property
    def name(self) -> str:
        return f"mean {HeldOutScore(self.Y, self.classes, self.scoring).name}"

    def each(self, outputs: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the scores of the tasks (t,); NaN where the score is not defined for the rows."""
        Y, columns = self.Y[rows], self._weights(rows)
        if self._is_area:
            return SortedOutputs.of(Y == 1, outputs).areas(self._seen(outputs, rows))
        scores = np.full(Y.shape[1], np.nan)
        for task, y in enumerate(Y.T):
            labelled = np.flatnonzero(np.isfinite(outputs[:, task]) & ~np.isnan(y))
            if labelled.size < 2 or (self.scoring is not None and y[labelled].min() == y[labelled].max()):
                continue
            labels = y[labelled] if self.classes is None else y[labelled].astype(np.intp)
            task_weights = None if columns is None else columns[labelled, task]
            scores[task] = HeldOutScore(labels, self.classes, self.scoring, task_weights)(
                outputs[labelled, task : task + 1]
            )
        return scores

    def __call__(self, outputs: np.ndarray, rows: slice | np.ndarray = slice(None)) -> float:
        return _mean(self.each(outputs, rows))

    def without_each(self, outputs: np.ndarray, rows: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """See ``OutputScore``; areas under curves take one sort for all parts."""
        if not self._is_area:
            return super().without_each(outputs, rows, parts)
        curves, entry_weights = SortedOutputs.of(self.Y[rows] == 1, outputs), self._seen(outputs, rows)
        return np.array(
            [_mean(curves.areas(entry_weights * (parts != part)[:, None])) for part in range(int(parts.max()) + 1)]
        )

    @property
    def _is_area(self) -> bool:
        """Whether the score is the area under the ROC curve."""
        return self.scoring == "roc_auc" and self.classes is not None

    def _weights(self, rows: slice | np.ndarray) -> np.ndarray | None:
        """Return the weights of the entries of some rows."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return None if weights is None else np.broadcast_to(of_entries(weights), self.Y[rows].shape)

    def _seen(self, outputs: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Return the weights of the entries of some rows; 0 where a label or an output is missing."""
        weights = self._weights(rows)
        is_seen = np.isfinite(outputs) & ~np.isnan(self.Y[rows])
        return np.where(is_seen, 1.0 if weights is None else weights, 0.0)


def _scorer_name(scoring: Scoring) -> str:
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")


def _mean(scores: np.ndarray) -> float:
    """Return the mean of the scores that are defined; NaN if none is."""
    defined = np.isfinite(scores)
    return float(scores[defined].mean()) if defined.any() else float("nan")


def r_squared(targets: np.ndarray, outputs: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return R^2 of outputs (m, t), averaged over targets; a constant target has 1 if it is met, and else 0.

    It is NaN for fewer than two rows. ``sklearn.metrics.r2_score`` gives the same, but the checks of its input take
    longer than all else in a race on few rows.
    """
    if len(targets) < 2:
        return float("nan")
    w = np.ones(len(targets)) if weights is None else weights
    targets = np.asarray(targets, np.float64)
    missed = w @ np.square(targets - outputs)
    spread = w @ np.square(targets - w @ targets / w.sum())
    explained = 1 - missed / np.where(spread > 0, spread, 1)
    return float(np.where(spread > 0, explained, missed == 0).mean())


def scored(
    scoring: Scoring, model: BaseEstimator, outputs: np.ndarray, y: np.ndarray, weights: np.ndarray | None
) -> float:
    """Return the result of a scorer; raise DataError, with its name, for any exception of a user's scorer."""
    from sklearn.metrics import check_scoring

    scorer, more = check_scoring(model, scoring), {} if weights is None else {"sample_weight": weights}
    try:
        return float(scorer(model, outputs, y, **more))
    except Exception as error:
        raise DataError(Message("{scoring=} raised {}: {}", scoring, type(error).__name__, error)) from error


def labels_of(outputs: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class of the largest output (n, t); for a single output, the second class where it is positive."""
    if outputs.shape[1] == 1:
        return np.asarray(classes[(outputs[:, 0] > 0).astype(np.intp)])
    return np.asarray(classes[np.argmax(outputs, axis=1)])


def probabilities(outputs: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Return probabilities (n, classes): a softmax of outputs / temperature, or the logistic function of one output."""
    if outputs.shape[1] == 1:
        second = expit(outputs[:, 0] / temperature)
        return np.column_stack([1 - second, second])
    return np.asarray(softmax(outputs / temperature, axis=1))


def best_temperature(outputs: np.ndarray, place: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the temperature of least log-loss of ``probabilities`` of held-out outputs (n, t).

    ``place`` (n,) has the index of the class of each row, ``weights`` (n,) those of the rows.
    """
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(outputs.shape[0]), outputs[:, 0]])
    rows = np.arange(outputs.shape[0])

    def loss(decades: float) -> float:
        return -float(np.average(log_softmax(outputs * 10**decades, axis=1)[rows, place], weights=weights))

    end = minimize_scalar(loss, bounds=_TEMPERATURES, method="bounded")
    return float(10**-end.x)


def probability_errors(outputs: np.ndarray, place: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return ``probabilities`` (n, classes) of held-out outputs at the best temperature, less 1 for the class of a row.

    Their squares add up to the score of Brier, Verification of forecasts expressed in terms of probability (1950).
    ``place`` (n,) has the index of the class of each row, ``weights`` (n,) those of the rows.
    """
    errors = probabilities(outputs, best_temperature(outputs, place, weights))
    errors[np.arange(place.size), place] -= 1
    return errors


class _Regressor(RegressorMixin, BaseEstimator):
    """A model for scorers whose rows are the outputs themselves."""

    def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> _Regressor:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs


class _Classifier(ClassifierMixin, BaseEstimator):
    """A model for scorers whose rows are the outputs themselves."""

    def __init__(self, classes: Any = None, y: Any = None):
        self.classes, self.y = classes, y
        self.classes_ = classes

    def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> _Classifier:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        return labels_of(outputs, self.classes_)

    def decision_function(self, outputs: np.ndarray) -> np.ndarray:
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict_proba(self, outputs: np.ndarray) -> np.ndarray:
        place = places_among(self.y, self.classes_)
        return probabilities(outputs, best_temperature(outputs, place))
