"""The regressor that the README shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sklearn.utils.metaestimators import available_if

from chimap._types import ArrayLike, MatrixLike
from chimap.estimators.base import HistogramModel
from chimap.estimators.in_batches import keeps_moments
from chimap.estimators.real_targets import RealTargets
from chimap.fit.targets import checked_batch

if TYPE_CHECKING:
    from sklearn.utils import Tags


class HistogramRegressor(RealTargets, HistogramModel):
    """Kernel ridge regression for histograms at linear cost; parameters as in ``HistogramClassifier``.

    loss is "square" or "epsilon_insensitive" (support vector regression, its corners rounded): an error within 0.1 of
    the targets' standard deviation costs next to nothing, and a large one its size instead of its square. An object
    ``losses.EpsilonInsensitive`` sets other widths, in units of the targets.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=300)
    >>> y = np.sqrt(X[:, 0]) - X[:, 1]
    >>> bool(HistogramRegressor("exp-chi2", n_components=256, random_state=0).fit(X, y).score(X, y) > 0.98)
    True
    """

    _takes_tasks = True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @available_if(keeps_moments)
    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch of rows, with targets y (n,) or, of several, (n, t); see ``HistogramClassifier.partial_fit``."""
        is_first = getattr(self, "_batches", None) is None
        y = checked_batch(y, None if is_first else self._codec)
        if is_first:
            self._learn_targets(y)
        return self._partial_fit(X, y, sample_weight)
