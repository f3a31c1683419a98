"""Predict the rows of a source and score the predictions, with memory that does not grow with the rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from chimap._errors import InputError
from chimap.cli import data_rows, show
from chimap.cli.data_rows import labels_of

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

    from chimap.data import Source
    from chimap.engines import Progress
    from chimap.report import (
        Baseline,
        ClassificationMetrics,
        RankingMetrics,
        RegressionMetrics,
        Reliability,
        SplitScores,
        TaskMetrics,
    )


_KEPT_SCORES = 2**24  # most scores to keep; beyond it, classes are not ranked, which bounds the memory


class Score(NamedTuple):
    """The score of a model on the rows of a source.

    Attributes
    ----------
    metrics : ClassificationMetrics, RegressionMetrics or TaskMetrics
        Metrics of the predictions.
    baseline : Baseline
        Score of a prediction that needs no model.
    seconds : float
        Time to predict.
    ranking : RankingMetrics or None
        Ranking of the rows by each class; None for regressions and if there are too many scores to keep.
    outcome : tuple of ndarray or None
        What the ranking was computed from: labels (n,), predictions (n,) and scores (n, classes).
    reliability : Reliability or None
        How well the predicted probabilities are calibrated.
    """

    metrics: ClassificationMetrics | RegressionMetrics | TaskMetrics
    baseline: Baseline
    seconds: float
    ranking: RankingMetrics | None = None
    outcome: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    reliability: Reliability | None = None


def is_classifier(model: BaseEstimator) -> bool:
    """Return whether the model predicts classes."""
    return hasattr(model, "classes_")


def answers(model: BaseEstimator, outputs: np.ndarray) -> np.ndarray:
    """Return labels or targets, (n,), or (n, t) for several tasks, from linear outputs (n, t)."""
    return model.labels_of(outputs) if is_classifier(model) else model.targets_of(outputs)


def predictions(
    model: BaseEstimator, source: Source, progress: Progress
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the predictions of all rows, (n,), and for classes the linear outputs, (n, t).

    The outputs are None for regressions and if there are too many to keep.
    """
    import numpy as np

    predicted, scores = [], []
    for _, outputs in model.predict_chunks(source, progress):
        predicted.append(answers(model, outputs))
        if outputs.shape[1] == 1 or source.n_rows * outputs.shape[1] <= _KEPT_SCORES:
            scores.append(outputs.astype(np.float32))
    is_ranked = is_classifier(model) and len(scores) > 0
    return np.concatenate(predicted), np.concatenate(scores) if is_ranked else None


def score(model: BaseEstimator, source: Source, progress: Progress) -> Score:
    """Predict the rows of a source and compare the predictions with its labels."""
    import numpy as np

    from chimap.report import (
        Baseline,
        classification_metrics,
        ranking_metrics,
        regression_metrics,
        task_metrics,
    )

    y = true_answers(model, source)
    began = time.perf_counter()
    if (names := data_rows.task_names_of(model)) is not None:
        outputs = model.predict_source(source, progress)
        metrics_by_task = task_metrics(y, outputs, names, is_classifier(model))
        baseline = (
            Baseline("guessing", 0.5) if is_classifier(model) else Baseline("always answering the means", 0.0)
        )
        return Score(metrics_by_task, baseline, time.perf_counter() - began)
    predicted, scores = predictions(model, source, progress)
    seconds = time.perf_counter() - began
    if is_classifier(model):
        of_second = scores[:, 0] if scores is not None and scores.shape[1] == 1 else None
        metrics = classification_metrics(y, predicted, classes=model.classes_, scores=of_second)
        if scores is None:
            return Score(metrics, _baseline(model, y), seconds)
        by_class = scores if of_second is None else np.concatenate([-scores, scores], axis=1)
        ranking = ranking_metrics(y, by_class, metrics.classes)
        return Score(
            metrics, _baseline(model, y), seconds, ranking, (y, predicted, by_class),
            _reliability(model, y, scores),
        )  # fmt: skip
    return Score(regression_metrics(y, predicted), _baseline(model, y), seconds)


def _reliability(model: BaseEstimator, y: np.ndarray, scores: np.ndarray) -> Reliability | None:
    """Return the reliability of the most probable class of each row, or None if the model has no probabilities."""
    import numpy as np

    from chimap.report import Reliability

    if not hasattr(model, "probabilities_of"):
        return None
    probabilities = model.probabilities_of(scores.astype(np.float64))
    return Reliability(probabilities.max(axis=1), model.classes_[probabilities.argmax(axis=1)] == y)


def splitter(
    model: BaseEstimator, n_splits: int, per_class: int | None, by_group: bool = False
) -> BaseCrossValidator:
    """Return the splitter that draws the training rows of each split.

    It draws ``per_class`` rows of each class, or 70 % of the rows or groups; without groups, the classes of a single
    task keep their shares. Raise ValueError if ``per_class`` is given but the model has no classes to draw from.
    """
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

    from chimap.data import PerClassSplits

    has_classes = is_classifier(model) and data_rows.task_names_of(model) is None
    if per_class is not None and not has_classes:
        what = "several tasks" if is_classifier(model) else "numbers"
        raise InputError(f"--per-class needs classes, but the model predicts {what}: leave --per-class out.")
    if by_group:
        return GroupShuffleSplit(n_splits, test_size=0.3, random_state=0)
    if per_class is not None:
        return PerClassSplits(per_class, n_splits=n_splits, random_state=0)
    kind = StratifiedShuffleSplit if has_classes else ShuffleSplit
    return kind(n_splits, test_size=0.3, random_state=0)


def check_splits(
    model: BaseEstimator,
    y: np.ndarray,
    name: str,
    splits: BaseCrossValidator,
    groups: np.ndarray | None = None,
) -> None:
    """Raise DataError if the labels and groups cannot be split."""
    import numpy as np

    from chimap._messages import Message
    from chimap._validation import DataError

    has_classes = is_classifier(model) and y.ndim == 1
    try:
        for train, test in splits.split(y, y, groups):
            lost = np.setdiff1d(y[test], y[train]) if has_classes else y[:0]
            if lost.size:
                raise DataError(
                    f"a split has all rows of class {lost[0]!s} in its test part. Name a column with more groups."
                )
    except ValueError as error:
        of_each = " of every class" if has_classes else ""
        advice = "" if isinstance(error, DataError) else f" --splits needs at least two rows{of_each}."
        raise DataError(Message("{}: {}{}", name, error, advice)) from error


def repeated(
    model: BaseEstimator, source: Source, splits: BaseCrossValidator, groups: np.ndarray | None = None
) -> SplitScores:
    """Train the model anew, with its settings, on each split and score it. Groups stay whole."""
    import numpy as np

    from chimap.report import repeated_splits

    rows = np.arange(source.n_rows)
    with show.busy(f"training on {splits.get_n_splits()} splits"):
        return repeated_splits(model, source.take(rows), true_answers(model, source), splits, groups)


def as_answers(model: BaseEstimator, y: np.ndarray, name: str, rows: np.ndarray | None = None) -> np.ndarray:
    """Return labels in the type of the answers of the model. Raise DataError if it cannot give them.

    ``rows`` are the numbers of the rows in the file, for the error.
    """
    from chimap.data.label_kinds import as_targets, known_labels

    if y.ndim == 2 or data_rows.task_names_of(model) is not None:
        data_rows.check_tasks(model, y, name)
        return y
    return known_labels(y, model.classes_, name, rows) if is_classifier(model) else as_targets(y, name, rows)


def true_answers(model: BaseEstimator, source: Source) -> np.ndarray:
    """Return the labels of a source in the type of the answers of the model, see ``as_answers``."""
    return as_answers(model, labels_of(source), source.name, source.places_in_file())


def _baseline(model: BaseEstimator, y: np.ndarray) -> Baseline:
    """Return the baseline of the training labels, or of the labels ``y`` if the model did not store its own."""
    from chimap.report import majority_baseline, mean_baseline

    training = getattr(model, "training_", None) or {}
    if is_classifier(model):
        counts = training.get("class_counts")
        return majority_baseline([max(counts, key=lambda c: c[1])[0]] if counts else y, y)
    mean = training.get("target_mean")
    return mean_baseline(y if mean is None else [mean], y)
