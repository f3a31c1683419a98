"""Precision and recall of rankings: average precision of each class, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.metrics import precision_recall_curve

from chimap._types import JSON, ArrayLike
from chimap._validation import DataError, check_choice
from chimap.report._plain import plain

GRID = np.linspace(0, 1, 101)  # recalls at which curves of several classes are averaged


class PrecisionRecall(NamedTuple):
    """Precision of the rows above each score, and the share of the class among them, by rising recall; (m,) each."""

    recall: np.ndarray
    precision: np.ndarray

    def interpolated(self, recalls: np.ndarray) -> np.ndarray:
        """The best precision at these recalls or beyond, 0 beyond the last."""
        best = np.maximum.accumulate(self.precision[::-1])[::-1]
        place = np.searchsorted(self.recall, recalls - 1e-12)
        return np.append(best, 0.0)[place]


def precision_recall(is_class: ArrayLike, scores: ArrayLike) -> PrecisionRecall:
    """The curve of scores (n,), higher for the class; is_class (n,): true or 1, false or -1, and 0 for rows that do not
    count. Rows of equal scores come in together. Raises DataError without rows of the class.

    >>> curve = precision_recall([1, -1, 1], [0.9, 0.8, 0.7])
    >>> curve.recall.tolist(), curve.precision.round(3).tolist()
    ([0.5, 0.5, 1.0], [1.0, 0.5, 0.667])
    """
    signs, scores = np.asarray(is_class), np.asarray(scores, dtype=np.float64)
    if signs.shape != scores.shape or signs.ndim != 1:
        raise DataError(
            f"is_class and scores must have one entry a row; got shapes {signs.shape} and {scores.shape}."
        )
    if not np.isfinite(scores).all():
        raise DataError(
            f"scores, row {int(np.flatnonzero(~np.isfinite(scores))[0])}: not a finite number, so rows have no order."
        )
    counted = np.ones(signs.size, bool) if signs.dtype == bool else signs != 0
    positive = signs[counted] > 0
    if not positive.any():
        raise DataError(f"none of {signs.size} rows is of the class, so there is nothing to find; add some.")
    precision, recall, _ = precision_recall_curve(positive, scores[counted])
    return PrecisionRecall(recall[-2::-1], precision[-2::-1])


def _eleven_points(curve: PrecisionRecall) -> float:
    return float(curve.interpolated(np.linspace(0, 1, 11)).mean())


def _area(curve: PrecisionRecall) -> float:
    return float(np.diff(curve.recall, prepend=0.0) @ curve.interpolated(curve.recall))


def _steps(curve: PrecisionRecall) -> float:
    return float(np.diff(curve.recall, prepend=0.0) @ curve.precision)


METHODS: dict[str, Callable[[PrecisionRecall], float]] = {
    "area": _area, "11-point": _eleven_points, "steps": _steps,
}  # fmt: skip


def average_precision(is_class: ArrayLike, scores: ArrayLike, method: str = "area") -> float:
    """Average precision of scores (n,) for a class; see ``precision_recall`` for the arguments.

    method: "11-point", the mean of the best precision at recall t or beyond over t = 0, 0.1, ..., 1 (PASCAL VOC until
    2009); "area", the area below that best precision (VOC from 2010 on); "steps", sum (R_m - R_m-1) P_m without the
    best (scikit-learn).

    Source: Everingham and others, The PASCAL visual object classes challenge, 2010, section 4.2; its development kits.

    >>> round(average_precision([1, -1, 1], [0.9, 0.8, 0.7], "11-point"), 4)
    0.8485
    """
    check_choice(method, "method", tuple(METHODS))
    return METHODS[method](precision_recall(is_class, scores))


@dataclass(frozen=True, eq=False)
class RankingMetrics:
    """How well the scores of each class bring its rows to the top.

    classes: the k classes. curves: of each, None without rows. average_precision: (k,), NaN without rows. method: of
    it.
    """

    classes: tuple[object, ...]
    curves: tuple[PrecisionRecall | None, ...]
    average_precision: np.ndarray
    method: str = "area"

    @property
    def mean_average_precision(self) -> float:
        """mAP: the mean over the classes that have rows."""
        return float(np.nanmean(self.average_precision))

    @property
    def mean_curve(self) -> PrecisionRecall:
        """Mean over the classes of the best precision at each of 101 recalls, or beyond."""
        curves = [curve.interpolated(GRID) for curve in self.curves if curve is not None]
        return PrecisionRecall(GRID, np.mean(curves, axis=0))

    def ordered(self) -> np.ndarray:
        """Indices of the classes that have rows, best average precision first."""
        order = np.argsort(-self.average_precision, kind="stable")
        return order[np.isfinite(self.average_precision[order])]

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        return {
            "mean_average_precision": plain(self.mean_average_precision),
            "method": self.method,
            "average_precision": {
                str(name): plain(float(value))
                for name, value in zip(self.classes, self.average_precision, strict=True)
            },
        }


def ranking_metrics(
    y_true: ArrayLike, scores: ArrayLike, classes: Sequence[object], method: str = "area"
) -> RankingMetrics:
    """Rank the rows by the scores (n, k) of each of k ``classes``.

    y_true: labels (n,); or (n, k) with 1 where a row is of the class, -1 where not and 0 where it does not count.
    Raises DataError for shapes that do not fit, and where no class has rows.

    >>> metrics = ranking_metrics(["a", "b"], [[0.2, 0.1], [0.1, 0.3]], ["a", "b"])
    >>> metrics.average_precision.tolist(), metrics.mean_average_precision
    ([1.0, 1.0], 1.0)
    """
    check_choice(method, "method", tuple(METHODS))
    y, scores = np.asarray(y_true), np.asarray(scores)
    if scores.shape != (len(y), len(classes)) or y.ndim > 2 or (y.ndim == 2 and y.shape != scores.shape):
        raise DataError(
            f"scores must be (rows, classes) = {(len(y), len(classes))}, as the labels are; got {scores.shape} and "
            f"labels {y.shape}."
        )
    signs = y if y.ndim == 2 else np.stack([np.where(y == name, 1, -1) for name in classes], axis=1)
    curves = tuple(
        precision_recall(signs[:, k], scores[:, k]) if (signs[:, k] > 0).any() else None
        for k in range(len(classes))
    )
    if not any(curves):
        raise DataError("no row is of any of the classes, so there is nothing to rank.")
    values = np.array([np.nan if curve is None else METHODS[method](curve) for curve in curves])
    return RankingMetrics(tuple(classes), curves, values, method)
