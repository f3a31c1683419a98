"""Classes with an order, such as grades: answers by the median, sets of neighbours, errors in steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._onnx import Value
from chimap._validation import ParameterError
from chimap.data.label_kinds import places_among
from chimap.model_files import register
from chimap.selection.calibration import Calibration
from chimap.selection.structures import Measure, RelatedClasses, mean_over

_HALF = 0.5 * (1 - 1e-9)  # shares that differ from a half by rounding are a half


@dataclass(frozen=True, eq=False)
class OrderedClasses(RelatedClasses):
    """Classes in an order, low to high. Two classes are as far apart as there are steps from one to the other.

    The answer is the median of the probabilities, the first class up to which they add up to a half: it has the least
    expected distance to the truth. A class k is as unusual as the least probable class between the median and k, so
    that a conformal set is an interval of neighbours.

    Parameters
    ----------
    order : array of shape (m,)
        The classes in their order; those that a task lacks make no step.

    References
    ----------
    Frank and Hall, A simple approach to ordinal classification (2001), for probabilities of a class or a higher one,
    of which the linear machines of classes against the rest are a recoding; Cohen, Weighted kappa (1968); Lu,
    Angelopoulos and Pomerantz, Improving trustworthiness of AI disease severity rating in medical imaging with ordinal
    conformal prediction sets (2022).

    Examples
    --------
    >>> order = OrderedClasses.of(["low", "medium", "high"])
    >>> order.arranged(np.array(["high", "low", "medium"])).tolist()
    ['low', 'medium', 'high']
    >>> p = np.array([[0.4, 0.15, 0.45]])
    >>> medians(p), np.exp(-order.unlikeness(np.log(p))).round(2)
    (array([1]), array([[0.15, 0.15, 0.15]]))
    """

    scorers: ClassVar[tuple[str, ...]] = ("neg_mean_absolute_error", "weighted_kappa")  # those of ``SCORES``
    order: np.ndarray

    @classmethod
    def of(cls, ordered: object) -> OrderedClasses:
        """Return the order of a sequence of labels. Raise ValueError for fewer than two, and for one named twice."""
        labels = None if isinstance(ordered, str) else np.asarray(ordered)
        if labels is None or labels.ndim != 1 or labels.size < 2:
            raise ParameterError("ordered", ordered, "two or more classes in their order, such as ['low', 'high']")
        named, counts = np.unique(labels, return_counts=True)
        if (counts > 1).any():
            raise InputError(Message("{ordered} names {!r} twice: name each class once.", named[counts > 1][0].item()))
        return cls(labels)

    def arranged(self, classes: np.ndarray) -> np.ndarray:
        places = places_among(classes, self.order)
        if (places < 0).any():
            raise InputError(
                Message(
                    "{ordered} lacks the class {!r}: it orders {}. Name every class of the labels, low to high.",
                    classes[places < 0][0].item(),
                    ", ".join(map(str, self.order[:20].tolist())),
                )
            )
        return classes[np.argsort(places)]

    def best(self, p: np.ndarray) -> np.ndarray:
        """Return the medians."""
        return medians(p)

    def onnx(self, outputs: Value, calibration: Calibration) -> Value:
        return (calibration.onnx(outputs).cumulated() < _HALF).cast(np.int64).sum(1)

    def unlikeness(self, logs: np.ndarray) -> np.ndarray:
        place, middle = np.arange(logs.shape[1]), medians(np.exp(logs))[:, None]
        above, below = (np.where(side, -logs, -np.inf) for side in (place >= middle, place <= middle))
        above = np.maximum.accumulate(above, axis=1)
        below = np.maximum.accumulate(below[:, ::-1], axis=1)[:, ::-1]
        return np.where(place >= middle, above, below)

    def closed(self, sets: np.ndarray) -> np.ndarray:
        """Return the intervals from the first to the last class of each set."""
        begun, ended = (np.logical_or.accumulate(some, axis=1) for some in (sets, sets[:, ::-1]))
        return np.asarray(begun & ended[:, ::-1])

    def scored(self, scoring: str, confusion: np.ndarray) -> float:
        return SCORES[scoring](confusion)

    def measures(self, confusion: np.ndarray) -> list[Measure]:
        """Return the mean absolute error in steps, and the weighted kappa."""
        error, kappa = mean_steps(confusion), weighted_kappa(confusion)
        return [
            Measure("mean absolute error", error, f"{error:.3g}", "steps from the truth, on average"),
            Measure("weighted kappa", kappa, f"{kappa:.3f}", "agreement beyond chance, by squared steps"),
        ]


def medians(p: np.ndarray) -> np.ndarray:
    """Return the place (n,) of the median of probabilities (n, k): the first class up to which they are a half."""
    return np.minimum((np.cumsum(p, axis=1) < _HALF).sum(axis=1), p.shape[1] - 1)


def mean_steps(confusion: np.ndarray) -> float:
    """Return the mean number of steps between truth and answer, given rows (k, k) by both; NaN without rows.

    >>> mean_steps(np.array([[1, 0, 1], [0, 1, 1], [0, 0, 0]]))
    0.75
    """
    place = np.arange(len(confusion))
    return mean_over(confusion, np.abs(place[:, None] - place))


def weighted_kappa(confusion: np.ndarray) -> float:
    """Return Cohen's kappa with squared steps as weights, given rows (k, k) by truth and answer.

    It is 1 - sum_ij (i - j)^2 c_ij / sum_ij (i - j)^2 r_i s_j / n, with the sums r and s of the rows and columns; NaN
    where truth and answer are of one class only.
    """
    place, total = np.arange(len(confusion)), confusion.sum()
    squares = np.square(place[:, None] - place)
    expected = (squares * np.outer(confusion.sum(axis=1), confusion.sum(axis=0))).sum()
    return float(1 - total * (squares * confusion).sum() / expected) if expected > 0 else float("nan")


SCORES = {"neg_mean_absolute_error": lambda confusion: -mean_steps(confusion), "weighted_kappa": weighted_kappa}
"""Scores of a confusion (k, k) by name, greater is better."""


register(OrderedClasses)
