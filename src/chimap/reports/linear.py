"""What headlines lead with: a score beside guessing, and the best linear model of the race on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from chimap._formatting import interval_in_words, score_in_words
from chimap._memory import parse_memory
from chimap._types import JSON, Parameters
from chimap._validation import MemoryBudgetError
from chimap.data.source import choose_rows
from chimap.models.answers import class_scores
from chimap.models.race_result import linear_in_words, linear_line
from chimap.reports.classification import ClassificationMetrics
from chimap.reports.regression import RegressionMetrics
from chimap.reports.rows import taken
from chimap.reports.score import Score, predictions
from chimap.selection.jackknife import deviations_of, parts_of_rows, scores_without, standard_error
from chimap.selection.scoring import area_under_curve, r_squared

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.data import Source

_FEWEST_ROWS, _MOST_ROWS = 60, 10_000  # that it learns from
_MOST_BYTES = 2**28  # of these rows, and
_MEMORY_SHARE = 8  # no more than an eighth of the memory budget


@dataclass(frozen=True)
class LinearRival:
    """The best linear model, beside a model that is scored on the same rows.

    Parameters
    ----------
    name : str
        What the field calls it, such as "linear on log-cp10k rows".
    score : float
        Its score.
    measure : str
        Name of the score, as scikit-learn has it.
    n_rows : int
        Rows that it learned from.
    lead : float, default=0.0
        Score of the model less that of the linear one.
    error : float, default=0.0
        Standard error of the lead, from the same rows; NaN if it is not known.
    is_own : bool, default=False
        Whether it is the model itself.
    """

    name: str
    score: float
    measure: str
    n_rows: int
    lead: float = 0.0
    error: float = 0.0
    is_own: bool = False

    @classmethod
    def of(cls, about: JSON) -> LinearRival:
        """Return the value of ``as_dict``.

        Parameters
        ----------
        about : dict
            What it returned.
        """
        return cls(**{field.name: about[field.name] for field in fields(cls)})

    @property
    def ties(self) -> bool:
        """Whether the two are as good, within the error of their difference."""
        return not self.is_own and bool(abs(self.lead) <= self.error)

    @property
    def line(self) -> str:
        """Name and score, and whether the models tie: 'linear on log-cp10k rows 85.4 %'."""
        return linear_line(self.name, self.score, self.measure, self.is_own, self.ties)

    @property
    def line_with_rows(self) -> str:
        """The line, with the number of rows that it learned from where it is another model."""
        return self.line if self.is_own else f"{self.line} (learned from {self.n_rows:,} rows)"

    def as_dict(self) -> JSON:
        """Return it as JSON types."""
        return {**vars(self), "ties": self.ties}


def linear_model(
    estimator: BaseEstimator, training: Source | None, source: Source, score: Score, groups: np.ndarray | None = None
) -> LinearRival | None:
    """Fit the best linear model to the rows that a model learned from, and score it on rows that neither has seen.

    It is the best linear candidate of the race. Without a race it is the best of linear models on the rows as the model
    has them, on raw rows and on square roots.

    Parameters
    ----------
    estimator : estimator
        The fitted model.
    training : Source or None
        The rows that it learned from; None if they are not known.
    source : Source
        The rows of the headline.
    score : Score
        Of the model on these rows.
    groups : ndarray of shape (n,) or None, default=None
        Groups of these rows, which the error of the lead counts.

    Returns
    -------
    LinearRival or None
        None for models of images, several tasks or quantiles, and of other estimators, and where memory holds none.
    """
    from chimap import HistogramClassifier, HistogramRegressor

    measure, is_known = measure_of(score), isinstance(estimator, HistogramClassifier | HistogramRegressor)
    if measure is None or training is None or not is_known or estimator.histograms_ is not None:
        return None
    own, all_rows = _scored(measure, _outcome(score)), np.arange(source.n_rows)
    if (name := _own_name(estimator)) is not None:
        return LinearRival(name, own(all_rows), measure, int(estimator.n_rows_), is_own=True)
    rows, settings = rows_to_learn_from(training, parse_memory(estimator.fitted.recipe.memory)), _settings(estimator)
    rival = type(estimator)(**settings, memory=estimator.memory, n_jobs=estimator.n_jobs, random_state=0)
    try:
        with catch_warnings():
            simplefilter("ignore")  # what is to be said of these rows was said when the model was fitted
            rival.fit_source(rows)
    except MemoryBudgetError:
        return None
    name = linear_in_words(rival.kernel_, rival.normalize_, rival.loss)
    predicted, outputs, _ = predictions(rival.fitted, source)
    linear = _scored(measure, (_outcome(score)[0], predicted, None if outputs is None else class_scores(outputs)))
    parts = parts_of_rows(source.n_rows, groups, 0)
    lead = [deviations_of(scores_without(of_rows, parts)) for of_rows in (own, linear)]
    error = standard_error(np.subtract(*lead)) if lead[0].size == lead[1].size else float("nan")
    found = linear(all_rows)
    return LinearRival(str(name), found, measure, rows.n_rows, own(all_rows) - found, error)


def measure_of(score: Score) -> str | None:
    """Return the measure that the headline leads with, by which models are compared; None for several targets."""
    metrics = score.metrics
    if isinstance(metrics, RegressionMetrics):
        return "r2"
    if score.outcome is None or not isinstance(metrics, ClassificationMetrics):
        return None
    if metrics.leads_with_auc:
        return "roc_auc"
    return "balanced_accuracy" if metrics.is_unequal else "accuracy"


class LeadingScore(NamedTuple):
    """The score that a headline leads with, its 95 % confidence interval, and that of guesses."""

    measure: str
    value: float
    interval: tuple[float, float]
    guess: float

    @property
    def in_words(self) -> str:
        """Score and interval: '81.7 % (72.7 to 88.3 %)'."""
        return f"{score_in_words(self.value, self.measure)} ({interval_in_words(self.interval, self.measure)})"


def leading_score(score: Score) -> LeadingScore | None:
    """Return the score that the headline leads with; None for several targets."""
    measure, metrics = measure_of(score), score.metrics
    if measure is None:
        return None
    if isinstance(metrics, RegressionMetrics):
        return LeadingScore(measure, metrics.r2, metrics.r2_interval, 0.0)
    assert isinstance(metrics, ClassificationMetrics)
    if measure == "accuracy":
        return LeadingScore(measure, metrics.accuracy, metrics.interval, score.baseline.value)
    if measure == "roc_auc" and metrics.auc is not None and metrics.auc_interval is not None:
        return LeadingScore(measure, metrics.auc, metrics.auc_interval, 0.5)
    assert metrics.balanced_interval is not None
    guess = 1 / np.count_nonzero(metrics.support)
    return LeadingScore(measure, metrics.balanced_accuracy, metrics.balanced_interval, float(guess))


_Outcome = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # labels, predictions and scores of classes, of each row


def _outcome(score: Score) -> _Outcome:
    if isinstance(score.metrics, RegressionMetrics):
        return score.metrics.targets, score.metrics.predictions, None
    assert score.outcome is not None
    return score.outcome


def _scored(measure: str, outcome: _Outcome) -> Callable[[np.ndarray], float]:
    """Return the score of some rows, given their places; NaN where it is not defined."""
    y, predicted, scores = outcome
    if measure == "r2":
        return lambda rows: r_squared(y[rows, None], predicted[rows, None])
    if measure == "accuracy":
        return lambda rows: float(np.mean(predicted[rows] == y[rows]))
    if measure == "balanced_accuracy" or scores is None:
        return lambda rows: float(balanced_accuracy_score(y[rows], predicted[rows]))
    second = np.unique(y)[-1]
    return lambda rows: area_under_curve(y[rows] == second, scores[rows, 1])


def _own_name(estimator: BaseEstimator) -> str | None:
    """Return what the model itself is called as a linear one; None if it is not linear."""
    race = estimator.fitted.learned.race
    if race is not None and race.winner.linear_name is not None:
        return str(race.winner.linear_name)
    return linear_in_words(estimator.kernel_, estimator.normalize_, estimator.loss)


def _settings(estimator: BaseEstimator) -> Parameters:
    """Return those of the best linear candidate of the race, or several normalisations to race linear models on."""
    race = estimator.fitted.learned.race
    if race is not None and race.linear is not None:
        settings = race.linear.candidate.settings
        return {name: settings[name] for name in ("kernel", "normalize", "loss") if name in settings}
    normalize = [estimator.normalize_]
    if not estimator.fitted.kernel.is_signed:
        normalize += [name for name in (None, "sqrt") if name not in normalize]
    return {"kernel": "linear", "normalize": normalize if len(normalize) > 1 else normalize[0]}


def rows_to_learn_from(training: Source, memory: int) -> Source:
    """Return the rows to learn from: all, or a sample with a row of each class at least."""
    most = int(min(_MOST_BYTES, memory // _MEMORY_SHARE) / max(1.0, training.row_bytes))
    places = choose_rows(training.n_rows, min(_MOST_ROWS, max(_FEWEST_ROWS, most), training.n_rows), 0)
    labels = training.labels()
    assert labels is not None
    if places.size < training.n_rows and labels.dtype.kind != "f":
        places = np.union1d(places, np.unique(labels, return_index=True)[1])
    return taken(training, places, labels[places])
