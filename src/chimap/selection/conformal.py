"""Sets and intervals that hold the truth with a given probability: split conformal prediction by held-out rows."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np

from chimap.model_files import register


def checked_level(alpha: object) -> float:
    """The share of rows whose truth may lie outside. Raises ValueError for what is not between 0 and 1."""
    if not isinstance(alpha, numbers.Real) or isinstance(alpha, bool) or not 0 < float(alpha) < 1:
        raise ValueError(
            f"alpha must be above 0 and below 1, the share of truths that may lie outside; got {alpha!r}."
        )
    return float(alpha)


@dataclass(frozen=True)
class Conformal:
    """How strange the truths of held-out rows were: an answer that is no stranger than most of them is taken in.

    The threshold of a share alpha is the ceil((m + 1)(1 - alpha))-th smallest of m scores. If the rows to come are
    exchangeable with those that were held out, the truth is above it with a probability of at most alpha, whatever the
    model is. Of too few scores for alpha it is infinite, and every answer is taken in.

    Parameters
    ----------
    scores : array (m, t)
        Of the truths of held-out rows, for every task or target; NaN where one is missing.
    weights : array (m,), or None
        Of the rows: one of weight 2 is two rows.

    References
    ----------
    Vovk, Gammerman and Shafer, Algorithmic learning in a random world (2005); Lei, G'Sell, Rinaldo, Tibshirani and
    Wasserman, Distribution-free predictive inference for regression (2018); Sadinle, Lei and Wasserman, Least ambiguous
    set-valued classifiers with bounded error levels (2019).

    Examples
    --------
    >>> Conformal(np.arange(1.0, 10.0)[:, None]).threshold(0.1).tolist()
    [9.0]
    >>> Conformal(np.arange(1.0, 9.0)[:, None]).threshold(0.1).tolist()
    [inf]
    """

    scores: np.ndarray
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or (self.weights is not None and self.weights.size != self.scores.shape[0]):
            raise ValueError(f"Conformal: scores of shape {self.scores.shape} are not a matrix of its rows")

    def threshold(self, alpha: float) -> np.ndarray:
        """The largest scores (t,) that are taken in at a share alpha. Raises ValueError for one that is none."""
        level = checked_level(alpha)
        return np.array([self._of(task, level) for task in range(self.scores.shape[1])])

    def _of(self, task: int, alpha: float) -> float:
        seen = np.flatnonzero(~np.isnan(self.scores[:, task]))
        order = seen[np.argsort(self.scores[seen, task], kind="stable")]
        weights = np.ones(order.size) if self.weights is None else self.weights[order]
        wanted = (1 - alpha) * (weights.sum() + 1)
        place = int(np.searchsorted(weights.cumsum(), wanted * (1 - 1e-12)))
        return float(self.scores[order[place], task]) if place < order.size else np.inf


register(Conformal)
