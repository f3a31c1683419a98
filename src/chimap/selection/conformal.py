"""How unusual a row or an answer is, by what held-out rows show: split conformal prediction.

``Conformal`` gives sets and intervals that contain the truth with a given probability; ``Novelty`` says how unlike the
training rows a row is, in units of what left-out training rows are.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from chimap._errors import InputError
from chimap._types import Shape
from chimap._validation import ParameterError
from chimap.model_files import register


def checked_level(alpha: object) -> float:
    """Return the share of rows whose truth may lie outside; raise ValueError if it is not between 0 and 1."""
    if not isinstance(alpha, numbers.Real) or isinstance(alpha, bool) or not 0 < float(alpha) < 1:
        raise ParameterError("alpha", alpha, "above 0 and below 1, the share of truths that may lie outside")
    return float(alpha)


@dataclass(frozen=True)
class Conformal:
    """How unusual the truths of held-out rows were, so that answers no more unusual than most of them are included.

    The threshold of a share alpha is the ceil((m + 1)(1 - alpha))-th smallest of m scores. If new rows are exchangeable
    with those that were held out, the truth is above it with a probability of at most alpha, whatever the model. With
    too few scores for alpha it is infinite, and every answer is included.

    Parameters
    ----------
    scores : array of shape (m, t)
        Scores of the truths of held-out rows, for every task or target; NaN where one is missing.
    weights : array of shape (m,) or None, default=None
        How many independent rows each row counts as (``moments.as_counts``): rows of a group count as one together.
    places : array of int of shape (m, t) or None, default=None
        Indices of the true classes, of which each has a threshold of its own; None for regressions.
    class_weights : array of shape (m, t) or None, default=None
        How many independent rows of its class each row counts as; None for one.

    References
    ----------
    Vovk, Gammerman and Shafer, Algorithmic learning in a random world (2005); Lei, G'Sell, Rinaldo, Tibshirani and
    Wasserman, Distribution-free predictive inference for regression (2018); Lee, Barber and Willett, Distribution-free
    inference with hierarchical data (2023), for groups; Sadinle, Lei and Wasserman, Least ambiguous
    set-valued classifiers with bounded error levels (2019), also for thresholds by class.

    Examples
    --------
    >>> Conformal(np.arange(1.0, 10.0)[:, None]).threshold(0.1).tolist()
    [9.0]
    >>> Conformal(np.arange(1.0, 9.0)[:, None]).threshold(0.1).tolist()
    [inf]
    """

    scores: np.ndarray
    weights: Annotated[np.ndarray | None, Shape("m")] = None
    places: np.ndarray | None = None
    class_weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("places", "class_weights"):
            values = getattr(self, name)
            if values is not None and values.shape != self.scores.shape:
                raise InputError(f"Conformal: {name} of shape {values.shape} for scores of shape {self.scores.shape}")
        if self.scores.ndim != 2 or (self.weights is not None and self.weights.size != self.scores.shape[0]):
            raise InputError(f"Conformal: scores of shape {self.scores.shape} must be a matrix with a row per weight")

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """Return the smallest shares alpha at which scores (n, t) are above the threshold, (n, t).

        It is the share of the held-out rows, and of the new row itself, with scores at least as large.
        """
        out = np.empty(scores.shape)
        for task, own in enumerate(self.scores.T):
            scored = np.flatnonzero(~np.isnan(own))
            order = scored[np.argsort(own[scored], kind="stable")]
            weights = np.ones(order.size) if self.weights is None else self.weights[order]
            below = np.concatenate([[0.0], weights.cumsum()])
            smaller = below[np.searchsorted(own[order], scores[:, task], side="left")]
            out[:, task] = (below[-1] - smaller + 1) / (below[-1] + 1)
        return out

    def threshold(self, alpha: float) -> np.ndarray:
        """Return the largest scores (t,) that are included at a share alpha; raise ValueError for an invalid share."""
        level = checked_level(alpha)
        return np.array([_threshold(own, self.weights, level) for own in self.scores.T])

    def class_thresholds(self, alpha: float, n_classes: int) -> np.ndarray:
        """Return the largest scores (t, classes) that are included at a share alpha of the rows of each class.

        Raise ValueError for an invalid share, and where the classes of held-out rows are not known.
        """
        level = checked_level(alpha)
        if self.places is None:
            raise InputError("this model does not hold the classes of its held-out rows: fit it again.")
        out = np.empty((self.scores.shape[1], n_classes))
        for task, k in np.ndindex(out.shape):
            rows = self.places[:, task] == k
            weights = None if self.class_weights is None else self.class_weights[rows, task]
            out[task, k] = _threshold(self.scores[rows, task], weights, level)
        return out


def _threshold(scores: np.ndarray, weights: np.ndarray | None, alpha: float) -> float:
    """Return the threshold of scores (m,), which may be missing, for rows that count so often."""
    scored = np.flatnonzero(~np.isnan(scores))
    order = scored[np.argsort(scores[scored], kind="stable")]
    weights = np.ones(order.size) if weights is None else weights[order]
    target_weight = (1 - alpha) * (weights.sum() + 1)
    place = int(np.searchsorted(weights.cumsum(), target_weight * (1 - 1e-12)))
    return float(scores[order[place]]) if place < order.size else np.inf


@dataclass(frozen=True)
class Novelty:
    """Signs that a row is of no class, as left-out rows show them; new rows are compared with these.

    Each sign is large for unusual rows. The share p of the left-out rows on which it is at least as large makes signs
    comparable, and a row is as novel as -sum log p over its signs. It is *far* at a share s where it is more novel than
    all but s of the left-out rows.

    Parameters
    ----------
    signs : array of shape (m, k)
        Signs of left-out rows: minus the largest output, and the distance to the nearest kept row if any are kept.
    weights : array of shape (m,) or None, default=None
        How many independent rows each row counts as; see ``Conformal``.

    References
    ----------
    Laxhammar and Falkman, Conformal prediction for distribution-independent anomaly detection in streaming vessel data
    (2010), for shares of left-out distances. Fisher, Statistical methods for research workers (1932), for their
    product.

    Examples
    --------
    >>> Novelty(np.arange(99.0)[:, None]).shares(np.array([[94.5], [97.5]])).tolist()
    [0.05, 0.02]
    """

    signs: Annotated[np.ndarray, Shape("m", "k")]
    weights: Annotated[np.ndarray | None, Shape("m")] = None

    def __post_init__(self) -> None:
        if self.weights is not None and self.weights.size != self.signs.shape[0]:
            raise InputError(f"Novelty: {self.weights.size} weights of {self.signs.shape[0]} rows")

    @property
    def has_distances(self) -> bool:
        """Whether distances to kept rows are among the signs."""
        return self.signs.shape[1] > 1

    def shares(self, signs: np.ndarray) -> np.ndarray:
        """Return the smallest shares at which rows with these signs (n, k) are far, (n,)."""
        return self._left_out.shares(self._scores(signs))[:, 0]

    def _scores(self, signs: np.ndarray) -> np.ndarray:
        """Return how novel rows with these signs are, (n, 1)."""
        return -np.log(Conformal(self.signs, self.weights).shares(signs)).sum(axis=1, keepdims=True)

    @cached_property
    def _left_out(self) -> Conformal:
        return Conformal(self._scores(self.signs), self.weights)


register(Conformal, Novelty)
