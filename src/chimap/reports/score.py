"""The score of a model on the rows of a source, with memory that does not grow with the rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from chimap._errors import DataError
from chimap._messages import Message
from chimap._types import JSON, Scoring
from chimap.data.label_kinds import as_targets, check_binary, known_labels
from chimap.data.labelled import labels_of
from chimap.models.answers import class_scores
from chimap.models.predict import labels_in_chunks, predict_chunks, predict_source
from chimap.models.unassigned import UNASSIGNED, checked_share, with_shares
from chimap.reports.classification import ClassificationMetrics, classification_metrics
from chimap.reports.leading import Answered, AnsweredTasks, asked_score, guessed_score
from chimap.reports.measures import Baseline, LeadingScore, Metrics, majority_baseline, mean_baseline
from chimap.reports.regression import RegressionMetrics, regression_metrics
from chimap.reports.tasks import quantile_metrics, task_metrics

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.engines import Progress
    from chimap.models.predictor import Predictor


_MOST_SCORES = 2**24  # that are kept; beyond it, classes are not ranked, which bounds the memory


class UnassignedRows(NamedTuple):
    """Rows that are like none of the classes, see ``HistogramClassifier.predict``.

    Attributes
    ----------
    share : float
        The share of known rows that may be unassigned.
    rate : float
        The share of these rows that is.
    accuracy : float
        Share of the other rows whose label is right; NaN if there are none.
    """

    share: float
    rate: float
    accuracy: float

    def __str__(self) -> str:
        return f"{self.rate:.1%} of the rows at {self.share:g}; accuracy of the others {self.accuracy:.1%}"


class Score(NamedTuple):
    """The score of a model on the rows of a source.

    Attributes
    ----------
    metrics : Metrics
        Metrics of the predictions.
    baseline : Baseline
        Score of a prediction that needs no model.
    seconds : float
        Time to predict.
    outcome : tuple of ndarray or None
        Labels (n,), predictions (n,) and scores (n, classes); None for regressions and if there are too many scores to
        keep.
    unassigned : UnassignedRows or None
        The rows that are like none of the classes, if they are asked for.
    answered : Answered or None
        The answers to single rows, by which other models are compared; None for several targets.
    scoring : str, callable or None
        The score that ``lead`` has, for ``Answered.score``.
    """

    metrics: Metrics
    baseline: Baseline
    seconds: float
    outcome: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    unassigned: UnassignedRows | None = None
    answered: Answered | None = None
    scoring: Scoring = None

    @property
    def lead(self) -> LeadingScore | None:
        """The score that headlines lead with."""
        return self.metrics.leading(self.baseline)

    def scalars(self) -> JSON:
        """Return the measures and their intervals as JSON types, without those of single classes and tasks."""
        of_each = {"per_class", "confusion", "tasks"}
        return {name: value for name, value in self.metrics.as_dict().items() if name not in of_each}

    @property
    def line(self) -> str:
        """The score with its interval and the baseline, on one line."""
        return self.metrics.line(self.baseline)


def predictions(
    model: Predictor, source: Source, progress: Progress | None = None, unassigned: float | None = None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return the predictions of all rows, (n,), for classes the linear outputs, (n, t), and which are unassigned, (n,).

    The outputs are None for regressions and if there are too many to keep; the last is None unless it is asked for by
    a share.
    """
    predicted, scores, lacking = [], [], []
    for outputs, is_lacking in _chunks(model, source, progress, unassigned):
        predicted.append(model.answers.predicted(outputs))
        lacking.append(is_lacking)
        if outputs.shape[1] == 1 or source.n_rows * outputs.shape[1] <= _MOST_SCORES:
            scores.append(outputs.astype(np.float32))
    is_ranked = model.answers.classes is not None and len(scores) > 0
    return (
        np.concatenate(predicted),
        np.concatenate(scores) if is_ranked else None,
        None if unassigned is None else np.concatenate(lacking),
    )


def _chunks(
    model: Predictor, source: Source, progress: Progress | None, unassigned: float | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the outputs (rows, t) of consecutive rows, and which of them are unassigned (rows,)."""
    if unassigned is None:
        for _, outputs in predict_chunks(model, source, progress):
            yield outputs, np.zeros(len(outputs), dtype=bool)
        return
    for _, outputs, labels in labels_in_chunks(model, source, unassigned, progress):
        yield outputs, labels == UNASSIGNED


def score_of(
    model: Predictor,
    source: Source,
    progress: Progress | None = None,
    unassigned: float | None = None,
    groups: np.ndarray | None = None,
    scoring: Scoring = None,
) -> Score:
    """Predict the rows of a source and compare the predictions with its labels.

    unassigned: the share of known rows that may be like none of the classes, to count them; None counts none.
    groups: of the rows (n,), which the intervals count. scoring: the score to lead with; None for the one that the fit
    was asked for, or else one that suits the rows.
    """
    if unassigned is not None:
        check_unassigned(model, unassigned)
    y, scoring = true_answers(model, source), scoring or scoring_asked(model)
    if progress is not None:
        progress.step(f"scoring {source.n_rows:,} rows")
    began = time.perf_counter()
    answers, loss = model.answers, model.answers.loss
    if loss.n_scores > 1:
        predicted = answers.predicted(predict_source(model, source, progress))
        asked = asked_score(scoring, AnsweredTasks.of_quantiles(y, predicted, loss), groups)
        of_quantiles = replace(quantile_metrics(y, predicted, loss), asked=asked)
        return Score(of_quantiles, Baseline("always answering the quantiles", 0.0), time.perf_counter() - began)
    if (names := model.task_names) is not None:
        outputs, has_classes = predict_source(model, source, progress), answers.classes is not None
        asked = None if scoring is None else asked_score(scoring, AnsweredTasks.of(model, y, outputs), groups)
        metrics_by_task = replace(task_metrics(y, outputs, names, has_classes, groups), asked=asked)
        baseline = Baseline("guessing", 0.5) if has_classes else Baseline("always answering the means", 0.0)
        return Score(metrics_by_task, baseline, time.perf_counter() - began)
    predicted, scores, lacking = predictions(model, source, progress, unassigned)
    seconds = time.perf_counter() - began
    answered, baseline = Answered.of(model, y, predicted, scores), _baseline(model, y)
    if answers.classes is not None:
        of_second = scores[:, 0] if scores is not None and scores.shape[1] == 1 else None
        metrics = classification_metrics(
            y,
            predicted,
            classes=answers.classes,
            scores=of_second,
            positive=model.positive,
            groups=groups,
            structure=answers.structure,
        )
        found = None
        if unassigned is not None and lacking is not None:
            right = (predicted == y)[~lacking]
            found = UnassignedRows(unassigned, float(lacking.mean()), float(right.mean()) if right.size else np.nan)
        outcome = None if scores is None else (y, predicted, class_scores(scores))
        score = Score(metrics, baseline, seconds, outcome, found, None if outcome is None else answered)
    else:
        score = Score(regression_metrics(y, predicted, loss=loss, groups=groups), baseline, seconds, answered=answered)
    return led_by(score, scoring, answered, groups)


def led_by(score: Score, scoring: Scoring, answered: Answered, groups: np.ndarray | None) -> Score:
    """Return a score that leads with the one that was asked for; with its usual one for None, or if it has no value."""
    metrics = cast("ClassificationMetrics | RegressionMetrics", score.metrics)
    lead = None if scoring is None else metrics.known(scoring, score.baseline) or asked_score(scoring, answered, groups)
    if lead is None:
        usual = score.lead
        return score._replace(scoring=None if usual is None else usual.measure)
    if lead.guess is None:
        lead = lead._replace(guess=guessed_score(scoring, answered))
    return score._replace(metrics=replace(metrics, asked=lead), scoring=scoring)


def scoring_asked(model: Predictor) -> Scoring:
    """Return the score that a fit was asked for: what the command line says of it, or the setting; None for none."""
    asked: Scoring = (model.training.get("settings") or {}).get("scoring") or model.settings.get("scoring")
    return asked


def check_unassigned(model: Predictor, unassigned: float) -> None:
    """Raise ValueError for a share that is none, and for models that assign every row."""
    checked_share(unassigned)
    with_shares(model)


def as_answers(model: Predictor, y: np.ndarray, name: str, rows: np.ndarray | None = None) -> np.ndarray:
    """Return labels in the type of the answers of the model. Raise DataError if it cannot give them.

    ``rows`` are the numbers of the rows in the file, for the error.
    """
    classes = model.answers.classes
    if y.ndim == 2 or (model.task_names is not None and model.answers.loss.n_scores == 1):
        check_tasks(model, y, name)
        return y
    return as_targets(y, name, rows) if classes is None else known_labels(y, classes, name, rows)


def true_answers(model: Predictor, source: Source) -> np.ndarray:
    """Return the labels of a source in the type of the answers of the model, see ``as_answers``."""
    return as_answers(model, labels_of(source), source.name, source.places_in_file())


def about_labels(y: np.ndarray, has_classes: bool) -> JSON:
    """Return what a model file says of the labels that it was fitted on, as plain values."""
    if y.ndim == 2:
        return {"n_tasks": y.shape[1]}
    if not has_classes:
        return {"target_mean": float(y.mean()), "target_range": [float(y.min()), float(y.max())]}
    classes, counts = np.unique(y, return_counts=True)
    return {"class_counts": [list(pair) for pair in zip(classes.tolist(), counts.tolist(), strict=True)]}


def _baseline(model: Predictor, y: np.ndarray) -> Baseline:
    """Return the baseline of the training labels, or of the labels ``y`` if the model did not store its own."""
    training = model.training
    if model.answers.classes is not None:
        counts = training.get("class_counts")
        return majority_baseline([max(counts, key=lambda c: c[1])[0]] if counts else y, y)
    mean = training.get("target_mean")
    return mean_baseline(y if mean is None else [mean], y)


def check_tasks(model: Predictor, y: np.ndarray, name: str) -> None:
    """Raise DataError if the labels do not match the tasks of the model."""
    names = model.task_names
    n_tasks = 1 if names is None else len(names)
    n_labels = y.shape[1] if y.ndim == 2 else 1
    if n_labels != n_tasks:
        raise DataError(
            Message(
                "{}: labels of {} task(s), but the model has {}. Use {labels} to name the columns that it was fitted "
                "on.",
                name,
                n_labels,
                n_tasks,
            )
        )
    if n_tasks > 1 and model.answers.classes is not None:
        check_binary(y, name)
