"""Kernel machines that learn the widths of their kernel: single kernel learning in the Fourier domain (RFF-SKL)."""

from __future__ import annotations

from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.real_targets import RealTargets
from chimap.kernel_learning.kernel_learner import KernelLearner


class FourierKernelLearner(ClassTargets, KernelLearner):
    """Kernel classifier that learns the widths of its kernel, at a cost linear in the rows (RFF-SKL).

    The kernel is a product over blocks of columns, k(x, y) = prod_j k_(s_j)(x_j, y_j), with an inverse width s_j each:
    for "exp-chi2" it is exp(-sum_j s_j^2/2 D_j^2(x, y)). L-BFGS searches log s with exact gradients; inside, the
    weights are in closed form, for all classes at once, which share the kernel. The widths are found on a part of the
    rows with few features. Then all rows are read once, as ``HistogramClassifier`` reads them, with the widths folded
    into its features.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        "exp-chi2" or another exponential kernel, "gaussian", "skewed-chi2", "skewed-intersection", or an object of
        these kernels, whose own width is not used.
    blocks : list or mapping of columns, default=None
        Columns of the descriptors, as slices or lists in a list or a mapping of names. Each column must be in exactly
        one block. None is a single block.
    widths : "block", "bin", "one" or int array of shape (bins,), default="block"
        Which columns share a width: one width per block, per column, for all columns, or per group, where the array
        names the group of each column.
    n_components : int, default=2048
        Number of random features of the model. See ``HistogramClassifier``.
    n_terms : int, default=2
        Features per bin of the additive map. See ``HistogramClassifier``.
    map : additive map, default=None
        An unfitted map to use instead of ``OptimalMap(n_terms=n_terms)``.
    sampling : str, default="auto"
        How Fourier frequencies are drawn. See ``HistogramClassifier``.
    form : str, default="pair"
        The form of the Fourier features; see ``FourierFeatures``.
    normalize : {None, "l1", "log1p", "sqrt", "log-cpm", "log-cp10k", "presence", "tf-idf"}, default=None
        What is done to the rows first. See ``HistogramClassifier``.
    objective : {"held-out", "training", "gradients"}, default="held-out"
        How the widths are found. "held-out" minimises the squared error on held-out folds, relative to that of the
        mean; it is exact, from moments, and the strength is learned with the widths. "training" minimises the squared
        error plus the penalty of the weights, as in the paper; it needs a penalty on the widths, or the narrowest
        kernel wins. "gradients" runs rounds that set widths from the slopes of the model while the score of the
        validation rows rises: s_j^2 is proportional to sqrt(G_j), where G_j is the mean, over the bins of block j and
        over rows, of sum_c (df_c/du)^2, as far as models of two halves of the rows agree on it.
    width_penalty : {"l2", "l1"}, default="l2"
        Penalty on the widths: rho sum_j (s_j / start_j)^2 for "l2", or the same sum of the ratios themselves for "l1".
    width_strength : float, default=0.0
        Strength rho of the penalty on the widths.
    n_tune_components : int or None, default=512
        Number of features to learn the widths with. With fewer rows than features, it is lowered to the number of rows,
        but not below 128. None uses ``n_components``.
    n_tune_rows : int or None, default=10000
        Number of rows to learn the widths from. None uses all rows, so the source is read twice per evaluation.
    validation_fraction : float, default=0.1
        Share of the tuning rows that scores each iteration and stops the search early; 0 uses none.
    max_iter : int, default=30
        Largest number of iterations, or of rounds.
    tol : float, default=0.001
        The search stops when the objective decreases by less than this share over two iterations.
    patience : int, default=5
        Number of iterations without a lower error on the validation rows after which the search stops. Rounds
        ("gradients") stop at the first one that gains nothing.
    loss : str or Loss, default="square"
        Loss of the final fit. A loss other than the square is minimised with the widths found for the square loss. See
        ``HistogramClassifier``.
    class_weight : "balanced", dict or None, default=None
        Factors of the row weights by class. See ``HistogramClassifier``.
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    threshold : "f1", "balanced", float or None, default=None
        How to set the threshold of two classes. See ``HistogramClassifier``.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty on the weights, or several to choose from. See ``HistogramClassifier``.
    selection : int or "auto", default="auto"
        Number of folds that are held out to search for widths and to choose alpha. "auto" is five folds for the widths,
        and chooses alpha as in ``HistogramClassifier``.
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
    widths_ : ndarray of shape (r,)
        The widths s.
    width_names_ : list of str
        Names of the widths.
    width_columns_ : ndarray of shape (bins,)
        The width that each column has, as an index into ``widths_``.
    start_widths_ : ndarray of shape (r,)
        The widths from which the search started.
    history_ : list of dict
        One dictionary per iteration with "iteration", "objective", "validation_score" (accuracy, or R^2 of a
        regression), "validation_error" (squared error relative to that of the mean), "alpha", "widths" and "seconds".
    stopped_ : str
        Why the search stopped.
    n_iter_ : int
        Number of iterations.
    n_evaluations_ : int
        Number of evaluations of the objective.

    Raises
    ------
    ValueError
        If blocks overlap or miss columns, if the kernel has no widths, or, naming the width, if a width leaves the
        range of the precision.
    DataError
        If a block is constant or there are too few rows; and where ``HistogramClassifier`` raises it.

    Notes
    -----
    The other attributes are those of ``HistogramClassifier``: ``classes_``, ``features_`` and so on.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.3.
    Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning, Science 2024 (the rounds).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> rows = {f"row {i}": slice(8 * i, 8 * i + 8) for i in range(8)}
    >>> model = FourierKernelLearner(
    ...     blocks=rows, n_components=256, n_tune_components=128, max_iter=3, random_state=0
    ... ).fit(X[:1200], y[:1200])
    >>> model.widths_.shape, bool(model.history_[-1]["objective"] < model.history_[0]["objective"])
    ((8,), True)
    """


class FourierKernelRegressor(RealTargets, KernelLearner):
    """Kernel ridge regression that learns the widths of its kernel, at a cost linear in the rows (RFF-SKL).

    See ``FourierKernelLearner`` for the method and the learned attributes.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        The kernel; its own width is not used. See ``FourierKernelLearner``.
    blocks : list or mapping of columns, default=None
        Columns of the descriptors, as slices or lists in a list or a mapping of names. See ``FourierKernelLearner``.
    widths : "block", "bin", "one" or int array of shape (bins,), default="block"
        Which columns share a width. See ``FourierKernelLearner``.
    n_components : int, default=2048
        Number of random features of the model. See ``HistogramClassifier``.
    n_terms : int, default=2
        Features per bin of the additive map. See ``HistogramClassifier``.
    map : additive map, default=None
        An unfitted map to use instead of ``OptimalMap(n_terms=n_terms)``.
    sampling : str, default="auto"
        How Fourier frequencies are drawn. See ``HistogramClassifier``.
    form : str, default="pair"
        The form of the Fourier features; see ``FourierFeatures``.
    normalize : {None, "l1", "log1p", "sqrt", "log-cpm", "log-cp10k", "presence", "tf-idf"}, default=None
        What is done to the rows first. See ``HistogramClassifier``.
    objective : {"held-out", "training", "gradients"}, default="held-out"
        How the widths are found. See ``FourierKernelLearner``.
    width_penalty : {"l2", "l1"}, default="l2"
        Penalty on the widths. See ``FourierKernelLearner``.
    width_strength : float, default=0.0
        Strength rho of the penalty on the widths.
    n_tune_components : int or None, default=512
        Number of features to learn the widths with. See ``FourierKernelLearner``.
    n_tune_rows : int or None, default=10000
        Number of rows to learn the widths from. See ``FourierKernelLearner``.
    validation_fraction : float, default=0.1
        Share of the tuning rows that scores each iteration and stops the search early. See ``FourierKernelLearner``.
    max_iter : int, default=30
        Largest number of iterations, or of rounds.
    tol : float, default=0.001
        The search stops when the objective decreases by less than this share over two iterations.
    patience : int, default=5
        Number of iterations without a lower error on the validation rows after which the search stops.
    loss : str or Loss, default="square"
        Loss of the final fit: "square", "epsilon_insensitive" or an object of ``chimap.losses``. See
        ``FourierKernelLearner``.
    class_weight : None, default=None
        Not used in regression; must be None.
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row: how much it matters, or how many equal rows it stands for. See
        ``HistogramClassifier``.
    threshold : None, default=None
        Not used in regression; must be None.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty on the weights, or several to choose from. See ``HistogramClassifier``.
    selection : int or "auto", default="auto"
        Number of folds that are held out to search for widths and to choose alpha. See ``FourierKernelLearner``.
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
    >>> X = np.random.default_rng(0).dirichlet(np.ones(6), size=400)
    >>> model = FourierKernelRegressor("gaussian", widths="bin", n_components=128, max_iter=10, random_state=0)
    >>> widths = model.fit(X, np.sin(9 * X[:, 0])).widths_
    >>> int(widths.argmax())  # the target depends on the first bin only
    0
    """
