"""The landmarks, or training rows, whose kernel values add the most to a score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.features.mapped_functions import GaussianExpansion, MappedModel


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The landmarks, or training rows, that support the prediction for a row the most.

    Parameters
    ----------
    places : ndarray of shape (k,)
        Places of the landmarks, or of training rows in the array or file of the fit, largest contribution first.
    similarities : ndarray of shape (k,)
        Kernel values with the row, at most 1.
    contributions : ndarray of shape (k,)
        Contribution of each to the score: kernel value times weight.
    ids : ndarray of shape (k,), default=None
        Ids of the training rows, if the data of the fit had ids; else None.
    answers : ndarray of shape (k,), default=None
        Classes or predictions of the model for each of them, or None.

    Examples
    --------
    >>> best = strongest(np.array([0.9, 0.5, 0.1]), np.array([1.0, -2.0, 3.0]), k=2)
    >>> best.places.tolist(), best.contributions.round(6).tolist()
    ([0, 2], [0.9, 0.3])
    """

    places: np.ndarray
    similarities: np.ndarray
    contributions: np.ndarray
    ids: np.ndarray | None = None
    answers: np.ndarray | None = None


def expansion_of(model: MappedModel | None) -> GaussianExpansion:
    """Return the sum over landmarks of which a model consists. Raises DataError for any other model."""
    function = None if model is None else model.function
    if not isinstance(function, GaussianExpansion):
        raise DataError(
            Message(
                "the model is not a sum over landmarks or rows: fit one exponential kernel, without {blocks}, with "
                "{features='landmarks'} or {features='exact'}."
            )
        )
    return function


def strongest(values: np.ndarray, weights: np.ndarray, k: int, sign: float = 1.0) -> Neighbours:
    """Return the k of m kernel values that add the most to the score, or subtract the most if sign < 0."""
    added = values * weights
    order = np.argsort(-sign * added, kind="stable")[:k]
    return Neighbours(order, values[order], added[order])
