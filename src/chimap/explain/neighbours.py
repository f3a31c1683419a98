"""Rows that a prediction rests on: the landmarks, or training rows, whose kernel values add the most to a score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._validation import DataError
from chimap.features.mapped import MappedModel
from chimap.features.mapped_functions import GaussianExpansion


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The centres of an expansion that add the most to one score of one row.

    Attributes
    ----------
    places : ndarray of shape (k,)
        Which landmarks (or training rows), by the size of what they add, largest first.
    similarities : ndarray of shape (k,)
        Kernel values with the row, at most 1.
    contributions : ndarray of shape (k,)
        Kernel value times weight: what each adds to the score.
    """

    places: np.ndarray
    similarities: np.ndarray
    contributions: np.ndarray


def nearest_landmarks(model: MappedModel, row: np.ndarray, output: int, k: int = 5) -> Neighbours:
    """The k landmarks that add the most to score ``output`` of a row (1, bins).

    Raises
    ------
    DataError
        For models that are no sum over landmarks.
    """
    function = model.function
    if not isinstance(function, GaussianExpansion):
        raise DataError(
            "the model is no sum over landmarks or rows: fit with features='landmarks' or 'exact'."
        )
    values = function.values(model.rows(row))[0]
    added = values * function.coef[:, output]
    order = np.argsort(-np.abs(added), kind="stable")[:k]
    return Neighbours(order, values[order], added[order])
