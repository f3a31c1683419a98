"""Kernel machines that learn their kernel: its widths (RFF-SKL), or the weights of several (RFF-MKL)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import JSON, ArrayLike, Blocks, ClassWeight, RandomState, Sometimes
from chimap.estimators.base import HistogramModel
from chimap.estimators.targets import ClassTargets, RealTargets
from chimap.features.families import Prescribed
from chimap.kernel_learning.joint import ChannelLearner
from chimap.kernel_learning.widths import WidthLearner
from chimap.kernels import Kernel
from chimap.losses import Loss
from chimap.recipe import Recipe
from chimap.solvers.findings import KernelPath

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


class KernelLearner(HistogramModel):
    """Learns the widths first, on a part of the rows with few features, and then fits a plain model with them."""

    widths_: Sometimes[np.ndarray]
    width_names_: Sometimes[list[str]]
    width_columns_: Sometimes[np.ndarray]
    start_widths_: Sometimes[np.ndarray]
    history_: Sometimes[list[JSON]]
    stopped_: Sometimes[str]
    n_iter_: Sometimes[int]
    n_evaluations_: Sometimes[int]

    def _recipe(self) -> Recipe:
        return Recipe.of(self, WidthLearner.of(self), keeps_posterior=self._keeps_posterior)


class FourierKernelLearner(ClassTargets, KernelLearner):
    """Kernel classifier that learns the widths of its kernel, at a cost linear in the rows (RFF-SKL).

    The kernel is a product over blocks of columns, k(x, y) = prod_j k_(s_j)(x_j, y_j), with an inverse width s_j each:
    for "exp-chi2" it is exp(-sum_j s_j^2/2 D_j^2(x, y)). L-BFGS searches log s with exact gradients; inside, the
    weights are in closed form, for all classes at once, which share the kernel. The widths are found on a part of the
    rows with few features. Then all rows are read once, as ``HistogramClassifier`` reads them, with the widths folded
    into its features.

    The other parameters are those of ``HistogramClassifier``.

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
    features : str or FourierFeatures, default="auto"
        Unfitted ``FourierFeatures`` or ``SkewedFourierFeatures`` for their additive map, its terms, sampling and form;
        the number of components, kernel and seed are those of the estimator.
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
        Share of the tuning rows, above 0, that scores each iteration and stops the search early: without, many widths
        learn labels by heart. It is at least ten rows; fewer than 40 rows, or groups than three, have none.
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
    selection : int or "auto", default="auto"
        Number of folds that are held out to search for widths and to choose alpha. "auto" is five folds for the widths,
        and chooses alpha as in ``HistogramClassifier``.

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

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        *,
        blocks: Blocks | None = None,
        widths: str | ArrayLike = "block",
        n_components: int = 2048,
        features: Prescribed = "auto",
        normalize: str | None = None,
        objective: str = "held-out",
        width_penalty: str = "l2",
        width_strength: float = 0.0,
        n_tune_components: int | None = 512,
        n_tune_rows: int | None = 10_000,
        validation_fraction: float = 0.1,
        max_iter: int = 30,
        tol: float = 1e-3,
        patience: int = 5,
        loss: str | Loss = "square",
        class_weight: ClassWeight = None,
        weights: str = "importance",
        threshold: str | float | None = None,
        positive: object = None,
        alpha: str | float | Sequence[float] = "auto",
        selection: str | int | BaseCrossValidator = "auto",
        memory: str | int = "auto",
        precision: str = "float32",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.widths = widths
        self.n_components = n_components
        self.features = features
        self.normalize = normalize
        self.objective = objective
        self.width_penalty = width_penalty
        self.width_strength = width_strength
        self.n_tune_components = n_tune_components
        self.n_tune_rows = n_tune_rows
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.loss = loss
        self.class_weight = class_weight
        self.weights = weights
        self.threshold = threshold
        self.positive = positive
        self.alpha = alpha
        self.selection = selection
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class FourierKernelRegressor(RealTargets, KernelLearner):
    """Kernel ridge regression that learns the widths of its kernel, at a cost linear in the rows (RFF-SKL).

    The other parameters are those of ``FourierKernelLearner``, which says more of the method and what is learned.

    Parameters
    ----------
    loss : str or Loss, default="square"
        Loss of the final fit: "square", "epsilon_insensitive" or an object of ``chimap.losses``. See
        ``FourierKernelLearner``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(6), size=400)
    >>> model = FourierKernelRegressor("gaussian", widths="bin", n_components=128, max_iter=10, random_state=0)
    >>> widths = model.fit(X, np.sin(9 * X[:, 0])).widths_
    >>> int(widths.argmax())  # the target depends on the first bin only
    0
    """

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        *,
        blocks: Blocks | None = None,
        widths: str | ArrayLike = "block",
        n_components: int = 2048,
        features: Prescribed = "auto",
        normalize: str | None = None,
        objective: str = "held-out",
        width_penalty: str = "l2",
        width_strength: float = 0.0,
        n_tune_components: int | None = 512,
        n_tune_rows: int | None = 10_000,
        validation_fraction: float = 0.1,
        max_iter: int = 30,
        tol: float = 1e-3,
        patience: int = 5,
        loss: str | Loss = "square",
        weights: str = "importance",
        alpha: str | float | Sequence[float] = "auto",
        selection: str | int | BaseCrossValidator = "auto",
        memory: str | int = "auto",
        precision: str = "float32",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.widths = widths
        self.n_components = n_components
        self.features = features
        self.normalize = normalize
        self.objective = objective
        self.width_penalty = width_penalty
        self.width_strength = width_strength
        self.n_tune_components = n_tune_components
        self.n_tune_rows = n_tune_rows
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.loss = loss
        self.weights = weights
        self.alpha = alpha
        self.selection = selection
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class MultipleKernelModel(KernelLearner):
    """A sum of kernels, one per channel, whose weights are learned. See ``MultipleKernelLearner``."""

    kernel_weights_: np.ndarray
    path_: Sometimes[KernelPath]
    kkt_residual_: Sometimes[float]
    objective_: Sometimes[float]

    def _recipe(self) -> Recipe:
        return Recipe.of(self, ChannelLearner.of(self), keeps_posterior=self._keeps_posterior)

    @property
    def channels_(self) -> list[str]:
        """Names of the channels, in the order of ``kernel_weights_``."""
        return list(self.features_.names_)

    def describe(self) -> JSON:
        """Return a description of the model: see ``HistogramClassifier.describe``, plus the share of each channel.

        Returns
        -------
        dict
            In addition, "channels" maps each name to the share of the channel in the kernel weights, summed over the
            targets.
        """
        totals = self.kernel_weights_.sum(axis=0)
        shares = totals / (totals.sum() or 1.0)
        return super().describe() | {"channels": dict(zip(self.channels_, shares.tolist(), strict=True))}


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

    The other parameters are those of ``HistogramClassifier`` and, of the joint form, ``FourierKernelLearner``.

    Parameters
    ----------
    kernel : str, Kernel or list of these, default="exp-chi2"
        The kernel of every channel, or a list with one kernel per channel. See ``HistogramClassifier``.
    blocks : list or mapping of columns, default=None
        The channels: columns as slices or lists, in a list or a mapping of names. Each column must be in exactly one.
        None is a single channel.
    n_components : int, default=512
        Number of random features of each channel.
    loss : str or Loss, default="square"
        "square", "logistic", "squared_hinge", "smooth_hinge", or an object of ``chimap.losses``.
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
    width_strength : float, default=0.0
        Strength of the penalty on the widths in the joint form. Without it, only the validation rows keep kernels from
        becoming too narrow.
    n_tune_components : int or None, default=256
        Number of features per channel to learn the widths with in the joint form. See ``FourierKernelLearner``.
    max_iter : int, default=30
        Largest number of iterations of the joint form.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty, or several to choose from. "auto" is a path of ``n_alphas`` strengths from the smallest
        at which no kernel is used down to a thousandth of it, from which the folds choose. For losses other than the
        square, the path ends at a hundredth, or once four strengths in a row have not lowered the held-out loss.
    n_alphas : int, default=30
        Number of strengths on the path of ``alpha="auto"``.
    selection : int or "auto", default="auto"
        Number of folds that choose alpha; "auto" is five.

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
    ``alpha_``, ``feature_coef_``, ``intercept_``, ``features_``, ``classes_`` and ``n_passes_`` are as in
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

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "exp-chi2",
        *,
        blocks: Blocks | None = None,
        features: Prescribed = "auto",
        gamma: float | str = "mean",
        n_components: int = 512,
        normalize: str | None = None,
        loss: str | Loss = "square",
        class_weight: ClassWeight = None,
        weights: str = "importance",
        threshold: str | float | None = None,
        positive: object = None,
        shared: bool = False,
        group_weights: Sequence[float] | None = None,
        joint: bool = False,
        widths: str = "block",
        width_penalty: str = "l2",
        width_strength: float = 0.0,
        n_tune_components: int | None = 256,
        n_tune_rows: int | None = 10_000,
        validation_fraction: float = 0.1,
        max_iter: int = 30,
        tol: float = 1e-3,
        patience: int = 5,
        alpha: str | float | Sequence[float] = "auto",
        n_alphas: int = 30,
        selection: str | int | BaseCrossValidator = "auto",
        memory: str | int = "auto",
        precision: str = "float32",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.features = features
        self.gamma = gamma
        self.n_components = n_components
        self.normalize = normalize
        self.loss = loss
        self.class_weight = class_weight
        self.weights = weights
        self.threshold = threshold
        self.positive = positive
        self.shared = shared
        self.group_weights = group_weights
        self.joint = joint
        self.widths = widths
        self.width_penalty = width_penalty
        self.width_strength = width_strength
        self.n_tune_components = n_tune_components
        self.n_tune_rows = n_tune_rows
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.alpha = alpha
        self.n_alphas = n_alphas
        self.selection = selection
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class MultipleKernelRegressor(RealTargets, MultipleKernelModel):
    """Regression on a weighted sum of kernels, one per channel, whose weights are learned at linear cost (RFF-MKL).

    The other parameters are those of ``MultipleKernelLearner``, which says more of the method and what is learned.

    Parameters
    ----------
    loss : str or Loss, default="square"
        "square" or "epsilon_insensitive" (with a width of 0.1 standard deviations of the targets), or an object
        ``losses.EpsilonInsensitive``, as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=(300, 2)).reshape(300, 8)
    >>> y = np.sqrt(X[:, 0]) - X[:, 1]
    >>> model = MultipleKernelRegressor(blocks=[slice(0, 4), slice(4, 8)], n_components=64, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.kernel_weights_[0, 0] > 10 * model.kernel_weights_[0, 1])
    (True, True)
    """

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "exp-chi2",
        *,
        blocks: Blocks | None = None,
        features: Prescribed = "auto",
        gamma: float | str = "mean",
        n_components: int = 512,
        normalize: str | None = None,
        loss: str | Loss = "square",
        weights: str = "importance",
        shared: bool = False,
        group_weights: Sequence[float] | None = None,
        joint: bool = False,
        widths: str = "block",
        width_penalty: str = "l2",
        width_strength: float = 0.0,
        n_tune_components: int | None = 256,
        n_tune_rows: int | None = 10_000,
        validation_fraction: float = 0.1,
        max_iter: int = 30,
        tol: float = 1e-3,
        patience: int = 5,
        alpha: str | float | Sequence[float] = "auto",
        n_alphas: int = 30,
        selection: str | int | BaseCrossValidator = "auto",
        memory: str | int = "auto",
        precision: str = "float32",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.features = features
        self.gamma = gamma
        self.n_components = n_components
        self.normalize = normalize
        self.loss = loss
        self.weights = weights
        self.shared = shared
        self.group_weights = group_weights
        self.joint = joint
        self.widths = widths
        self.width_penalty = width_penalty
        self.width_strength = width_strength
        self.n_tune_components = n_tune_components
        self.n_tune_rows = n_tune_rows
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.alpha = alpha
        self.n_alphas = n_alphas
        self.selection = selection
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
