"""Kernels of several channels, weighted by learning: RFF-MKL."""

from __future__ import annotations

from typing import ClassVar

from chimap.estimators.channels import MultipleKernelModel
from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.real_targets import RealTargets
from chimap.losses import CATALOGUE as LOSSES


class MultipleKernelLearner(ClassTargets, MultipleKernelModel):
    """Classifier on a weighted sum of kernels, one a channel, whose weights are learned at linear cost (RFF-MKL).

    Each channel, a block of columns such as a descriptor, gets random features z_j of its own kernel; weights minimise

        sum loss(y, sum_j z_j'w_j + b) + alpha sum_j |w_j|_2,

    one class versus the others each. The norms make channels that do not help vanish as a whole. It is multiple kernel
    learning with the l1 norm on the weights d_j of the kernels, sum_j d_j k_j: d_j = |w_j| / sqrt(2), at the strength
    sqrt(2) / C (GMKL; ``solvers.gmkl`` is the exact counterpart).

    With the square loss one pass over the rows gives their moments, and the moments the whole path of strengths, from
    the least at which no kernel is used downwards, and its exact cross-validation. Other losses pass over the rows
    again, from features in memory where they fit the budget; their strength is chosen on one fold held out.

    Parameters
    ----------
    kernel : one, or a list of one a channel; see ``HistogramClassifier``.
    blocks : the channels: columns as slices or lists, in a list or a mapping of names. Each column must be in exactly
        one. None is a single channel.
    gamma, n_terms, sampling, form, normalize : see ``HistogramClassifier``.
    n_components : random features of each channel.
    loss : "square", "logistic", "squared_hinge", "smooth_hinge", or an object of ``chimap.losses``.
    joint : whether widths are learned with the weights (the joint form), or the weights alone (the average form). The
        widths minimise the same objective, on a part of the rows with few features, by L-BFGS, from those of
        gamma="mean" on; the weights are at their optimum all the while. Then all rows are read with these widths.
    widths : of the joint form: "block", one a channel, or "bin", one a column.
    width_penalty, width_strength, n_tune_components (a channel), n_tune_rows, validation_fraction, max_iter, tol,
        patience : of the joint form; see ``FourierKernelLearner``. Without a penalty on the widths it is the
        validation rows that keep kernels from becoming too narrow.
    shared : whether all classes use the same kernels: the norm is then over a channel's weights for all classes.
    group_weights : of the channels in the penalty, one positive number each; None is 1. A channel of larger weight has
        to help more.
    alpha : "auto" (a path of ``n_alphas`` from the largest, at which no kernel is used, to a thousandth of it,
        of which the folds choose one; to a hundredth, or until the held-out loss has risen four times, for losses other
        than the square), numbers to choose from, or one number.
    class_weight, threshold, selection, memory, precision, n_jobs, random_state, verbose : see ``HistogramClassifier``.

    Learned: ``kernel_weights_`` (t, r), d_j of each class (one row for two classes, or if ``shared``);
    ``channels_``, their names; ``path_``, a ``KernelPath``; ``kkt_residual_``, the largest violation of an optimality
    condition over the strength; ``objective_``; ``alpha_``, ``coef_``, ``intercept_``, ``features_``, ``kernel_``
    (the plain sum), ``classes_``, ``n_passes_``, ``n_iter_`` (passes; steps of the joint form). Of the joint form
    ``widths_``, ``width_names_``, ``width_columns_``, ``start_widths_``, ``history_``, ``stopped_`` as in
    ``FourierKernelLearner``.

    ``fit`` raises ValueError for channels that overlap or miss columns and for group weights that are not positive, one
    a channel; DataError for a fold without rows; and what ``HistogramClassifier`` does.

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.4; Varma and Babu, More generality in
    efficient multiple kernel learning (GMKL).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.dirichlet(np.ones(4), size=(300, 3)).reshape(300, 12), rng.integers(0, 2, 300)
    >>> X[:, 4:8] = np.where(y[:, None] == 0, X[:, 4:8], rng.dirichlet([4, 4, 1, 1], size=300))  # one says something
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
    """Regression on a weighted sum of kernels whose weights are learned; parameters as in ``MultipleKernelLearner``.

    loss is "square" or "epsilon_insensitive" (0.1 of the targets' standard deviation), or an object
    ``losses.EpsilonInsensitive``, as in the paper.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=(300, 2)).reshape(300, 8)
    >>> y = np.sqrt(X[:, 0]) - X[:, 1]
    >>> model = MultipleKernelRegressor(blocks=[slice(0, 4), slice(4, 8)], n_components=64, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.kernel_weights_[0, 0] > 10 * model.kernel_weights_[0, 1])
    (True, True)
    """
