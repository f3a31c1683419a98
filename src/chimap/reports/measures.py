"""Measures of predicted labels, numbers and tasks, with confidence intervals, and baselines to compare them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import binomtest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    mean_absolute_error,
    mean_squared_error,
    precision_recall_fscore_support,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from chimap._errors import InputError
from chimap._formatting import plain
from chimap._types import JSON, ArrayLike
from chimap._validation import DataError
from chimap.data.label_kinds import is_text, label_type
from chimap.losses import Loss
from chimap.selection.scoring import explained

ANSWER_NAMES = ("y_true", "y_pred")


def checked_labels(y: ArrayLike, name: str) -> np.ndarray:
    """Return labels or numbers of shape (n,), n >= 1; a single column is flattened. Raises DataError for others."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"{name} must have one label or number per row, shape (n,); got shape {labels.shape}.")
    if labels.size == 0:
        raise DataError(f"{name} has 0 rows, so there is nothing to measure; hold out more rows.")
    return labels


def checked_pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return true and predicted labels or numbers, (n,) each. Raises DataError if their lengths differ."""
    y_true, y_pred = checked_labels(y_true, "y_true"), checked_labels(y_pred, "y_pred")
    if y_true.size != y_pred.size:
        raise DataError(
            f"y_true has {y_true.size} rows and y_pred {y_pred.size}; pass the labels and the predictions "
            "of the same rows."
        )
    return y_true, y_pred


def checked_numbers(y: np.ndarray, name: str) -> np.ndarray:
    """Convert to float64. Raises DataError for text, and for NaN or infinity, naming the row."""
    try:
        values = y.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must hold numbers for a regression; got {y.dtype}.") from None
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(f"{name}, row {bad[0]}: {values[bad[0]]}, but targets and predictions must be finite numbers.")
    return values


Interval = tuple[float, float]


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return Wilson's confidence interval of a proportion p, after ``successes`` in ``n`` trials.

    With p_hat = successes / n and z the normal quantile at (1 + confidence) / 2, it holds all p with

        |p_hat - p| <= z sqrt(p (1 - p) / n).

    It stays within [0, 1] and keeps its confidence near 0 and 1, where p_hat +- z s does not.

    Parameters
    ----------
    successes : int
        Number of successes.
    n : int
        Number of trials, at least 1.
    confidence : float, default=0.95
        Probability that the interval contains p, between 0 and 1.

    Returns
    -------
    tuple of float
        The lower and the upper end.

    Raises
    ------
    ValueError
        Unless 0 <= successes <= n, n >= 1 and 0 < confidence < 1.

    References
    ----------
    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Examples
    --------
    >>> tuple(round(end, 4) for end in wilson_interval(9, 10))
    (0.5958, 0.9821)
    """
    if not (n >= 1 and 0 <= successes <= n):
        raise InputError(f"successes and n must satisfy 0 <= successes <= n, n >= 1; got {successes} and {n}.")
    normal_quantile(confidence)
    lower, upper = binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return float(lower), float(upper)


def normal_quantile(confidence: float) -> float:
    """Return z with P(|N(0, 1)| <= z) = ``confidence``. Raises ValueError unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}.")
    return float(ndtri((1 + confidence) / 2))


def mean_interval(values: np.ndarray, z: float) -> Interval:
    """Return mean +- z s / sqrt(n); NaN for fewer than two values."""
    if values.size < 2:
        return float("nan"), float("nan")
    half = z * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean() - half), float(values.mean() + half)


@dataclass(frozen=True)
class Baseline:
    """The result of a prediction that does not use the histograms.

    Parameters
    ----------
    name : str
        What it predicts, such as "always answering “cat”".
    value : float
        Its accuracy (classification) or its root mean squared error (regression), on the same rows as the model.
    """

    name: str
    value: float

    def as_dict(self) -> JSON:
        """Return name and value as JSON types."""
        return {"name": self.name, "value": plain(float(self.value))}


def majority_baseline(y_train: ArrayLike, y_true: ArrayLike) -> Baseline:
    """Return the accuracy of always predicting the most frequent training label.

    Parameters
    ----------
    y_train : array-like of shape (m,)
        Labels of the training rows.
    y_true : array-like of shape (n,)
        Labels of the rows to predict.

    Returns
    -------
    Baseline
        The label and its accuracy on ``y_true``.

    Raises
    ------
    DataError
        If one of the arrays is empty or has more than one label per row.

    Examples
    --------
    >>> majority_baseline(["cat", "cat", "dog"], ["cat", "dog"])
    Baseline(name='always answering “cat”', value=0.5)
    """
    classes, counts = np.unique(checked_labels(y_train, "y_train"), return_counts=True)
    answer = classes[np.argmax(counts)]
    return Baseline(f"always answering “{answer}”", float(np.mean(checked_labels(y_true, "y_true") == answer)))


def mean_baseline(y_train: ArrayLike, y_true: ArrayLike) -> Baseline:
    """Return the root mean squared error of always predicting the mean of the training targets.

    Parameters
    ----------
    y_train : array-like of shape (m,)
        Targets of the training rows.
    y_true : array-like of shape (n,)
        Targets of the rows to predict.

    Returns
    -------
    Baseline
        The mean and its root mean squared error on ``y_true``.

    Raises
    ------
    DataError
        If one of the arrays is empty, is not one-dimensional, or holds text, NaN or infinity.

    Examples
    --------
    >>> mean_baseline([1.0, 3.0], [1.0, 3.0])
    Baseline(name='always answering the mean, 2', value=1.0)
    """
    answer = checked_numbers(checked_labels(y_train, "y_train"), "y_train").mean()
    error = checked_numbers(checked_labels(y_true, "y_true"), "y_true") - answer
    return Baseline(f"always answering the mean, {answer:.4g}", float(np.sqrt(np.mean(error**2))))


_UNEQUAL_RATIO = 3  # rows of the largest class over rows of the smallest, above which accuracy is a poor summary


class ConfusedPair(NamedTuple):
    """The rows of class ``true`` predicted as class ``predicted``: their number and their share of the true class."""

    true: object
    predicted: object
    rows: int
    share: float


@dataclass(frozen=True, eq=False)
class ClassificationMetrics:
    """Measures of predicted labels.

    Parameters
    ----------
    classes : tuple
        The k classes, in the order of all arrays below.
    confusion : ndarray of shape (k, k), int64
        Number of rows of true class i predicted as class j.
    precision : ndarray of shape (k,)
        Share of the rows predicted as a class that are of it; NaN if no row is predicted as the class.
    recall : ndarray of shape (k,)
        Share of the rows of a class that are predicted as it; NaN if no row is of the class.
    f1 : ndarray of shape (k,)
        Harmonic mean of precision and recall; NaN if no row is of the class or predicted as it.
    support : ndarray of shape (k,), int64
        Number of rows of each true class.
    confidence : float, default=0.95
        Confidence of ``interval``.
    auc : float or None, default=None
        For two classes with scores, the probability that a row of the second class scores above a row of the first.
    average_precision : float or None, default=None
        For two classes with scores, the average precision of the class of interest, sum (R_m - R_m-1) P_m.
    positive : int or None, default=None
        Index of the positive one of two classes, if it was named.
    """

    classes: tuple[object, ...]
    confusion: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray
    confidence: float = 0.95
    auc: float | None = None
    average_precision: float | None = None
    positive: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of predicted rows."""
        return int(self.support.sum())

    @property
    def is_unequal(self) -> bool:
        """Whether the largest class has over three times the rows of the smallest, so that accuracy says little."""
        return bool(self.support.max() > _UNEQUAL_RATIO * max(1, self.support.min()))

    @property
    def rarer(self) -> int:
        """Index of the class with the fewest rows; ties go to the last."""
        return int(self.support.size - 1 - np.argmin(self.support[::-1]))

    @property
    def of_interest(self) -> int:
        """Index of the class that is to be found: the positive one, if it was named, or else the rarer one."""
        return self.rarer if self.positive is None else self.positive

    @property
    def n_correct(self) -> int:
        """Number of rows whose predicted class is the true one."""
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of the rows that are predicted correctly."""
        return self.n_correct / self.n_rows

    @property
    def interval(self) -> Interval:
        """Wilson's confidence interval of the accuracy."""
        return wilson_interval(self.n_correct, self.n_rows, self.confidence)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the classes that have rows."""
        return float(np.nanmean(self.recall))

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes that have rows or were predicted."""
        return float(np.nanmean(self.f1))

    def as_dict(self) -> JSON:
        """Return all measures as JSON types, with None for undefined ratios."""
        columns = zip(self.classes, self.precision, self.recall, self.f1, self.support, strict=True)
        names = ("class", "precision", "recall", "f1", "support")
        return {
            "task": "classification",
            "rows": self.n_rows,
            "correct": self.n_correct,
            "accuracy": self.accuracy,
            "accuracy_interval": list(self.interval),
            "confidence": self.confidence,
            "balanced_accuracy": plain(self.balanced_accuracy),
            "macro_f1": plain(self.macro_f1),
            "auc": self.auc,
            "average_precision": self.average_precision,
            "rarer_class": plain(self.classes[self.rarer]) if self.is_unequal else None,
            "positive_class": None if self.positive is None else plain(self.classes[self.positive]),
            "per_class": [dict(zip(names, plain(row), strict=True)) for row in columns],
            "confusion": plain(self.confusion),
        }


def accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the share of correct labels, mean(y_true == y_pred).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_pred : array-like of shape (n,)
        Predicted labels.

    Returns
    -------
    float
        The accuracy, from 0 to 1.

    Raises
    ------
    DataError
        If there are no rows or the lengths differ.

    Examples
    --------
    >>> accuracy([0, 1, 1, 0], [0, 1, 0, 0])
    0.75
    """
    y_true, y_pred = checked_pair(y_true, y_pred)
    return float(accuracy_score(y_true, y_pred))


def classification_metrics(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    classes: Sequence[object] | None = None,
    scores: np.ndarray | None = None,
    confidence: float = 0.95,
    positive: object = None,
) -> ClassificationMetrics:
    """Measure predicted labels against true ones.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_pred : array-like of shape (n,)
        Predicted labels.
    classes : sequence or None, default=None
        The classes in the order to report them; classes without rows are kept. None takes all labels that occur,
        sorted.
    scores : ndarray of shape (n,) or None, default=None
        For two classes, scores that are higher for the second; they give ROC AUC and average precision.
    confidence : float, default=0.95
        Confidence of the interval of the accuracy.
    positive : label or None, default=None
        The positive one of two classes, whose average precision is measured; None for the rarer one.

    Returns
    -------
    ClassificationMetrics
        The confusion matrix and the measures that follow from it.

    Raises
    ------
    DataError
        If there are no rows, the lengths differ, a label is not among ``classes``, or there are fewer than two
        classes.

    Examples
    --------
    >>> classification_metrics(["a", "b", "b"], ["a", "b", "a"]).confusion.tolist()
    [[1, 0], [1, 1]]
    """
    y_true, y_pred = checked_pair(y_true, y_pred)
    normal_quantile(confidence)
    labels = _classes(y_true, y_pred, classes)
    confusion = confusion_matrix(y_true, y_pred, labels=labels)
    precision, recall, f1, support = precision_recall_fscore_support(
        y_true, y_pred, labels=labels, zero_division=np.nan
    )
    metrics = ClassificationMetrics(
        tuple(labels.tolist()),
        confusion,
        precision,
        recall,
        f1,
        support.astype(np.int64),
        confidence,
        positive=None if positive is None else labels.tolist().index(positive),
    )
    if scores is None or not support.all():  # a ranking needs rows of both classes
        return metrics
    of_interest = metrics.of_interest
    return replace(
        metrics,
        auc=float(roc_auc_score(y_true == labels[1], scores)),
        average_precision=float(
            average_precision_score(y_true == labels[of_interest], scores if of_interest == 1 else -scores)
        ),
    )


def most_confused(metrics: ClassificationMetrics, n: int = 10) -> list[ConfusedPair]:
    """Return the ``n`` off-diagonal cells of the confusion matrix with the most rows, in descending order.

    Parameters
    ----------
    metrics : ClassificationMetrics
        Metrics with the confusion matrix.
    n : int, default=10
        Number of cells.

    Returns
    -------
    list of ConfusedPair
        The pairs of classes with their rows; ties are ordered by descending share of the true class.

    Examples
    --------
    >>> metrics = classification_metrics(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    >>> most_confused(metrics)
    [ConfusedPair(true='cat', predicted='dog', rows=1, share=0.5)]
    """
    wrong = metrics.confusion - np.diag(np.diag(metrics.confusion))
    true, predicted = np.nonzero(wrong)
    counts = wrong[true, predicted]
    shares = counts / metrics.support[true]
    order = np.lexsort((predicted, true, -shares, -counts))[:n]
    return [
        ConfusedPair(metrics.classes[true[i]], metrics.classes[predicted[i]], int(counts[i]), float(shares[i]))
        for i in order
    ]


def _classes(y_true: np.ndarray, y_pred: np.ndarray, classes: Sequence[object] | None) -> np.ndarray:
    if is_text(y_true) != is_text(y_pred):
        raise DataError(
            f"y_true holds {label_type(y_true)} and y_pred {label_type(y_pred)}; pass both as the same kind of label."
        )
    seen = np.union1d(y_true, y_pred)
    labels = seen if classes is None else np.asarray(classes)
    unknown = seen[~np.isin(seen, labels)]
    if unknown.size:
        raise DataError(
            f"Label {unknown[0]!s} occurs in the rows but is not one of the {labels.size} classes; "
            "evaluate on rows of the classes that the model was fitted on."
        )
    if labels.size < 2:
        raise DataError(
            f"All {y_true.size} rows are of one class, {labels[0]!s}, so accuracy says nothing; "
            "evaluate on rows of at least two classes (shuffle before holding out)."
        )
    return labels


_BANDS = 10  # equal bands of probabilities


def bands_of(probabilities: np.ndarray, is_so: np.ndarray) -> list[tuple[float, float, int]]:
    """Return mean probability, share of the rows where it is so, and number of rows for each band of 0.1 with rows."""
    bands = np.minimum((probabilities * _BANDS).astype(int), _BANDS - 1)
    return [
        (float(probabilities[rows].mean()), float(is_so[rows].mean()), int(rows.sum()))
        for band in range(_BANDS)
        if (rows := bands == band).any()
    ]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions with their probabilities, to measure calibration.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Probability of each predicted class, between 0 and 1.
    right : ndarray of shape (n,), bool
        Whether each prediction is right.

    Raises
    ------
    DataError
        If there are no rows, the lengths differ, or a number is not a probability.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks (2017).

    Examples
    --------
    >>> reliability = Reliability(np.array([0.95, 0.95, 0.55, 0.55]), np.array([True, True, True, False]))
    >>> [(round(p, 2), share, rows) for p, share, rows in reliability.bands()], round(reliability.error, 3)
    ([(0.55, 0.5, 2), (0.95, 1.0, 2)], 0.05)
    """

    confidence: np.ndarray
    right: np.ndarray

    def __post_init__(self) -> None:
        shapes = np.shape(self.confidence), np.shape(self.right)
        if shapes[0] != shapes[1] or len(shapes[0]) != 1 or not shapes[0][0]:
            raise DataError(
                f"confidence and right must have one probability and one answer per row, shape (n,); got shapes "
                f"{shapes[0]} and {shapes[1]}."
            )
        if not np.all((self.confidence >= 0) & (self.confidence <= 1 + 1e-6)):
            raise DataError("confidence must lie between 0 and 1; pass probabilities, not scores.")

    def bands(self) -> list[tuple[float, float, int]]:
        """Return mean probability, share of right predictions and number of rows for each band of 0.1 that has rows."""
        return bands_of(self.confidence, self.right)

    @property
    def error(self) -> float:
        """Expected calibration error: mean over rows of |mean probability - share right| in the row's band."""
        return sum(rows * abs(probability - share) for probability, share, rows in self.bands()) / self.right.size

    def as_dict(self) -> JSON:
        """Return the error and the bands as JSON types."""
        names = ("probability", "share_right", "rows")
        return {
            "expected_calibration_error": plain(self.error),
            "bands": [dict(zip(names, band, strict=True)) for band in self.bands()],
        }


@dataclass(frozen=True, eq=False)
class RegressionMetrics:
    """Measures of predicted numbers, each with its confidence interval.

    Parameters
    ----------
    targets : ndarray of shape (n,), float64
        The targets y, for the figures; ``as_dict`` leaves them out.
    predictions : ndarray of shape (n,), float64
        The predictions, for the figures; ``as_dict`` leaves them out.
    r2 : float
        R² = 1 - mean(e^2) / mean((y - mean(y))^2) with e = prediction - target; NaN for constant targets.
    rmse : float
        Root mean squared error, in the unit of the target.
    mae : float
        Mean absolute error, in the unit of the target.
    r2_interval : tuple of float
        Interval of ``r2``; NaN for fewer than two rows.
    rmse_interval : tuple of float
        Interval of ``rmse``; NaN for fewer than two rows.
    mae_interval : tuple of float
        Interval of ``mae``; NaN for fewer than two rows.
    confidence : float, default=0.95
        Confidence of the intervals.
    of_loss : dict of str to float, default={}
        What the loss of the model is about: "d2", the share of the deviance that is explained, and the mean Poisson
        deviance, or the mean pinball loss and the share of the targets up to the quantile.
    """

    targets: np.ndarray
    predictions: np.ndarray
    r2: float
    rmse: float
    mae: float
    r2_interval: Interval
    rmse_interval: Interval
    mae_interval: Interval
    confidence: float = 0.95
    of_loss: dict[str, float] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of predicted rows."""
        return self.targets.size

    @property
    def residuals(self) -> np.ndarray:
        """Prediction - target, (n,): positive where the prediction is too high."""
        return self.predictions - self.targets

    def as_dict(self) -> JSON:
        """Return the measures as JSON types, with None for undefined numbers."""
        names = ("r2", "r2_interval", "rmse", "rmse_interval", "mae", "mae_interval", "confidence")
        head = {"task": "regression", "rows": self.n_rows}
        return head | plain(self.of_loss) | {name: plain(getattr(self, name)) for name in names}


def regression_metrics(
    y_true: ArrayLike, y_pred: ArrayLike, *, confidence: float = 0.95, loss: Loss | None = None
) -> RegressionMetrics:
    """Measure predicted numbers against true ones.

    The intervals are normal approximations for means over rows, without resampling. With z the normal quantile and s
    the standard deviation over the rows, the interval of MAE is mean(|e|) +- z s / sqrt(n), and the interval of RMSE
    goes between the square roots of the ends of the interval of mean(e^2). R2 is a ratio of two means, so its interval
    comes from the delta method, with s the standard deviation of
    (e^2 - (1 - R2) (y - mean(y))^2) / mean((y - mean(y))^2). The ends are clipped to the possible values: RMSE and MAE
    at 0, R2 at 1.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Targets.
    y_pred : array-like of shape (n,)
        Predictions.
    confidence : float, default=0.95
        Confidence of the intervals.
    loss : Loss or None, default=None
        The loss of the model, whose measures are added if it has its own.

    Returns
    -------
    RegressionMetrics
        The measures with their intervals.

    Raises
    ------
    DataError
        If there are no rows, the lengths differ, or a number is not finite.

    Examples
    --------
    >>> round(regression_metrics([1.0, 2.0, 3.0], [1.5, 2.0, 2.5]).r2, 3)
    0.75
    """
    y_true, y_pred = (
        checked_numbers(y, name) for y, name in zip(checked_pair(y_true, y_pred), ANSWER_NAMES, strict=True)
    )
    z = normal_quantile(confidence)
    error, spread = y_pred - y_true, (y_true - y_true.mean()) ** 2
    variance = spread.mean()
    mse = mean_squared_error(y_true, y_pred)
    r2 = 1 - mse / variance if variance > 0 else np.nan
    lower, upper = mean_interval(error**2, z)
    r2_rows = 1 - (error**2 - (1 - r2) * (spread - variance)) / variance if variance > 0 else error * np.nan
    r2_lower, r2_upper = mean_interval(r2_rows, z)
    mae_lower, mae_upper = mean_interval(np.abs(error), z)
    return RegressionMetrics(
        targets=y_true,
        predictions=y_pred,
        r2=float(r2),
        rmse=float(np.sqrt(mse)),
        mae=float(mean_absolute_error(y_true, y_pred)),
        r2_interval=(r2_lower, float(np.minimum(r2_upper, 1.0))),
        rmse_interval=(float(np.sqrt(np.maximum(lower, 0.0))), float(np.sqrt(upper))),
        mae_interval=(float(np.maximum(mae_lower, 0.0)), mae_upper),
        confidence=confidence,
        of_loss={} if loss is None else _of_loss(loss, y_true, y_pred),
    )


def _of_loss(loss: Loss, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return the measures of a loss that has its own, D^2 first."""
    measures = loss.measures(y, predicted)
    return {"d2": explained(loss, y, predicted[:, None]), **measures} if measures else {}


def quantile_metrics(y: np.ndarray, predicted: np.ndarray, loss: Loss) -> TaskMetrics:
    """Measure predicted quantiles (n, q) of the targets (n,), one after the other.

    The measures are the share of the pinball loss that is explained, the mean pinball loss, and the share of the
    targets up to each quantile.

    >>> from chimap.losses import Quantile
    >>> y = np.arange(10.0)
    >>> metrics = quantile_metrics(y, np.tile([0.5, 8.5], (10, 1)), Quantile((0.1, 0.9)))
    >>> metrics.measures["share below"].tolist()
    [0.1, 0.9]
    """
    losses = [loss.of_score(place) for place in range(loss.n_scores)]
    found = [_of_loss(one, y, predicted[:, place]) for place, one in enumerate(losses)]
    names = {"D2": "d2", "pinball loss": "mean_pinball_loss", "share below": "share_below"}
    measures = {name: np.array([values[key] for values in found]) for name, key in names.items()}
    n_seen = np.full(loss.n_scores, y.size)
    return TaskMetrics(loss.score_names or [], measures, n_seen, y.size, kind="quantiles")


_MEASURES_OF_LABELS = ("ROC AUC", "average precision", "balanced accuracy")
_MEASURES_OF_NUMBERS = ("R2", "RMSE", "MAE")


@dataclass(frozen=True, eq=False)
class TaskMetrics:
    """Measures of each of several tasks or targets.

    Parameters
    ----------
    names : list of str
        Names of the t tasks.
    measures : dict of str to ndarray of shape (t,)
        The measures by name: "ROC AUC", "average precision" and "balanced accuracy" of labels 0 and 1, or "R2", "RMSE"
        and "MAE" of numbers; NaN where a measure is undefined.
    n_seen : ndarray of shape (t,)
        Number of rows with a label or target for each task.
    n_rows : int
        Number of all rows.
    n_positive : ndarray of shape (t,) or None, default=None
        Number of rows of label 1 for each task; None for numbers.
    kind : str, default="tasks"
        What they are, in words: "tasks", or the "quantiles" of one target.

    Examples
    --------
    >>> Y, outputs = np.array([[0, 1], [1, np.nan], [1, 0]]), np.array([[-1.0, 1], [1, 2], [2, -1]])
    >>> metrics = task_metrics(Y, outputs, ["a", "b"])
    >>> metrics.mean("ROC AUC"), metrics.n_seen.tolist(), metrics.n_positive.tolist()
    (1.0, [3, 2], [2, 1])
    """

    names: list[str]
    measures: dict[str, np.ndarray]
    n_seen: np.ndarray
    n_rows: int
    n_positive: np.ndarray | None = None
    kind: str = "tasks"

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over the tasks for which it is defined; NaN if there is none.

        Parameters
        ----------
        measure : str
            Name of the measure, a key of ``measures``.
        """
        values = self.measures[measure]
        is_defined = np.isfinite(values)
        return float(values[is_defined].mean()) if is_defined.any() else float("nan")

    @property
    def first(self) -> str:
        """Name of the first, leading measure."""
        return next(iter(self.measures))

    def weakest_first(self) -> np.ndarray:
        """Return the indices of the tasks by ascending leading measure; tasks without it come last."""
        return np.argsort(self.measures[self.first], kind="stable")

    def as_dict(self) -> JSON:
        """Return the measures as JSON types."""
        tasks = [
            {"name": name, "rows": int(self.n_seen[i])}
            | ({} if self.n_positive is None else {"positive": int(self.n_positive[i])})
            | {measure: plain(float(values[i])) for measure, values in self.measures.items()}
            for i, name in enumerate(self.names)
        ]
        kind = "multioutput" if self.n_positive is None else "multilabel"
        means = {measure: plain(self.mean(measure)) for measure in self.measures}
        return {"task": kind, "rows": self.n_rows, "means": means, "tasks": tasks}


def task_metrics(Y: np.ndarray, outputs: np.ndarray, names: list[str], is_classification: bool = True) -> TaskMetrics:
    """Measure the outputs of several tasks or targets.

    Parameters
    ----------
    Y : ndarray of shape (n, t)
        Labels 0 and 1, or targets; NaN where one is missing.
    outputs : ndarray of shape (n, t)
        Scores that are positive for label 1, or predicted targets.
    names : list of str
        Names of the t tasks.
    is_classification : bool, default=True
        Whether ``Y`` holds labels rather than targets.

    Returns
    -------
    TaskMetrics
        The measures of each task, over the rows in which it is known.

    Examples
    --------
    >>> Y = np.array([[1.0, 0.0], [3.0, np.nan], [5.0, 4.0]])
    >>> predictions = np.array([[1.0, 0.0], [3.0, 9.0], [5.0, 2.0]])
    >>> task_metrics(Y, predictions, ["sugar", "acid"], is_classification=False).measures["MAE"].tolist()
    [0.0, 1.0]
    """
    seen = ~np.isnan(Y)
    measure_names, measure = (
        (_MEASURES_OF_LABELS, _of_labels) if is_classification else (_MEASURES_OF_NUMBERS, _of_numbers)
    )
    values = np.full((len(names), len(measure_names)), np.nan)
    for j, rows in enumerate(seen.T):
        y, f = Y[rows, j], outputs[rows, j]
        if y.size > 1 and not (is_classification and np.all(y == y[0])):
            values[j] = measure(y, f)
    measures = dict(zip(measure_names, values.T, strict=True))
    positive = (Y == 1).sum(axis=0) if is_classification else None
    return TaskMetrics(names, measures, seen.sum(axis=0), Y.shape[0], positive)


def _of_labels(y: np.ndarray, f: np.ndarray) -> tuple[float, ...]:
    return roc_auc_score(y, f), average_precision_score(y, f), balanced_accuracy_score(y, f > 0)


def _of_numbers(y: np.ndarray, f: np.ndarray) -> tuple[float, ...]:
    return r2_score(y, f), root_mean_squared_error(y, f), mean_absolute_error(y, f)
