"""What an evaluation shows besides the score: linear baseline, learning curve, important bins, worst mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from chimap._formatting import measure_in_words, plain
from chimap._types import JSON, Scoring
from chimap.data.source import choose_rows
from chimap.reports.calibration import TwoClasses
from chimap.reports.classification import ClassificationMetrics
from chimap.reports.importance import importance_of
from chimap.reports.leading import Answered
from chimap.reports.linear import LinearRival, linear_model
from chimap.reports.regression import RegressionMetrics
from chimap.reports.rows import row_names, sample_of, taken
from chimap.reports.score import Score, predictions
from chimap.selection.learning_curve import LearningCurve, curve_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.data import Source
    from chimap.models.predictor import Predictor


_MOST_MISTAKES = 10  # that are listed


@dataclass(frozen=True)
class Mistake:
    """A row that is predicted wrongly.

    Parameters
    ----------
    row : str
        Id or number of the row.
    true : object
        Its label or target.
    predicted : object
        Its predicted label or target.
    margin : float
        For classes, the score of the predicted class minus the score of the true one; for numbers, the absolute error.
    """

    row: str
    true: object
    predicted: object
    margin: float


@dataclass(frozen=True, eq=False)
class Insight:
    """What an evaluation shows beyond the score; unknown parts are None or empty.

    Parameters
    ----------
    linear : LinearRival or None, default=None
        The best linear model, on the same rows.
    curve : LearningCurve or None, default=None
        Held-out scores over the number of training rows.
    is_curve_of_rows : bool, default=False
        Whether these scores are on rows of the evaluation; else they are on training rows that each fit leaves out.
    importance : sequence of tuple of str and float, default=()
        Name and importance of the most important bins.
    mistakes : sequence of Mistake, optional
        The worst mistakes; by default empty.
    two : TwoClasses or None, default=None
        Labels and scores, if there are two classes.
    """

    linear: LinearRival | None = None
    curve: LearningCurve | None = None
    is_curve_of_rows: bool = False
    importance: Sequence[tuple[str, float]] = ()
    mistakes: Sequence[Mistake] = field(default_factory=tuple)
    two: TwoClasses | None = None

    @property
    def linear_line(self) -> str:
        """The best linear model on a line of a headline; empty if it is unknown."""
        if self.linear is None:
            return ""
        return f"Best linear model: {self.linear.line_with_rows}"

    def as_dict(self) -> JSON:
        """Return the insight as JSON types, without the rows of ``two``."""
        return {
            "linear": self.linear and plain(self.linear.score),
            "linear_measure": self.linear and measure_in_words(self.linear.measure),
            "linear_model": self.linear and plain(self.linear.as_dict()),
            "learning_curve": self.curve and plain(vars(self.curve)),
            "top_bins": [{"name": name, "importance": value} for name, value in self.importance],
            "worst_mistakes": [plain(vars(mistake)) for mistake in self.mistakes],
        }


def worst_mistakes(
    names: np.ndarray, y_true: np.ndarray, y_pred: np.ndarray, scores: np.ndarray, classes: Sequence[object]
) -> list[Mistake]:
    """Return the ten misclassified rows with the largest margins, in descending order.

    The margin is the score of the predicted class minus the score of the true class.

    Parameters
    ----------
    names : ndarray of shape (n,)
        Names of the rows.
    y_true : ndarray of shape (n,)
        True labels.
    y_pred : ndarray of shape (n,)
        Predicted labels.
    scores : ndarray of shape (n, n_classes)
        Scores of the classes.
    classes : sequence
        The classes, in the order of the columns of ``scores``.

    Returns
    -------
    list of Mistake
        At most ten mistakes.

    Examples
    --------
    >>> mistakes = worst_mistakes(np.array(["a", "b"]), np.array([0, 1]), np.array([1, 1]), np.eye(2)[[1, 1]], [0, 1])
    >>> [(mistake.row, mistake.margin) for mistake in mistakes]
    [('a', 1.0)]
    """
    column = {name: i for i, name in enumerate(classes)}
    wrong = np.flatnonzero(y_true != y_pred)
    true = np.array([column[y] for y in y_true[wrong].tolist()], dtype=int)
    predicted = np.array([column[y] for y in y_pred[wrong].tolist()], dtype=int)
    margin = scores[wrong, predicted] - scores[wrong, true]
    order = np.argsort(-margin, kind="stable")[:_MOST_MISTAKES]
    return [Mistake(str(names[wrong[i]]), classes[true[i]], classes[predicted[i]], float(margin[i])) for i in order]


def worst_errors(names: np.ndarray, y_true: np.ndarray, y_pred: np.ndarray) -> list[Mistake]:
    """Return the ten rows with the largest absolute errors, in descending order.

    Parameters
    ----------
    names : ndarray of shape (n,)
        Names of the rows.
    y_true : ndarray of shape (n,)
        Targets.
    y_pred : ndarray of shape (n,)
        Predictions.

    Returns
    -------
    list of Mistake
        At most ten rows, whose margin is the absolute error.

    Examples
    --------
    >>> worst = worst_errors(np.array(["a", "b"]), np.array([0.0, 1.0]), np.array([0.5, -1.0]))
    >>> [(mistake.row, mistake.margin) for mistake in worst]
    [('b', 2.0), ('a', 0.5)]
    """
    errors = np.abs(y_pred - y_true)
    order = np.argsort(-errors, kind="stable")[:_MOST_MISTAKES]
    return [Mistake(str(names[i]), float(y_true[i]), float(y_pred[i]), float(errors[i])) for i in order]


_MOST_ROWS_SCORED = 5000  # most rows that a learning curve is scored on
_MOST_ROWS_OF_CURVE = 1500  # most rows of a learning curve, whose fits run one after the other
_MOST_ENTRIES = 2**25  # most entries in these rows
_FEWEST_ROWS_OF_CURVE = 60  # fewest training rows for a learning curve
_POINTS_OF_CURVE = 3
_MOST_BINS = 10
_OF_THE_MACHINE = ("kernel", "normalize", "loss")


def insight_of(
    model: Predictor,
    source: Source,
    score: Score,
    estimator: BaseEstimator,
    training: Source | None,
    groups: np.ndarray | None = None,
) -> Insight:
    """Return what an evaluation on ``source`` shows besides the score.

    Copies of ``estimator``, whose model it is, are fitted to ``training``: rows that it learned from, None if unknown.
    groups: of the rows (n,), which the error of the lead over the linear model counts.
    """
    exact = model.exact
    importance, curve = [], None
    if exact is not None:
        curve = exact.learned.learning_curve
        sample, _ = sample_of(source, 300)
        importance = importance_of(exact, sample, None, "auto").top(_MOST_BINS)
    names, two, measure = row_names(source), None, score.scoring
    if score.answered is None:
        return Insight(importance=importance, curve=curve)
    if isinstance(score.metrics, RegressionMetrics):
        y = score.metrics.targets
        mistakes = worst_errors(names, y, score.metrics.predictions)
    else:
        assert score.outcome is not None
        y, predicted, scores = score.outcome
        metrics = cast("ClassificationMetrics", score.metrics)
        two = _two(model, y, scores, metrics.classes)
        if measure != "accuracy" and curve is not None and curve.measure == "accuracy":  # which hides rare classes
            curve = None
        mistakes = worst_mistakes(names, y, predicted, scores, metrics.classes)
    nested = _Nested.of(estimator, training, source, y, measure)
    is_curve_of_rows = curve is None and nested is not None
    return Insight(
        linear=linear_model(estimator, training, source, score, groups),
        curve=nested.curve() if curve is None and nested is not None else curve,
        is_curve_of_rows=is_curve_of_rows,
        importance=importance,
        mistakes=mistakes,
        two=two,
    )


def _two(
    model: Predictor, y: np.ndarray, scores: np.ndarray, classes: Sequence[object] | np.ndarray
) -> TwoClasses | None:
    """Return the scores and probabilities of two classes, or None if there are not two classes with rows."""
    if len(classes) != 2 or np.unique(y).size < 2:
        return None
    k = 1 if model.positive is None else list(classes).index(model.positive)
    f, calibration = scores[:, 1].astype(np.float64), model.answers.calibration
    assert calibration is not None  # these are classes
    return TwoClasses(y == classes[k], scores[:, k].astype(np.float64), calibration(f[:, None])[:, k])


@dataclass(frozen=True)
class _Nested:
    """Fits on a sample of the training rows, in random order, scored by one measure on held-out rows."""

    model: BaseEstimator
    rows: Source
    labels: np.ndarray
    held_out: Source
    y: np.ndarray
    measure: Scoring

    @classmethod
    def of(
        cls, model: BaseEstimator, training: Source | None, source: Source, y: np.ndarray, measure: Scoring
    ) -> _Nested | None:
        """Draw the sample, small enough that the fits take seconds.

        Return None if the model is of another type, if there are too few training rows, and for images.
        """
        from chimap import HistogramClassifier, HistogramRegressor

        is_known = isinstance(model, HistogramClassifier | HistogramRegressor)
        if training is None or training.n_rows < _FEWEST_ROWS_OF_CURVE or not is_known:
            return None
        if model.histograms_ is not None:  # images would have to be described again
            return None
        most = max(_FEWEST_ROWS_OF_CURVE, _MOST_ENTRIES // source.n_features)
        learned, places = sample_of(training, min(_MOST_ROWS_OF_CURVE, most))
        labels = training.labels()
        assert labels is not None
        order = np.random.default_rng(0).permutation(places.size)
        held = choose_rows(source.n_rows, min(_MOST_ROWS_SCORED, most, source.n_rows), 0)
        return cls(model, taken(learned, order), labels[places][order], taken(source, held), y[held], measure)

    def curve(self) -> LearningCurve | None:
        """Return the learning curve of the same kind of model on growing parts of the sample."""
        last = int(self.labels.size)
        sizes = np.unique(
            np.geomspace(
                max(_FEWEST_ROWS_OF_CURVE // 2, last / 2 ** (_POINTS_OF_CURVE - 1)), last, _POINTS_OF_CURVE
            ).astype(int)
        ).tolist()
        machine = self._chosen()
        points = [(n, self._score(machine, n)) for n in sizes if np.unique(self.labels[:n]).size > 1]
        return curve_of(str(self.measure), points)

    def _chosen(self) -> BaseEstimator:
        """Return an unfitted model with the settings of the race or the user; only the strength is chosen again."""
        from sklearn.base import clone

        chosen = {name: value for name, value in self.model.chosen_.items() if name in _OF_THE_MACHINE}
        return clone(self.model).set_params(**chosen, bin_weights=self.model.bin_weights_)

    def _score(self, machine: BaseEstimator, n_rows: int) -> float:
        from sklearn.base import clone

        fitted = clone(machine).fit_source(taken(self.rows, np.arange(n_rows), self.labels[:n_rows]))
        predicted, outputs, _ = predictions(fitted.fitted, self.held_out)
        return Answered.of(fitted.fitted, self.y, predicted, outputs).score(self.measure, np.arange(self.y.size))
