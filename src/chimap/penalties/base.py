"""The base class of penalties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np


class Penalty(ABC):
    """A convex function of weights W of shape (D,) or (D, t).

    For a matrix it is the sum over the t columns, each of which holds the weights of a target.

    Attributes
    ----------
    is_smooth : bool
        Whether the penalty has a gradient everywhere. Every penalty has a proximal operator.

    Examples
    --------
    >>> from chimap.penalties import L2
    >>> L2(2.0).value(np.array([3.0])), L2(2.0).prox(np.array([3.0]), step=1.0).tolist()
    (9.0, [1.0])
    """

    is_smooth: ClassVar[bool]

    @abstractmethod
    def value(self, W: np.ndarray) -> float:
        """Return the penalty, at least 0, summed in float64.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.
        """

    @abstractmethod
    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal operator argmin_V |V - W|^2 / 2 + step value(V), in the dtype of W.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.
        step : float
            Positive step size.
        """

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """Return the gradient of a smooth penalty, in the dtype of W.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.

        Raises
        ------
        TypeError
            If the penalty is not smooth.
        """
        raise TypeError(f"{type(self).__name__} has no gradient at zero weights: use prox instead.")
