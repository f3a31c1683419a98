"""Repeated splits, which show how much a score depends on the rows a model was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

from chimap import _arrays
from chimap._errors import DataError, InputError
from chimap._formatting import plain
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, Rows
from chimap.data import ArraySource
from chimap.data.covariates import beside
from chimap.data.source import CovariateTable, Source
from chimap.data.split import PerClassSplits
from chimap.models.answers import class_scores
from chimap.reports.classification import classification_metrics
from chimap.reports.measures import share_in_words
from chimap.reports.ranking import ranking_metrics
from chimap.reports.regression import regression_metrics
from chimap.reports.tasks import task_metrics

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

    from chimap.data.forward import ForwardSplits
    from chimap.models.predictor import Predictor

_OF_CLASSES = {
    "accuracy": "Accuracy",
    "class_rate": "Class recognition rate",
    "mean_average_precision": "Mean average precision",
}


@dataclass(frozen=True, eq=False)
class SplitScores:
    """Scores of a model retrained on each of s splits.

    Parameters
    ----------
    scores : dict of str to ndarray of shape (s,)
        The scores on the test rows, by name. For classes: "accuracy", "class_rate" (the mean recall over the classes)
        and "mean_average_precision". For numbers: "R2", "RMSE" and "MAE". For several tasks or targets: the means over
        them of the measures of ``TaskMetrics``.
    n_train : int
        Number of training rows of the first split.
    n_test : int
        Number of test rows of the first split.
    note : str, default=""
        What the models of the splits know of their test rows; "" for nothing.
    is_forward : bool, default=False
        Whether the splits go forward in time, rather than at random.
    """

    scores: dict[str, np.ndarray]
    n_train: int
    n_test: int
    note: str = ""
    is_forward: bool = False

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return int(next(iter(self.scores.values())).size)

    @property
    def are_shares(self) -> bool:
        """Whether the scores are those of classes, which are shown in percent."""
        return _OF_CLASSES.keys() == self.scores.keys()

    def rows(self) -> list[tuple[str, float, float]]:
        """Return name, mean and standard deviation over splits of each score; the last is NaN for a single split."""
        titles = _OF_CLASSES | {"R2": "R²"}
        return [(titles.get(name, name), *_mean_and_deviation(v)) for name, v in self.scores.items()]

    def lines(self) -> str:
        """Return one line for each score, such as 'accuracy 64.2 % ± 0.8' or 'RMSE 0.1234 ± 0.0056', and the note."""
        lines = []
        for name, mean, deviation in self.rows():
            in_words = f"{name.lower()} {share_in_words(mean)}" if self.are_shares else f"{name} {mean:.4g}"
            spread = f"{100 * deviation:.1f}" if self.are_shares else f"{deviation:.2g}"
            lines.append(in_words + ("" if deviation != deviation else f" ± {spread}"))
        return "\n".join([*lines, self.note] if self.note else lines)

    def as_dict(self) -> JSON:
        """Return the scores of all splits, their means and standard deviations as JSON types."""
        scores = {}
        for name, values in self.scores.items():
            mean, deviation = _mean_and_deviation(values)
            scores[name] = {"mean": plain(mean), "deviation": plain(deviation), "splits": plain(values)}
        note = {"note": self.note} if self.note else {}
        return {"n_splits": self.n_splits, "n_train": self.n_train, "n_test": self.n_test, **note, **scores}


def splits_of(
    model: Predictor, n_splits: int, per_class: int | None = None, by_group: bool = False
) -> BaseCrossValidator:
    """Return the random splits that show how much the score of a model depends on its training rows.

    ``per_class`` is the number of training rows of each class; None takes 70 % of the rows, or of the groups with
    ``by_group``, and classes of a single task keep their shares. Raise InputError if there are no classes to draw from.
    """
    is_of_classes = model.answers.classes is not None
    has_classes = is_of_classes and model.task_names is None
    if per_class is not None and not has_classes:
        what = "several tasks" if is_of_classes else "numbers"
        raise InputError(Message("{n_train} needs classes, but the model predicts {}: leave {n_train} out.", what))
    if by_group:
        return GroupShuffleSplit(n_splits, test_size=0.3, random_state=0)
    if per_class is not None:
        return PerClassSplits(per_class, n_splits=n_splits, random_state=0)
    kind = StratifiedShuffleSplit if has_classes else ShuffleSplit
    return kind(n_splits, test_size=0.3, random_state=0)


def check_splits(
    model: Predictor,
    y: np.ndarray,
    name: str,
    splits: BaseCrossValidator | ForwardSplits,
    groups: np.ndarray | None = None,
    remedy: str = "Name a column with more groups.",
) -> None:
    """Raise DataError, which names the rows ``name``, if their labels and groups cannot be split.

    ``remedy`` is for a class that no training row of a split has.
    """
    has_classes = model.answers.classes is not None and y.ndim == 1
    try:
        for train, test in splits.split(y, y, groups):
            lost = np.setdiff1d(y[test], y[train]) if has_classes else y[:0]
            if lost.size:
                raise DataError(f"a split has all rows of class {lost[0]!s} in its test part. {remedy}")
    except ValueError as error:
        of_each = " of every class" if has_classes else ""
        if isinstance(error, DataError):
            raise DataError(Message("{}: {}", name, error)) from error
        raise DataError(Message("{}: {} {n_splits} needs at least two rows{}.", name, error, of_each)) from error


def repeated_splits(
    estimator: BaseEstimator,
    X: Rows,
    y: np.ndarray,
    splits: BaseCrossValidator | ForwardSplits,
    groups: ArrayLike | None = None,
    covariates: CovariateTable | None = None,
) -> SplitScores:
    """Train a copy of the estimator on each split and score it on the test rows.

    Parameters
    ----------
    estimator : estimator
        A classifier with ``decision_function``, or a regressor.
    X : array or CSR matrix of shape (n, bins)
        The rows.
    y : ndarray of shape (n,) or (n, t)
        Labels or targets; a column per task for several, with NaN where one is missing.
    splits : cross-validator
        A splitter of scikit-learn's interface, such as ``PerClassSplits(15)``, ``ForwardSplits(dates)`` or
        ``ShuffleSplit()``.
    groups : array-like of shape (n,) or None, default=None
        The group of each row. The splitter, and the selection of settings within a split, keep groups together.
    covariates : CovariateTable or None, default=None
        Covariates of the rows, for a model that takes them.

    Returns
    -------
    SplitScores
        The scores of each split.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> from chimap.data.split import PerClassSplits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("chi2", alpha=1.0)
    >>> repeated = repeated_splits(model, X, y, PerClassSplits(30, n_splits=3, random_state=0))
    >>> class_rate = repeated.scores["class_rate"]
    >>> repeated.n_train, bool(class_rate.mean() > 0.9), bool(class_rate.std() < 0.03)
    (300, True, True)
    """
    y = np.asarray(y)
    measure = _of_tasks if y.ndim == 2 else _of_classes if is_classifier(estimator) else _of_numbers
    scores, sizes = [], []
    for train, test in splits.split(X, y, groups):
        fit_params = {} if groups is None else {"groups": np.asarray(groups)[train]}
        if covariates is None:
            model = clone(estimator).fit(_arrays.take_rows(X, train), y[train], **fit_params)
            tested: Rows | Source = _arrays.take_rows(X, test)
        else:
            rows = ArraySource(_arrays.take_rows(X, train), y[train])
            model = clone(estimator).fit_source(beside(rows, covariates.take(train)), **fit_params)
            tested = beside(ArraySource(_arrays.take_rows(X, test)), covariates.take(test))
        scores.append(measure(model, tested, y[test]))
        sizes.append((len(train), len(test)))
    return SplitScores({name: np.array([values[name] for values in scores]) for name in scores[0]}, *sizes[0])


def _of_classes(model: BaseEstimator, X: Rows | Source, y: np.ndarray) -> dict[str, float]:
    scores = np.asarray(model.decision_function(X))
    outputs = class_scores(scores[:, None]) if scores.ndim == 1 else scores
    metrics = classification_metrics(y, model.classes_[outputs.argmax(axis=1)], classes=model.classes_)
    ranking = ranking_metrics(y, outputs, metrics.classes)
    values = metrics.accuracy, metrics.balanced_accuracy, ranking.mean_average_precision
    return dict(zip(_OF_CLASSES, values, strict=True))


def _of_numbers(model: BaseEstimator, X: Rows | Source, y: np.ndarray) -> dict[str, float]:
    metrics = regression_metrics(y, model.predict(X))
    return {"R2": metrics.r2, "RMSE": metrics.rmse, "MAE": metrics.mae}


def _of_tasks(model: BaseEstimator, X: Rows | Source, Y: np.ndarray) -> dict[str, float]:
    has_labels = is_classifier(model)
    outputs = model.decision_function(X) if has_labels else model.predict(X)
    metrics = task_metrics(Y, outputs, [str(task) for task in range(Y.shape[1])], has_labels)
    return {name: metrics.mean(name) for name in metrics.measures}


def _mean_and_deviation(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else float("nan")
