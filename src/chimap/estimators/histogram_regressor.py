"""``HistogramRegressor``, the regressor to start with."""

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
    """Kernel ridge regression for histograms at linear cost, with the settings of ``HistogramClassifier``.

        minimise over w, b:  sum_n loss(y_n, w'z(x_n) + b) + alpha/2 |w|^2,

    where z(x) . z(x') is close to the kernel. The other parameters are those of ``HistogramClassifier``.

    Parameters
    ----------
    loss : str or Loss, default="square"
        "square", or "epsilon_insensitive": support vector regression with rounded corners. There, an error within 0.1
        of the standard deviation of the targets costs almost nothing, and a large one its size instead of its square.
        An object ``losses.EpsilonInsensitive`` sets other widths, in units of the targets.
    class_weight : None, default=None
        Not used in regression; must be None.
    threshold : None, default=None
        Not used in regression; must be None.
    scoring : str, callable or None, default=None
        scikit-learn scorer by which the race and ``features="exact"`` choose; None is R^2.

    Attributes
    ----------
    noise_variance_ : ndarray of shape (t,) or None
        Variance of the noise, from left-out rows; None if no rows were left out.

    Notes
    -----
    The other attributes are those of ``HistogramClassifier``, without the ones about classes.

    Several targets are divided by their standard deviations, so that none decides by its unit what they share: the
    strength, and the width of ``loss="epsilon_insensitive"``. Answers are in the units of the data.

    Examples
    --------
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
        """Add a batch of rows; the weights are solved for at the next use. See ``HistogramClassifier.partial_fit``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows of the batch.
        y : array of shape (n,) or (n, t)
            Targets, or t targets per row; missing entries are left out for their target only.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows of this batch, as in ``fit``.

        Returns
        -------
        self
            The estimator.
        """
        codec = self._codec_of_batches
        targets = checked_batch(y, codec)
        return self._partial_fit(X, targets, sample_weight, targets if codec is None else None)
