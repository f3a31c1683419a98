"""How unlike the training rows a row is, in units of what left-out training rows are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from chimap._errors import InputError
from chimap._types import Shape
from chimap.model_files import register
from chimap.selection.conformal import Conformal


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


register(Novelty)
