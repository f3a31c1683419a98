"""Rows that a prediction rests on: the landmarks, or training rows, whose kernel values add the most to a score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._types import Rows
from chimap._validation import DataError
from chimap.features.mapped import MappedModel
from chimap.features.mapped_functions import GaussianExpansion


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The landmarks, or training rows, that speak the most for what is predicted of one row.

    Attributes
    ----------
    places : ndarray of shape (k,)
        Which landmarks (or training rows, in the order of the fit), those that add the most first.
    similarities : ndarray of shape (k,)
        Kernel values with the row, at most 1.
    contributions : ndarray of shape (k,)
        Kernel value times weight: what each adds to the score.
    answers : ndarray of shape (k,) or None
        What the model says of each of them: classes, or predictions.

    Examples
    --------
    >>> best = strongest(np.array([0.9, 0.5, 0.1]), np.array([1.0, -2.0, 3.0]), k=2)
    >>> best.places.tolist(), best.contributions.round(6).tolist()
    ([0, 2], [0.9, 0.3])
    """

    places: np.ndarray
    similarities: np.ndarray
    contributions: np.ndarray
    answers: np.ndarray | None = None


def expansion_of(model: MappedModel | None) -> GaussianExpansion:
    """The sum over landmarks that a model is. Raises DataError for one that is none."""
    function = None if model is None else model.function
    if not isinstance(function, GaussianExpansion):
        raise DataError(
            "the model is not a sum over landmarks or rows: fit with an exponential kernel and features='landmarks' or "
            "'exact'."
        )
    return function


def nearest_landmarks(model: MappedModel | None, row: Rows, output: int, k: int = 5) -> Neighbours:
    """The k landmarks that add the most to score ``output`` of a row (1, bins).

    Raises
    ------
    DataError
        For models that are no sum over landmarks.

    Examples
    --------
    ``HistogramClassifier.nearest`` does this for the predicted class of each row:

    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("exp-chi2", features="landmarks", n_components=50, random_state=0).fit(X, y)
    >>> model.nearest(X[:1], k=2)[0].places.shape
    (2,)
    """
    function = expansion_of(model)
    assert model is not None
    return strongest(function.values(model.rows(row))[0], function.coef[:, output], k)


def strongest(values: np.ndarray, weights: np.ndarray, k: int, sign: float = 1.0) -> Neighbours:
    """The k of kernel values (m,) that add the most to the score with these weights (m,); take the most if sign < 0."""
    added = values * weights
    order = np.argsort(-sign * added, kind="stable")[:k]
    return Neighbours(order, values[order], added[order])
