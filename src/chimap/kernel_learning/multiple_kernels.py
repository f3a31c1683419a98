"""Kernels of several channels, weighted by learning (RFF-MKL)."""

from __future__ import annotations

from typing import ClassVar

from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.real_targets import RealTargets
from chimap.kernel_learning.channels import MultipleKernelModel
from chimap.losses import CATALOGUE as LOSSES


class MultipleKernelLearner(ClassTargets, MultipleKernelModel):
    """Classifier on a weighted sum of kernels, one per channel, whose weights are learned at linear cost (RFF-MKL).

    Each channel, a block of columns such as a descriptor, has random features z_j of its own kernel. The weights
    minimise

        sum loss(y, sum_j z_j'w_j + b) + alpha sum_j |w_j|_2,

    for each class against the others. The norms make channels that do not help vanish as a whole. This is multiple
    kernel learning (GMKL) with the l1 norm on the weights d_j of the kernels, sum_j d_j k_j, where d_j = |w_j| /
    sqrt(2). The alpha of GMKL on kernel matrices, 1/C of the paper, is this one divided by sqrt(2).

    With the square loss, one pass over the rows gives their moments, and the moments give the whole path of strengths,
    from the smallest at which no kernel is used downwards, and its exact cross-validation. Other losses pass over the
    rows again, with features kept in memory if they fit the budget; one held-out fold chooses their strength.

    Parameters
    ----------
    kernel : str, Kernel or list of these, default="exp-chi2"
        The kernel of every channel, or a list with one kernel per channel. See ``HistogramClassifier``.
    blocks : list or mapping of columns, default=None
        The channels: columns as slices or lists, in a list or a mapping of names. Each column must be in exactly one.
        None is a single channel.
    features : str or feature object, default="auto"
        The explicit features of each channel. See ``HistogramClassifier``.
    gamma : float or str, default="mean"
        The factor of the distance in exponential kernels. See ``HistogramClassifier``.
    n_components : int, default=512
        Number of random features of each channel.
    n_terms : int, default=2
        Features per bin of the additive map. See ``HistogramClassifier``.
    sampling : str, default="auto"
        How Fourier frequencies are drawn. See ``HistogramClassifier``.
    form : str, default="pair"
        The form of the Fourier features; see ``FourierFeatures``.
    normalize : {None, "l1", "log1p", "sqrt", "log-cpm", "log-cp10k", "presence", "tf-idf"}, default=None
        What is done to the rows first. See ``HistogramClassifier``.
    loss : str or Loss, default="square"
        "square", "logistic", "squared_hinge", "smooth_hinge", or an object of ``chimap.losses``.
    class_weight : "balanced", dict or None, default=None
        Factors of the row weights by class. See ``HistogramClassifier``.
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    threshold : "f1", "balanced", float or None, default=None
        How to set the threshold of two classes. See ``HistogramClassifier``.
    shared : bool, default=False
        Whether all classes use the same kernels: the norm is then over the weights of a channel for all classes
        together.
    group_weights : sequence of float or None, default=None
        Weights of the channels in the penalty, one positive number each; None is 1 for all. A channel with a larger
        weight has to help more.
    joint : bool, default=False
        Whether to learn the widths with the weights (the joint form) or the weights only (the average form). The joint
        form minimises the same objective over the widths too, on a part of the rows with few features, by L-BFGS
        starting from those of ``gamma="mean"``; the weights are at their optimum throughout. Then all rows are read
        with these widths.
    widths : {"block", "bin"}, default="block"
        Widths of the joint form: one per channel, or one per column.
    width_penalty : {"l2", "l1"}, default="l2"
        Penalty on the widths in the joint form. See ``FourierKernelLearner``.
    width_strength : float, default=0.0
        Strength of the penalty on the widths in the joint form. Without it, only the validation rows keep kernels from
        becoming too narrow.
    n_tune_components : int or None, default=256
        Number of features per channel to learn the widths with in the joint form. See ``FourierKernelLearner``.
    n_tune_rows : int or None, default=10000
        Number of rows to learn the widths from in the joint form. See ``FourierKernelLearner``.
    validation_fraction : float, default=0.1
        Share of the tuning rows that scores each iteration of the joint form. See ``FourierKernelLearner``.
    max_iter : int, default=30
        Largest number of iterations of the joint form.
    tol : float, default=0.001
        The joint form stops when the objective decreases by less than this share over two iterations.
    patience : int, default=5
        Number of iterations without a lower error on the validation rows after which the joint form stops.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty, or several to choose from. "auto" is a path of ``n_alphas`` strengths from the smallest
        at which no kernel is used down to a thousandth of it, from which the folds choose. For losses other than the
        square, the path ends at a hundredth, or once four strengths in a row have not lowered the held-out loss.
    n_alphas : int, default=30
        Number of strengths on the path of ``alpha="auto"``.
    selection : int or "auto", default="auto"
        Number of folds that choose alpha; "auto" is five.
    memory : str or int, default="1GiB"
        Memory budget of the fit. See ``HistogramClassifier``.
    precision : {"float32", "float64", "bfloat16", "auto"}, default="float32"
        Precision of features and products. See ``HistogramClassifier``.
    n_jobs : int or None, default=None
        Number of threads. See ``HistogramClassifier``.
    random_state : int, RandomState or None, default=None
        Seed of the samples and the random features.
    verbose : bool, default=False
        Whether to show progress on the terminal.

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (t, r)
        Weights d_j of the kernels for each class; one row for two classes, or if ``shared``.
    channels_ : list of str
        Names of the channels.
    path_ : KernelPath
        Solutions at all strengths.
    kkt_residual_ : float
        Largest violation of an optimality condition, relative to the strength.
    objective_ : float
        Value of the objective.
    kernel_ : Kernel
        The plain sum of the kernels.
    n_iter_ : int
        Number of passes; in the joint form, of steps.
    widths_, width_names_, width_columns_, start_widths_, history_, stopped_ : various
        Results of the joint form, as in ``FourierKernelLearner``.

    Raises
    ------
    ValueError
        If channels overlap or miss columns, or if group weights are not one positive number per channel.
    DataError
        If a fold has no rows. ``fit`` also raises what ``HistogramClassifier`` raises.

    Notes
    -----
    ``alpha_``, ``coef_``, ``intercept_``, ``features_``, ``classes_`` and ``n_passes_`` are as in
    ``HistogramClassifier``.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.4.
    Varma and Babu, More generality in efficient multiple kernel learning (GMKL).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.dirichlet(np.ones(4), size=(300, 3)).reshape(300, 12), rng.integers(0, 2, 300)
    >>> X[:, 4:8] = np.where(y[:, None] == 0, X[:, 4:8], rng.dirichlet([4, 4, 1, 1], size=300))  # informative channel
    >>> channels = {"colour": slice(0, 4), "shape": slice(4, 8), "size": slice(8, 12)}
    >>> model = MultipleKernelLearner(blocks=channels, n_components=64, random_state=0).fit(X, y)
    >>> model.channels_[int(model.kernel_weights_[0].argmax())]
    'shape'
    """

    _losses: ClassVar[tuple[str, ...]] = (
        "square",
        *(n for n, loss in LOSSES.items() if loss.domain == "sign"),
    )


class MultipleKernelRegressor(RealTargets, MultipleKernelModel):
    """Regression on a weighted sum of kernels, one per channel, whose weights are learned at linear cost (RFF-MKL).

    See ``MultipleKernelLearner`` for the method and the learned attributes.

    Parameters
    ----------
    kernel : str, Kernel or list of these, default="exp-chi2"
        The kernel of every channel, or a list with one kernel per channel. See ``HistogramClassifier``.
    blocks : list or mapping of columns, default=None
        The channels. See ``MultipleKernelLearner``.
    features : str or feature object, default="auto"
        The explicit features of each channel. See ``HistogramClassifier``.
    gamma : float or str, default="mean"
        The factor of the distance in exponential kernels. See ``HistogramClassifier``.
    n_components : int, default=512
        Number of random features of each channel.
    n_terms : int, default=2
        Features per bin of the additive map. See ``HistogramClassifier``.
    sampling : str, default="auto"
        How Fourier frequencies are drawn. See ``HistogramClassifier``.
    form : str, default="pair"
        The form of the Fourier features; see ``FourierFeatures``.
    normalize : {None, "l1", "log1p", "sqrt", "log-cpm", "log-cp10k", "presence", "tf-idf"}, default=None
        What is done to the rows first. See ``HistogramClassifier``.
    loss : str or Loss, default="square"
        "square" or "epsilon_insensitive" (with a width of 0.1 standard deviations of the targets), or an object
        ``losses.EpsilonInsensitive``, as in the paper.
    class_weight : None, default=None
        Not used in regression; must be None.
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    threshold : None, default=None
        Not used in regression; must be None.
    shared : bool, default=False
        Whether all targets use the same kernels. See ``MultipleKernelLearner``.
    group_weights : sequence of float or None, default=None
        Weights of the channels in the penalty, one positive number each; None is 1 for all.
    joint : bool, default=False
        Whether to learn the widths with the weights, or the weights only. See ``MultipleKernelLearner``.
    widths : {"block", "bin"}, default="block"
        Widths of the joint form: one per channel, or one per column.
    width_penalty : {"l2", "l1"}, default="l2"
        Penalty on the widths in the joint form. See ``FourierKernelLearner``.
    width_strength : float, default=0.0
        Strength of the penalty on the widths in the joint form. See ``MultipleKernelLearner``.
    n_tune_components : int or None, default=256
        Number of features per channel to learn the widths with in the joint form. See ``FourierKernelLearner``.
    n_tune_rows : int or None, default=10000
        Number of rows to learn the widths from in the joint form. See ``FourierKernelLearner``.
    validation_fraction : float, default=0.1
        Share of the tuning rows that scores each iteration of the joint form. See ``FourierKernelLearner``.
    max_iter : int, default=30
        Largest number of iterations of the joint form.
    tol : float, default=0.001
        The joint form stops when the objective decreases by less than this share over two iterations.
    patience : int, default=5
        Number of iterations without a lower error on the validation rows after which the joint form stops.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty, or several to choose from. See ``MultipleKernelLearner``.
    n_alphas : int, default=30
        Number of strengths on the path of ``alpha="auto"``.
    selection : int or "auto", default="auto"
        Number of folds that choose alpha; "auto" is five.
    memory : str or int, default="1GiB"
        Memory budget of the fit. See ``HistogramClassifier``.
    precision : {"float32", "float64", "bfloat16", "auto"}, default="float32"
        Precision of features and products. See ``HistogramClassifier``.
    n_jobs : int or None, default=None
        Number of threads. See ``HistogramClassifier``.
    random_state : int, RandomState or None, default=None
        Seed of the samples and the random features.
    verbose : bool, default=False
        Whether to show progress on the terminal.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=(300, 2)).reshape(300, 8)
    >>> y = np.sqrt(X[:, 0]) - X[:, 1]
    >>> model = MultipleKernelRegressor(blocks=[slice(0, 4), slice(4, 8)], n_components=64, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.kernel_weights_[0, 0] > 10 * model.kernel_weights_[0, 1])
    (True, True)
    """
