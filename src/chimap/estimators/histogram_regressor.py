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

    where z(x) . z(x') is close to the kernel.

    Parameters
    ----------
    kernel : str, Kernel or list of these, default="auto"
        The kernel; "auto" runs a race. See ``HistogramClassifier``.
    features : str or feature object, default="auto"
        The explicit features. See ``HistogramClassifier``.
    gamma : float or str, default="mean"
        The factor of the distance in exponential kernels. See ``HistogramClassifier``.
    n_components : int or "auto", default="auto"
        Number of landmarks or random features. See ``HistogramClassifier``.
    n_terms : int or "auto", default="auto"
        Features per bin of the additive map. See ``HistogramClassifier``.
    map : additive map, default=None
        An unfitted map to use instead of ``OptimalMap(n_terms=n_terms)``.
    sampling : str, default="auto"
        How Fourier frequencies are drawn. See ``HistogramClassifier``.
    form : str, default="pair"
        The form of the Fourier features; see ``FourierFeatures``.
    landmarks : str or array of rows, default="kmeans"
        How the landmarks of exponential kernels are chosen. See ``HistogramClassifier``.
    normalize : {None, "l1", "log1p", "sqrt"}, default=None
        What is done to the rows first. See ``HistogramClassifier``.
    bin_weights : "auto", "learn", None or array of shape (bins,), default="auto"
        Weights of the bins. See ``HistogramClassifier``.
    blocks : list or mapping of columns, default=None
        Columns of several descriptors. See ``HistogramClassifier``.
    n_principal : int or sequence of int, default=None
        Number of principal components to keep of each block's features. See ``HistogramClassifier``.
    loss : str or Loss, default="square"
        "square", or "epsilon_insensitive": support vector regression with rounded corners. There, an error within 0.1
        of the standard deviation of the targets costs almost nothing, and a large one its size instead of its square.
        An object ``losses.EpsilonInsensitive`` sets other widths, in units of the targets.
    class_weight : None, default=None
        Not used in regression; must be None.
    threshold : None, default=None
        Not used in regression; must be None.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty, or several to choose from. See ``HistogramClassifier``.
    selection : str, int or splitter, default="auto"
        How alpha is chosen. See ``HistogramClassifier``.
    scoring : str, callable or None, default=None
        scikit-learn scorer by which the race and ``features="exact"`` choose; None is R^2.
    time_limit : float or None, default=None
        Time limit of race and fit together, in seconds. See ``HistogramClassifier``.
    memory : str or int, default="1GiB"
        Memory budget of the fit. See ``HistogramClassifier``.
    precision : {"float32", "float64", "bfloat16", "auto"}, default="float32"
        Precision of features and products. See ``HistogramClassifier``.
    device : str, default="cpu"
        Where a fit with ``loss="square"`` is computed: "cpu", or "cuda", which needs torch.
    n_jobs : int or None, default=None
        Number of threads. See ``HistogramClassifier``.
    random_state : int, RandomState or None, default=None
        Seed of the sample, the race and the random features.
    verbose : bool, default=False
        Whether to show progress on the terminal.

    Attributes
    ----------
    noise_variance_ : ndarray of shape (t,) or None
        Variance of the noise, from left-out rows; None if no rows were left out.

    Notes
    -----
    The other attributes are those of ``HistogramClassifier``, without the ones about classes.

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
