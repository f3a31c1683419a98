"""The squared l2 norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._validation import check_positive


@dataclass(frozen=True)
class L2:
    """The squared l2 norm alpha/2 |w|^2 of ridge regression.

    Parameters
    ----------
    alpha : float
        Positive strength.

    Raises
    ------
    ValueError
        If alpha is not positive.

    Examples
    --------
    >>> L2(2.0).value(np.array([1.0, 2.0])), L2(2.0).gradient(np.array([1.0, 2.0])).tolist()
    (5.0, [2.0, 4.0])
    """

    alpha: float

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")

    def value(self, W: np.ndarray) -> float:
        """Return alpha/2 |w|^2, summed in float64.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.
        """
        return self.alpha / 2 * float(np.square(W, dtype=np.float64).sum())

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """Return alpha w, in the dtype of W.

        Parameters
        ----------
        W : ndarray of shape (D,) or (D, t)
            Weights.
        """
        return W * float(self.alpha)
