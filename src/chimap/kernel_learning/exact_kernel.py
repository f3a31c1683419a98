"""Kernel ridge with learned widths on the exact kernel matrix (KRR-GD): the limit of ``FourierKernelLearner``."""

from __future__ import annotations

from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.real_targets import RealTargets
from chimap.kernel_learning.exact_learner import ExactKernelModel


class ExactKernelLearner(ClassTargets, ExactKernelModel):
    """Kernel ridge classifier with learned widths, on the exact kernel matrix (KRR-GD).

    It takes n^2 memory per width and n^3 time. It is the limit of ``FourierKernelLearner`` for many random features,
    with the same objectives and the same strength: for a few thousand rows, and as a reference.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        "exp-chi2" or another exponential kernel, "gaussian", or such an object; its own width is not used.
    blocks : list or mapping of columns, default=None
        Columns of the descriptors. See ``FourierKernelLearner``.
    widths : "block", "bin", "one" or int array of shape (bins,), default="block"
        Which columns share a width. See ``FourierKernelLearner``.
    objective : {"held-out", "training"}, default="held-out"
        What the widths minimise. See ``FourierKernelLearner``.
    alpha : float, default=0.1
        Strength from which the search starts ("held-out", times the mean weight of a row), or that is used throughout
        ("training").
    max_iter : int, default=30
        Largest number of iterations of L-BFGS.
    tol : float, default=0.0001
        Tolerance of L-BFGS, relative to the objective.
    selection : int or "auto", default="auto"
        Number of held-out folds; "auto" is five.
    class_weight : "balanced", dict or None, default=None
        Factors of the row weights by class. See ``HistogramClassifier``.
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    widths_ : ndarray of shape (r,)
        The widths.
    width_names_ : list of str
        Names of the widths.
    start_widths_ : ndarray of shape (r,)
        The widths from which the search started.
    alpha_ : float
        The strength.
    history_ : list of dict
        One dictionary per iteration with "iteration", "objective", "widths", "alpha" and "seconds".
    objective_ : float
        Value of the objective.
    kernel_ : Kernel
        The kernel with its widths.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 4, after Chapelle et al. (2002).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> halves = [slice(0, 32), slice(32, 64)]
    >>> model = ExactKernelLearner(blocks=halves, max_iter=3, random_state=0).fit(X[:300], y[:300])
    >>> model.widths_.shape
    (2,)
    """


class ExactKernelRegressor(RealTargets, ExactKernelModel):
    """Kernel ridge regression with learned widths on the exact kernel matrix (KRR-GD).

    See ``ExactKernelLearner`` for the method and the learned attributes.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        The kernel; its own width is not used. See ``ExactKernelLearner``.
    blocks : list or mapping of columns, default=None
        Columns of the descriptors. See ``FourierKernelLearner``.
    widths : "block", "bin", "one" or int array of shape (bins,), default="block"
        Which columns share a width. See ``FourierKernelLearner``.
    objective : {"held-out", "training"}, default="held-out"
        What the widths minimise. See ``FourierKernelLearner``.
    alpha : float, default=0.1
        Strength from which the search starts ("held-out"), or that is used throughout ("training").
    max_iter : int, default=30
        Largest number of iterations of L-BFGS.
    tol : float, default=0.0001
        Tolerance of L-BFGS, relative to the objective.
    selection : int or "auto", default="auto"
        Number of held-out folds; "auto" is five.
    class_weight : None, default=None
        Not used in regression; must be None.
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=120)
    >>> model = ExactKernelRegressor("gaussian", widths="bin", max_iter=10, random_state=0)
    >>> widths = model.fit(X, np.sin(9 * X[:, 0])).widths_
    >>> int(widths.argmax())  # the target depends on the first bin only
    0
    """
