"""The best linear model of the race, beside a model that is scored on the same rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import numpy as np

from chimap._memory import parse_memory
from chimap._types import JSON, Parameters
from chimap._validation import MemoryBudgetError
from chimap.data.source import choose_rows
from chimap.models.race_result import linear_in_words, linear_line
from chimap.reports.leading import Answered
from chimap.reports.rows import taken
from chimap.reports.score import Score, predictions, true_answers
from chimap.selection.jackknife import deviations_of, parts_of_rows, scores_without, standard_error

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.data import Source

_FEWEST_ROWS, _MOST_ROWS = 60, 10_000  # that it learns from
_MOST_BYTES = 2**28  # of these rows, and
_MEMORY_SHARE = 8  # no more than an eighth of the memory budget
_SAME = (
    "memory",
    "n_jobs",
    "class_weight",
    "positive",
    "threshold",
    "ordered",
    "label_tree",
)  # settings of both models


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

    lead, answered, is_known = (
        score.lead,
        score.answered,
        isinstance(estimator, HistogramClassifier | HistogramRegressor),
    )
    if lead is None or answered is None or training is None or not is_known or estimator.histograms_ is not None:
        return None
    if (name := _own_name(estimator)) is not None:
        return LinearRival(name, lead.value, lead.measure, int(estimator.n_rows_), is_own=True)
    rows, settings = rows_to_learn_from(training, parse_memory(estimator.fitted.recipe.memory)), _settings(estimator)
    if score.metrics.asked is not None and "loss" not in settings:
        settings["scoring"] = score.scoring
    same = {name: getattr(estimator, name) for name in _SAME if hasattr(estimator, name)}
    rival = type(estimator)(**settings, **same, random_state=0)
    try:
        with catch_warnings():
            simplefilter("ignore")  # what is to be said of these rows was said when the model was fitted
            rival.fit_source(rows)
    except MemoryBudgetError:
        return None
    name = linear_in_words(rival.kernel_, rival.normalize_, rival.loss)
    predicted, outputs, _ = predictions(rival.fitted, source)
    linear = Answered.of(rival.fitted, true_answers(rival.fitted, source), predicted, outputs)
    every, parts = np.arange(source.n_rows), parts_of_rows(source.n_rows, groups, 0)
    of_rows = [partial(each.score, score.scoring) for each in (answered, linear)]
    each = [deviations_of(scores_without(score_of_rows, parts)) for score_of_rows in of_rows]
    error = standard_error(np.subtract(*each)) if each[0].size == each[1].size else float("nan")
    found = of_rows[1](every)
    return LinearRival(str(name), found, lead.measure, rows.n_rows, lead.value - found, error)


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
