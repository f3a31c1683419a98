"""The score that a fit was asked for, of answers to known rows: its value, its interval and the score of guesses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.special import stdtrit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import balanced_accuracy_score

from chimap._formatting import is_error, is_proportion
from chimap._types import Scoring
from chimap._validation import DataError
from chimap.data.label_kinds import places_among
from chimap.losses import Loss, Square
from chimap.models.answers import ClassAnswers
from chimap.reports.measures import LeadingScore
from chimap.selection.jackknife import (
    deviations_of,
    independent_rows,
    parts_of_rows,
    score_interval,
    scores_without,
    standard_error,
)
from chimap.selection.scoring import OF_POSITIVE, LossScore, area_under_curve, explained, r_squared, scored
from chimap.selection.structures import Nominal, RelatedClasses, Structure

if TYPE_CHECKING:
    from chimap.models.predictor import Predictor


class KnownRows(ABC):
    """Answers to rows that are known, which are scored by name."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def name(self, scoring: Scoring) -> str:
        """Return the name of a score in tables; that of the positive one of two classes names it."""

    @abstractmethod
    def guesses(self) -> Iterator[KnownRows]:
        """Yield answers that look at no column: one class or number for all rows, with the shares of the classes."""

    def score(self, scoring: Scoring, rows: np.ndarray) -> float:
        """Return a score, greater is better, of the rows at some places; NaN where it is not defined.

        Parameters
        ----------
        scoring : str, callable or None
            Name of a scorer of scikit-learn, or of the structure of the classes; or a scorer. None explains the loss.
        rows : ndarray of int
            The places.
        """
        with catch_warnings():
            simplefilter("ignore")  # of scores that are 0 by convention
            try:
                return self._score(scoring, rows)
            except DataError:  # of a scorer that refuses the rows, as those of probabilities do that lack a class
                return float("nan")

    @abstractmethod
    def _score(self, scoring: Scoring, rows: np.ndarray) -> float:
        """See ``score``; raise DataError if the scorer raises."""


@dataclass(frozen=True, eq=False)
class Answered(KnownRows):
    """Answers to rows whose labels or targets are known.

    Parameters
    ----------
    y : ndarray of shape (n,)
        The targets, or the places of the labels among the classes.
    predicted : ndarray of shape (n,)
        The same as predicted.
    classes : ndarray of shape (k,) or None, default=None
        The classes, of two the positive one last; None for numbers.
    scores : ndarray of shape (n,) or (n, k), or None, default=None
        Their linear outputs; of two classes that of the last. None if there are too many to keep.
    probabilities : callable or None, default=None
        Returns the probabilities (m, k) of m rows, given their places.
    structure : Structure, default=Nominal()
        How the classes are related.
    loss : Loss, default=Square()
        Of numbers, what they are off by where no scoring is named: the score is then the share that is explained.
    """

    y: np.ndarray
    predicted: np.ndarray
    classes: np.ndarray | None = None
    scores: np.ndarray | None = None
    probabilities: Callable[[np.ndarray], np.ndarray] | None = None
    structure: Structure = field(default_factory=Nominal)
    loss: Loss = field(default_factory=Square)

    @classmethod
    def of(cls, model: Predictor, y: np.ndarray, predicted: np.ndarray, outputs: np.ndarray | None) -> Answered:
        """Return the predictions of a model, with its linear outputs (n, t) for classes."""
        answers = model.answers
        if answers.classes is None:
            return cls(y, predicted)
        is_flipped = model.positive is not None and answers.classes[0] == model.positive
        classes, scores = answers.classes[::-1] if is_flipped else answers.classes, outputs
        if outputs is not None and outputs.shape[1] == 1:
            scores = -outputs[:, 0] if is_flipped else outputs[:, 0]

        def probabilities(rows: np.ndarray) -> np.ndarray:
            assert isinstance(answers, ClassAnswers)
            p = np.exp(answers.log_probabilities(_known(outputs)[rows]))
            return p[:, ::-1] if is_flipped else p

        truth, given = places_among(y, classes), places_among(predicted, classes)
        return cls(truth, given, classes, scores, probabilities, answers.structure)

    @property
    def n_rows(self) -> int:
        return int(self.y.size)

    def name(self, scoring: Scoring) -> str:
        """See ``KnownRows``."""
        if scoring is None:
            return self.loss.score_name
        name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
        return f"{name} of {self.classes[1]}" if self.classes is not None and scoring in OF_POSITIVE else name

    def _score(self, scoring: Scoring, rows: np.ndarray) -> float:
        y, predicted = self.y[rows], self.predicted[rows]
        if self.classes is None:
            if scoring is None:
                return explained(self.loss, y, predicted[:, None])
            if scoring == "r2":
                return r_squared(y[:, None], predicted[:, None])
            return LossScore(y, Square(), scoring)(predicted[:, None])
        k = self.classes.size
        if scoring in self.structure.scorers and isinstance(self.structure, RelatedClasses):
            return self.structure.scored(str(scoring), np.bincount(k * y + predicted, minlength=k * k).reshape(k, k))
        if scoring == "accuracy":
            return float(np.mean(y == predicted))
        if scoring == "balanced_accuracy":
            return float(balanced_accuracy_score(y, predicted))
        if scoring == "roc_auc" and k == 2 and self.scores is not None:
            return area_under_curve(y == 1, self.scores[rows])
        labels = np.arange(k) if isinstance(scoring, str) else self.classes
        return scored(scoring, _Answers(self, labels), rows, labels[y], None)

    def guesses(self) -> Iterator[Answered]:
        """See ``KnownRows``: the most frequent class, the middle and the positive one, or constants."""
        if self.classes is None:
            best = np.ravel(self.loss.constant(self.y, np.ones(self.n_rows)))[0]
            for constant in (best, np.mean(self.y), np.median(self.y)):
                yield replace(self, predicted=np.full(self.n_rows, float(constant)))
            return
        counts = np.bincount(self.y, minlength=self.classes.size)
        shares = counts / self.n_rows
        places = {int(np.argmax(counts)), *([1] if counts.size == 2 else [])}
        if isinstance(self.structure, RelatedClasses):
            places.add(int(self.structure.best(shares[None])[0]))
        scores = None if self.scores is None else np.zeros_like(self.scores)
        for place in sorted(places):
            predicted = np.full(self.n_rows, place)
            yield replace(self, predicted=predicted, scores=scores, probabilities=partial(_the_same, shares))


@dataclass(frozen=True, eq=False)
class AnsweredTasks(KnownRows):
    """Answers to several tasks or targets, of which rows may lack some; a score is the mean of those defined.

    Parameters
    ----------
    tasks : sequence of Answered
        The answers to the rows that a task has a label for.
    seen : ndarray of bool of shape (n, t)
        Which rows these are.
    """

    tasks: Sequence[Answered]
    seen: np.ndarray

    @classmethod
    def of(cls, model: Predictor, Y: np.ndarray, outputs: np.ndarray) -> AnsweredTasks:
        """Return the answers of a model by its linear outputs (n, t) for labels 0 and 1 or targets (n, t)."""
        seen, answers = ~np.isnan(Y), model.answers
        if answers.classes is None:
            predicted = np.asarray(answers.predicted(outputs)).reshape(Y.shape)
            return cls([Answered(y, given) for y, given in _of_each(seen, Y, predicted)], seen)
        assert isinstance(answers, ClassAnswers)
        labels, logs = np.asarray(answers.predicted(outputs)), answers.log_probabilities

        def of_task(task: int, places: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            return lambda rows: np.exp(logs(outputs[places[rows]])[:, task])

        each = zip(_of_each(seen, Y, labels, outputs), seen.T, strict=True)
        tasks = [
            Answered(y.astype(np.intp), given, np.arange(2), f, of_task(task, np.flatnonzero(rows)))
            for task, ((y, given, f), rows) in enumerate(each)
        ]
        return cls(tasks, seen)

    @classmethod
    def of_quantiles(cls, y: np.ndarray, predicted: np.ndarray, loss: Loss) -> AnsweredTasks:
        """Return predicted quantiles (n, q) of targets (n,)."""
        each = [Answered(y, given, loss=loss.of_score(place)) for place, given in enumerate(predicted.T)]
        return cls(each, np.ones(predicted.shape, dtype=bool))

    @property
    def n_rows(self) -> int:
        return len(self.seen)

    def name(self, scoring: Scoring) -> str:
        """See ``KnownRows``."""
        if scoring is None:
            return self.tasks[0].name(None)
        return f"mean {scoring if isinstance(scoring, str) else getattr(scoring, '__name__', 'score')}"

    def _score(self, scoring: Scoring, rows: np.ndarray) -> float:
        is_chosen, scores = np.zeros(self.n_rows, dtype=bool), []
        is_chosen[rows] = True
        for task, seen in zip(self.tasks, self.seen.T, strict=True):
            places = np.flatnonzero(is_chosen[seen])
            y = task.y[places]
            if y.size > 1 and not (task.classes is not None and y.min() == y.max()):
                scores.append(task.score(scoring, places))
        defined = [score for score in scores if np.isfinite(score)]
        return float(np.mean(defined)) if defined else float("nan")

    def guesses(self) -> Iterator[AnsweredTasks]:
        """See ``KnownRows``."""
        each = [list(task.guesses()) for task in self.tasks]
        for place in range(max(map(len, each))):
            yield replace(self, tasks=[guesses[min(place, len(guesses) - 1)] for guesses in each])


def _of_each(seen: np.ndarray, *columns: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Yield the columns (n, t) of each task, of the rows that are seen."""
    for task, rows in enumerate(seen.T):
        yield [column[rows, task] for column in columns]


def labelled(model: Predictor, y: np.ndarray) -> KnownRows:
    """Return rows of these labels or targets (n,) or (n, t), as a model would answer them that makes no error."""
    classes = model.answers.classes
    if y.ndim == 2:
        seen = ~np.isnan(y)
        return AnsweredTasks(
            [_exact(of, None if classes is None else np.arange(2)) for (of,) in _of_each(seen, y)], seen
        )
    if classes is not None and model.positive is not None and classes[0] == model.positive:
        classes = classes[::-1]
    return replace(_exact(y, classes), structure=model.answers.structure)


def _exact(y: np.ndarray, classes: np.ndarray | None) -> Answered:
    if classes is None:
        return Answered(y.astype(np.float64), y.astype(np.float64))
    places = places_among(y, classes)
    return Answered(places, places, classes, np.zeros(y.size if classes.size == 2 else (y.size, classes.size)))


def asked_score(scoring: Scoring, answered: KnownRows, groups: np.ndarray | None = None) -> LeadingScore | None:
    """Return the score that was asked for; None where it is not defined for these rows.

    Its interval is that of the jackknife over parts of the rows, see ``selection.jackknife.score_interval``.

    Parameters
    ----------
    scoring : str, callable or None
        See ``KnownRows.score``.
    answered : KnownRows
        The answers.
    groups : ndarray of shape (n,) or None, default=None
        The group of each row, which the interval counts.
    """
    name, every = answered.name(scoring), np.arange(answered.n_rows)
    parts = parts_of_rows(answered.n_rows, groups, 0)
    value = answered.score(scoring, every)
    if not np.isfinite(value):
        return None
    deviations = deviations_of(scores_without(partial(answered.score, scoring), parts))
    most, best = independent_rows(groups, answered.n_rows), 0.0 if is_error(name) else 1.0
    quantile = float(stdtrit(max(1, deviations.size - 1), 0.975))
    interval = score_interval(value, standard_error(deviations), most, is_proportion(name), best, quantile)
    return LeadingScore(name, value, interval, guessed_score(scoring, answered))


def guessed_score(scoring: Scoring, answered: KnownRows) -> float | None:
    """Return the best score of ``guesses``; None where none is defined."""
    every = np.arange(answered.n_rows)
    scores = [each.score(scoring, every) for each in answered.guesses()]
    defined = [score for score in scores if np.isfinite(score)]
    return max(defined) if defined else None


class _Answers(ClassifierMixin, BaseEstimator):
    """A classifier for scorers of scikit-learn, whose rows are places of those that are answered."""

    def __init__(self, answered: Answered, labels: np.ndarray):
        self.answered, self.labels = answered, labels
        self.classes_ = labels

    def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> _Answers:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.labels[self.answered.predicted[rows]])

    def decision_function(self, rows: np.ndarray) -> np.ndarray:
        return _known(self.answered.scores)[rows]

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        assert self.answered.probabilities is not None  # classes have them
        return self.answered.probabilities(rows)


def _the_same(shares: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.broadcast_to(shares, (rows.size, shares.size))


def _known(values: np.ndarray | None) -> np.ndarray:
    if values is None:
        raise DataError("there are too many outputs to keep, and the score ranks them.")
    return values
