"""Precision and recall of rankings: the average precision of each class, and the mean over classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.metrics import precision_recall_curve

from chimap._formatting import plain
from chimap._types import JSON, ArrayLike
from chimap._validation import DataError, check_choice

GRID = np.linspace(0, 1, 101)  # recalls at which curves of several classes are averaged


class PrecisionRecall(NamedTuple):
    """A precision-recall curve, by ascending recall.

    Parameters
    ----------
    recall : ndarray of shape (m,)
        Share of the rows of the class that score at or above each threshold.
    precision : ndarray of shape (m,)
        Share of the rows at or above each threshold that are of the class.
    """

    recall: np.ndarray
    precision: np.ndarray

    def interpolated(self, recalls: np.ndarray) -> np.ndarray:
        """Return the best precision at each recall or beyond.

        Parameters
        ----------
        recalls : ndarray of shape (r,)
            Recalls to evaluate the curve at.

        Returns
        -------
        ndarray of shape (r,)
            The interpolated precision; 0 for recalls above the last of the curve.
        """
        best = np.maximum.accumulate(self.precision[::-1])[::-1]
        places = np.searchsorted(self.recall, recalls - 1e-12)
        return np.append(best, 0.0)[places]


def precision_recall(is_class: ArrayLike, scores: ArrayLike) -> PrecisionRecall:
    """Return the precision-recall curve of the scores for a class.

    Rows with equal scores enter the ranking together.

    Parameters
    ----------
    is_class : array-like of shape (n,)
        Whether each row is of the class: booleans, or 1 for yes, -1 for no and 0 for rows that are ignored.
    scores : array-like of shape (n,)
        Scores that are higher for the class.

    Returns
    -------
    PrecisionRecall
        The curve, one point per distinct score.

    Raises
    ------
    DataError
        If the shapes differ, a score is not finite, or no row is of the class.

    Examples
    --------
    >>> curve = precision_recall([1, -1, 1], [0.9, 0.8, 0.7])
    >>> curve.recall.tolist(), curve.precision.round(3).tolist()
    ([0.5, 0.5, 1.0], [1.0, 0.5, 0.667])
    """
    signs, scores = np.asarray(is_class), np.asarray(scores, dtype=np.float64)
    if signs.shape != scores.shape or signs.ndim != 1:
        raise DataError(
            f"is_class and scores must have one entry per row; got shapes {signs.shape} and {scores.shape}."
        )
    if not np.isfinite(scores).all():
        raise DataError(
            f"scores, row {int(np.flatnonzero(~np.isfinite(scores))[0])}: not a finite number, so the rows cannot be "
            "ranked."
        )
    counted = np.ones(signs.size, bool) if signs.dtype == bool else signs != 0
    positive = signs[counted] > 0
    if not positive.any():
        raise DataError(
            f"none of the {signs.size} rows is of the class, so recall is undefined; add rows of the class."
        )
    precision, recall, _ = precision_recall_curve(positive, scores[counted])
    return PrecisionRecall(recall[-2::-1], precision[-2::-1])


def _eleven_points(curve: PrecisionRecall) -> float:
    return float(curve.interpolated(np.linspace(0, 1, 11)).mean())


def _area(curve: PrecisionRecall) -> float:
    return float(np.diff(curve.recall, prepend=0.0) @ curve.interpolated(curve.recall))


def _steps(curve: PrecisionRecall) -> float:
    return float(np.diff(curve.recall, prepend=0.0) @ curve.precision)


METHODS: dict[str, Callable[[PrecisionRecall], float]] = {"area": _area, "11-point": _eleven_points, "steps": _steps}


def average_precision(is_class: ArrayLike, scores: ArrayLike, method: str = "area") -> float:
    """Return the average precision of the scores for a class.

    Parameters
    ----------
    is_class : array-like of shape (n,)
        Whether each row is of the class: booleans, or 1 for yes, -1 for no and 0 for rows that are ignored.
    scores : array-like of shape (n,)
        Scores that are higher for the class.
    method : {"area", "11-point", "steps"}, default="area"
        "area": the area below the best precision at each recall or beyond (PASCAL VOC from 2010 on). "11-point": the
        mean of that best precision at the recalls 0, 0.1, ..., 1 (VOC until 2009). "steps": sum (R_m - R_m-1) P_m of
        the precisions themselves (scikit-learn).

    Returns
    -------
    float
        The average precision, from 0 to 1.

    Raises
    ------
    ValueError
        If ``method`` is unknown.
    DataError
        If the shapes differ, a score is not finite, or no row is of the class.

    References
    ----------
    Everingham and others, The PASCAL visual object classes challenge, 2010, section 4.2, and its development kits.

    Examples
    --------
    >>> round(average_precision([1, -1, 1], [0.9, 0.8, 0.7], "11-point"), 4)
    0.8485
    """
    check_choice(method, "method", tuple(METHODS))
    return METHODS[method](precision_recall(is_class, scores))


@dataclass(frozen=True, eq=False)
class RankingMetrics:
    """Precision and recall of the rows ranked by the scores of each class.

    Parameters
    ----------
    classes : tuple
        The k classes.
    curves : tuple of PrecisionRecall or None
        The curve of each class; None for a class without rows.
    average_precision : ndarray of shape (k,)
        The average precision of each class; NaN for a class without rows.
    method : str, default="area"
        How the average precision was computed; see ``average_precision``.
    """

    classes: tuple[object, ...]
    curves: tuple[PrecisionRecall | None, ...]
    average_precision: np.ndarray
    method: str = "area"

    @property
    def mean_average_precision(self) -> float:
        """Mean average precision (mAP) over the classes that have rows."""
        return float(np.nanmean(self.average_precision))

    @property
    def mean_curve(self) -> PrecisionRecall:
        """Mean over the classes of the best precision at each of 101 recalls or beyond."""
        curves = [curve.interpolated(GRID) for curve in self.curves if curve is not None]
        return PrecisionRecall(GRID, np.mean(curves, axis=0))

    def ordered(self) -> np.ndarray:
        """Return the indices of the classes that have rows, by descending average precision."""
        order = np.argsort(-self.average_precision, kind="stable")
        return order[np.isfinite(self.average_precision[order])]

    def as_dict(self) -> JSON:
        """Return the average precisions as JSON types."""
        return {
            "mean_average_precision": plain(self.mean_average_precision),
            "method": self.method,
            "average_precision": {
                str(name): plain(float(value)) for name, value in zip(self.classes, self.average_precision, strict=True)
            },
        }


def ranking_metrics(
    y_true: ArrayLike, scores: ArrayLike, classes: Sequence[object] | np.ndarray, method: str = "area"
) -> RankingMetrics:
    """Measure how well the scores of each class rank its rows first.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, k)
        Labels; or a column per class with 1 for rows of the class, -1 for others and 0 for rows that are ignored.
    scores : array-like of shape (n, k)
        The scores of each class.
    classes : sequence
        The k classes.
    method : {"area", "11-point", "steps"}, default="area"
        How average precision is computed; see ``average_precision``.

    Returns
    -------
    RankingMetrics
        Curve and average precision of each class.

    Raises
    ------
    ValueError
        If ``method`` is unknown.
    DataError
        If the shapes do not match, a score is not finite, or no class has rows.

    Examples
    --------
    >>> metrics = ranking_metrics(["a", "b"], [[0.2, 0.1], [0.1, 0.3]], ["a", "b"])
    >>> metrics.average_precision.tolist(), metrics.mean_average_precision
    ([1.0, 1.0], 1.0)
    """
    check_choice(method, "method", tuple(METHODS))
    y, scores = np.asarray(y_true), np.asarray(scores)
    if scores.shape != (len(y), len(classes)) or y.ndim > 2 or (y.ndim == 2 and y.shape != scores.shape):
        raise DataError(
            f"scores must have the shape (rows, classes) = {(len(y), len(classes))}; got scores of shape "
            f"{scores.shape} and labels of shape {y.shape}."
        )
    signs = y if y.ndim == 2 else np.stack([np.where(y == name, 1, -1) for name in classes], axis=1)
    curves = tuple(
        precision_recall(signs[:, k], scores[:, k]) if (signs[:, k] > 0).any() else None for k in range(len(classes))
    )
    if not any(curves):
        raise DataError("no row is of any of the classes, so there is nothing to rank; check the labels.")
    values = np.array([np.nan if curve is None else METHODS[method](curve) for curve in curves])
    return RankingMetrics(tuple(classes), curves, values, method)
