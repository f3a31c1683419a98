"""Kernel machines that learn the widths of their kernel: single kernel learning in the Fourier domain (RFF-SKL)."""

from __future__ import annotations

from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.kernel_learner import KernelLearner
from chimap.estimators.real_targets import RealTargets


class FourierKernelLearner(ClassTargets, KernelLearner):
    """Kernel classifier that learns the widths of its kernel, at a cost linear in the rows: RFF-SKL.

    The kernel is a product over blocks of columns, k(x, y) = prod_j k_{s_j}(x_j, y_j), with an inverse width s_j each:
    for "exp-chi2" it is exp(-sum_j s_j^2/2 D_j^2(x, y)). L-BFGS searches log s with exact gradients, while the weights
    (of all classes, which share the kernel) are in closed form inside. The widths are found on a part of the rows with
    few features; then all rows are read once, as ``HistogramClassifier`` reads them, with the widths folded into its
    features.

    Parameters
    ----------
    kernel : "exp-chi2" and the other exponential kernels, "gaussian", "skewed-chi2", "skewed-intersection", or such an
        object (its width is not used).
    blocks : columns of the descriptors as slices or lists, in a list or a mapping of names; each column in exactly one.
    widths : "block" (one a block), "bin" (one a column), "one", or whole numbers (bins,) that name the group of each
        column.
    objective : "held-out": squared error on folds held out, over that of the mean, exactly, from moments; the strength
        is learned with the widths. "training": squared error with the penalty of the weights (the paper's); it needs a
        penalty on the widths, or the narrowest kernel wins. "gradients": rounds of widths from the slopes of the model,
        s_j^2 in proportion to sqrt(G_j), G_j the mean over the bins of block j and over rows of sum_c (df_c/du)^2, as
        far as models of two halves of the rows agree on it; while the score of the validation rows rises.
    width_penalty, width_strength : "l2" or "l1", and rho: rho sum_j (s_j / start_j)^2, or of the ratios themselves.
    n_tune_components, n_tune_rows : features and rows to learn the widths with; of fewer rows than features, as many
        features as rows, 128 at least. None is all of them (the source is then read twice an evaluation).
    validation_fraction : of the rows to tune on: they score each iteration and stop the search early; 0 is none.
    max_iter, tol, patience : iterations, or rounds, at most; least relative decrease of the objective over two
        iterations; iterations without a lower error on the validation rows. Rounds end where one gains nothing.
    n_components, n_terms, map, sampling, form, normalize, loss, class_weight, threshold, alpha, selection, memory,
        precision, n_jobs, random_state, verbose : of the fit that follows, as in ``HistogramClassifier``. A ``loss``
        other than the square is minimised with the widths that the square loss found.

    Learned: ``widths_`` s (r,), ``width_names_``, ``width_columns_`` (the width of each column), ``start_widths_``,
    ``history_``: one dictionary an iteration with "iteration", "objective", "validation_score" (accuracy, or R^2 of a
    regression), "validation_error" (squared, over that of the mean), "strength", "widths", "seconds"; ``stopped_``, why
    it ended; ``n_iter_``, ``n_evaluations_``; and what ``HistogramClassifier`` learns: ``classes_``, ``features_``, ...

    ``fit`` raises ValueError for blocks that overlap or miss columns and for kernels without widths; DataError for a
    block that is constant, too few rows, and whatever ``HistogramClassifier`` refuses; ValueError, naming the width,
    where one leaves the range of the precision.

    Sources: Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.3; of the rounds Radhakrishnan, Beaglehole,
    Pandit and Belkin, Mechanism for feature learning, Science 2024.

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
    """Kernel ridge regression that learns the widths of its kernel; parameters as in ``FourierKernelLearner``.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(6), size=400)
    >>> model = FourierKernelRegressor("gaussian", widths="bin", n_components=128, max_iter=10, random_state=0)
    >>> widths = model.fit(X, np.sin(9 * X[:, 0])).widths_
    >>> int(widths.argmax())  # the first bin is all that matters
    0
    """
