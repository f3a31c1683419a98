"""How good predictions are, and how sure of that their number lets us be.

What scikit-learn measures is taken from scikit-learn; the intervals are added here. All intervals are for
rows drawn independently from the population that the model will meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    confusion_matrix,
    mean_absolute_error,
    mean_squared_error,
    precision_recall_fscore_support,
    roc_auc_score,
)

from chimap._validation import DataError
from chimap.report._plain import plain

Interval = tuple[float, float]
_UNEQUAL = 3  # times the rows of the smallest class that the largest may have before accuracy says little


class ConfusedPair(NamedTuple):
    """Rows of class ``true`` that were taken for ``predicted``: how many, and their share of the class."""

    true: Any
    predicted: Any
    rows: int
    share: float


@dataclass(frozen=True)
class Baseline:
    """What one gets without looking at the histograms.

    name: what it does, "always answering 'cat'".
    value: its accuracy (classification) or its root mean squared error (regression), on the same rows.
    """

    name: str
    value: float

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"name": self.name, "value": plain(float(self.value))}


@dataclass(frozen=True, eq=False)
class ClassificationMetrics:
    """Counts of right and wrong answers, and what follows from them.

    classes: the k classes, in the order of every array below.
    confusion: rows of true class i answered as class j, (k, k) int64.
    precision, recall, f1: of each class, (k,); NaN where nothing was predicted as, or nothing is, the class.
    support: rows of each true class, (k,) int64.
    confidence: of ``interval``.
    auc: of two classes, the probability that a row of the second scores above one of the first; None without scores.
    average_precision: of two classes, that of the rarer one, sum (R_m - R_m-1) P_m; None without scores.
    """

    classes: tuple[Any, ...]
    confusion: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray
    confidence: float = 0.95
    auc: float | None = None
    average_precision: float | None = None

    @property
    def n_rows(self) -> int:
        """Rows that were predicted."""
        return int(self.support.sum())

    @property
    def is_unequal(self) -> bool:
        """Whether the largest class has over three times the rows of the smallest: accuracy then says little."""
        return bool(self.support.max() > _UNEQUAL * max(1, self.support.min()))

    @property
    def rarer(self) -> int:
        """Place of the class with the fewest rows; of equals the last."""
        return int(self.support.size - 1 - np.argmin(self.support[::-1]))

    @property
    def n_correct(self) -> int:
        """Rows whose predicted class is the true one."""
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of the rows that are right."""
        return self.n_correct / self.n_rows

    @property
    def interval(self) -> Interval:
        """Wilson's interval of the accuracy."""
        return wilson_interval(self.n_correct, self.n_rows, self.confidence)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the classes that have rows."""
        return float(np.nanmean(self.recall))

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes that have rows or were predicted."""
        return float(np.nanmean(self.f1))

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types; None where a ratio is not defined."""
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
            "per_class": [dict(zip(names, plain(row), strict=True)) for row in columns],
            "confusion": plain(self.confusion),
        }


@dataclass(frozen=True, eq=False)
class RegressionMetrics:
    """Sizes of the errors, each with its interval.

    targets, predictions: (n,) float64, for the figures; ``as_dict`` leaves them out.
    r2: 1 - mean(e^2) / mean((y - mean(y))^2) with e = prediction - target; NaN for constant targets.
    rmse, mae: root mean squared and mean absolute error, in the unit of the target.
    r2_interval, rmse_interval, mae_interval: at ``confidence``; NaN for fewer than two rows.
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

    @property
    def n_rows(self) -> int:
        """Rows that were predicted."""
        return self.targets.size

    @property
    def residuals(self) -> np.ndarray:
        """Prediction - target, (n,): positive where the model says too much."""
        return self.predictions - self.targets

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types; None where a number is not defined."""
        names = ("r2", "r2_interval", "rmse", "rmse_interval", "mae", "mae_interval", "confidence")
        head = {"task": "regression", "rows": self.n_rows}
        return head | {name: plain(getattr(self, name)) for name in names}


def accuracy(y_true: Any, y_pred: Any) -> float:
    """Share of equal labels: mean(y_true == y_pred), both (n,). DataError for no rows or unequal lengths.

    >>> accuracy([0, 1, 1, 0], [0, 1, 0, 0])
    0.75
    """
    y_true, y_pred = _aligned(y_true, y_pred)
    return float(accuracy_score(y_true, y_pred))


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Interval of a share p of which ``successes`` of ``n`` were seen.

    All p with |p_hat - p| <= z sqrt(p (1 - p) / n), z the normal quantile at (1 + confidence) / 2. It stays
    in [0, 1] and holds its confidence near 0 and 1, where p_hat +- z s does not. ValueError unless
    0 <= successes <= n, n >= 1 and 0 < confidence < 1. Wilson, JASA 22 (1927).

    >>> tuple(round(end, 4) for end in wilson_interval(9, 10))
    (0.5958, 0.9821)
    """
    if not (n >= 1 and 0 <= successes <= n):
        raise ValueError(f"successes and n must fulfil 0 <= successes <= n, n >= 1; got {successes} and {n}.")
    z = _normal_quantile(confidence)
    p = successes / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    lower = 0.0 if successes == 0 else float(centre - half)
    upper = 1.0 if successes == n else float(centre + half)
    return lower, upper


def classification_metrics(
    y_true: Any,
    y_pred: Any,
    *,
    classes: Sequence[Any] | None = None,
    scores: np.ndarray | None = None,
    confidence: float = 0.95,
) -> ClassificationMetrics:
    """Measure predicted against true labels, both (n,).

    ``classes`` fixes the order and adds classes without rows; by default all labels that occur, sorted. ``scores``
    (n,), of two classes: the higher, the more the second.
    DataError for no rows, unequal lengths, labels outside ``classes``, or fewer than two classes in all.

    >>> classification_metrics(["a", "b", "b"], ["a", "b", "a"]).confusion.tolist()
    [[1, 0], [1, 1]]
    """
    y_true, y_pred = _aligned(y_true, y_pred)
    _normal_quantile(confidence)
    labels = _classes(y_true, y_pred, classes)
    confusion = confusion_matrix(y_true, y_pred, labels=labels)
    precision, recall, f1, support = precision_recall_fscore_support(
        y_true, y_pred, labels=labels, zero_division=np.nan
    )
    found = ClassificationMetrics(
        tuple(labels.tolist()), confusion, precision, recall, f1, support.astype(np.int64), confidence
    )
    if scores is None or not support.all():  # of one class alone there is nothing to rank
        return found
    towards = scores if found.rarer == 1 else -scores
    return replace(
        found,
        auc=float(roc_auc_score(y_true == labels[1], scores)),
        average_precision=float(average_precision_score(y_true == labels[found.rarer], towards)),
    )


def most_confused(metrics: ClassificationMetrics, n: int = 10) -> list[ConfusedPair]:
    """The ``n`` cells off the diagonal with the most rows, most first (of equals the larger share)."""
    wrong = metrics.confusion - np.diag(np.diag(metrics.confusion))
    true, predicted = np.nonzero(wrong)
    counts = wrong[true, predicted]
    shares = counts / metrics.support[true]
    order = np.lexsort((predicted, true, -shares, -counts))[:n]
    return [
        ConfusedPair(
            metrics.classes[true[i]], metrics.classes[predicted[i]], int(counts[i]), float(shares[i])
        )
        for i in order
    ]


def regression_metrics(y_true: Any, y_pred: Any, *, confidence: float = 0.95) -> RegressionMetrics:
    """Measure predicted against true numbers, both (n,).

    The intervals are normal-theory ones for means over rows, without resampling: mean(|e|) +- z s / sqrt(n);
    for RMSE the square roots of the ends of the interval of mean(e^2); for R2, a ratio of two means, the
    delta method, s being that of (e^2 - (1 - R2) (y - mean(y))^2) / mean((y - mean(y))^2). Ends are cut to
    what can be: RMSE and MAE at 0, R2 at 1. DataError for no rows, unequal lengths, or numbers that are not
    finite.

    >>> round(regression_metrics([1.0, 2.0, 3.0], [1.5, 2.0, 2.5]).r2, 3)
    0.75
    """
    y_true, y_pred = (_numbers(y, name) for y, name in zip(_aligned(y_true, y_pred), _NAMES, strict=True))
    z = _normal_quantile(confidence)
    error, spread = y_pred - y_true, (y_true - y_true.mean()) ** 2
    variance = spread.mean()
    mse = mean_squared_error(y_true, y_pred)
    r2 = 1 - mse / variance if variance > 0 else np.nan
    lower, upper = _mean_interval(error**2, z)
    r2_rows = 1 - (error**2 - (1 - r2) * (spread - variance)) / variance if variance > 0 else error * np.nan
    r2_lower, r2_upper = _mean_interval(r2_rows, z)
    mae_lower, mae_upper = _mean_interval(np.abs(error), z)
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
    )


def majority_baseline(y_train: Any, y_true: Any) -> Baseline:
    """Accuracy on ``y_true`` (n,) of answering with the most frequent label of ``y_train`` (m,) always."""
    classes, counts = np.unique(_labels(y_train, "y_train"), return_counts=True)
    answer = classes[np.argmax(counts)]
    return Baseline(f"always answering “{answer}”", float(np.mean(_labels(y_true, "y_true") == answer)))


def mean_baseline(y_train: Any, y_true: Any) -> Baseline:
    """Root mean squared error on ``y_true`` (n,) of answering with the mean of ``y_train`` (m,) always."""
    answer = _numbers(_labels(y_train, "y_train"), "y_train").mean()
    error = _numbers(_labels(y_true, "y_true"), "y_true") - answer
    return Baseline(f"always answering the mean, {answer:.4g}", float(np.sqrt(np.mean(error**2))))


_NAMES = ("y_true", "y_pred")


def _labels(y: Any, name: str) -> np.ndarray:
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"{name} must have one label or number a row, shape (n,); got shape {labels.shape}.")
    if labels.size == 0:
        raise DataError(f"{name} has 0 rows, so there is nothing to measure; hold out more rows.")
    return labels


def _aligned(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    y_true, y_pred = _labels(y_true, "y_true"), _labels(y_pred, "y_pred")
    if y_true.size != y_pred.size:
        raise DataError(
            f"y_true has {y_true.size} rows and y_pred {y_pred.size}; pass the labels and the predictions "
            "of the same rows."
        )
    return y_true, y_pred


def _classes(y_true: np.ndarray, y_pred: np.ndarray, classes: Sequence[Any] | None) -> np.ndarray:
    if y_true.dtype.kind in "US" and y_pred.dtype.kind not in "USO":
        raise DataError(f"y_true holds text and y_pred {y_pred.dtype}; give both as the same kind of label.")
    seen = np.union1d(y_true, y_pred)
    labels = seen if classes is None else np.asarray(classes)
    unknown = seen[~np.isin(seen, labels)]
    if unknown.size:
        raise DataError(
            f"Label {unknown[0]!s} occurs in the rows but not among the {labels.size} classes; "
            "evaluate on rows of the classes that the model was fitted on."
        )
    if labels.size < 2:
        raise DataError(
            f"All {y_true.size} rows are of one class, {labels[0]!s}, so accuracy says nothing; "
            "evaluate on rows of two classes or more (shuffle before holding out)."
        )
    return labels


def _numbers(y: np.ndarray, name: str) -> np.ndarray:
    try:
        values = y.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must hold numbers for a regression; got {y.dtype}.") from None
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(f"{name}, row {bad[0]}: {values[bad[0]]}. Targets and predictions must be finite.")
    return values


def _normal_quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}.")
    return float(ndtri((1 + confidence) / 2))


def _mean_interval(values: np.ndarray, z: float) -> Interval:
    """mean +- z s / sqrt(n)."""
    if values.size < 2:
        return float("nan"), float("nan")
    half = z * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean() - half), float(values.mean() + half)
