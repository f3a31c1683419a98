"""What an evaluation says beyond the score: a linear model's, more rows', the bins that matter, the worst mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import roc_curve

from chimap._types import JSON
from chimap.report._plain import plain
from chimap.selection import LearningCurve

_BANDS = 10  # of probabilities


@dataclass(frozen=True)
class Mistake:
    """A row that is answered wrongly: its id or number, what it is, what it is taken for, and by how much."""

    row: str
    true: object
    predicted: object
    margin: float


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """Of two classes: labels (n,) true where of the second, scores (n,), and probabilities (n,) or None."""

    of_second: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray | None = None

    def roc(self) -> tuple[np.ndarray, np.ndarray]:
        """Shares of the first class and of the second above each score, ascending."""
        wrong, right, _ = roc_curve(self.of_second, self.scores)
        return wrong, right

    def reliability(self) -> list[tuple[float, float, int]]:
        """Mean probability, share of the second class and rows of each tenth of the probabilities that has rows."""
        if self.probabilities is None:
            return []
        bands = np.minimum((self.probabilities * _BANDS).astype(int), _BANDS - 1)
        return [
            (float(self.probabilities[own].mean()), float(self.of_second[own].mean()), int(own.sum()))
            for band in range(_BANDS)
            if (own := bands == band).any()
        ]


@dataclass(frozen=True, eq=False)
class Insight:
    """All of these, as far as they are known.

    linear: score, by this measure, of a linear model that was fitted to so many rows. importance: name and value of the
    bins that matter most.
    """

    linear: float | None = None
    linear_rows: int | None = None
    linear_measure: str = "accuracy"
    curve: LearningCurve | None = None
    importance: Sequence[tuple[str, float]] = ()
    mistakes: Sequence[Mistake] = field(default_factory=tuple)
    two: TwoClasses | None = None

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        return {
            "linear": plain(self.linear),
            "linear_measure": None if self.linear is None else self.linear_measure,
            "learning_curve": self.curve and plain(vars(self.curve)),
            "top_bins": [{"name": name, "importance": value} for name, value in self.importance],
            "worst_mistakes": [plain(vars(one)) for one in self.mistakes],
        }


def worst_mistakes(
    names: np.ndarray,
    y_true: np.ndarray,
    y_pred: np.ndarray,
    scores: np.ndarray,
    classes: Sequence[object],
    k: int = 10,
) -> list[Mistake]:
    """The k rows that are the most surely wrong: score of the answer less that of the truth, most first.

    names: of the rows, (n,). scores: (n, classes).

    >>> mistakes = worst_mistakes(np.array(["a", "b"]), np.array([0, 1]), np.array([1, 1]), np.eye(2)[[1, 1]], [0, 1])
    >>> [(one.row, one.margin) for one in mistakes]
    [('a', 1.0)]
    """
    place = {name: i for i, name in enumerate(classes)}
    wrong = np.flatnonzero(y_true != y_pred)
    true = np.array([place[y] for y in y_true[wrong].tolist()], dtype=int)
    taken = np.array([place[y] for y in y_pred[wrong].tolist()], dtype=int)
    margin = scores[wrong, taken] - scores[wrong, true]
    order = np.argsort(-margin, kind="stable")[:k]
    return [
        Mistake(str(names[wrong[i]]), classes[true[i]], classes[taken[i]], float(margin[i])) for i in order
    ]


def worst_errors(names: np.ndarray, y_true: np.ndarray, y_pred: np.ndarray, k: int = 10) -> list[Mistake]:
    """The k rows whose predictions (n,) are furthest from their targets (n,), the furthest first.

    >>> worst = worst_errors(np.array(["a", "b"]), np.array([0.0, 1.0]), np.array([0.5, -1.0]))
    >>> [(one.row, one.margin) for one in worst]
    [('b', 2.0), ('a', 0.5)]
    """
    errors = np.abs(y_pred - y_true)
    order = np.argsort(-errors, kind="stable")[:k]
    return [Mistake(str(names[i]), float(y_true[i]), float(y_pred[i]), float(errors[i])) for i in order]
