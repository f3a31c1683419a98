"""Kernels of several channels, weighted by learning: RFF-MKL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from chimap._types import JSON, Blocks, ClassWeight, RandomState, Rows
from chimap._validation import check_choice, check_positive
from chimap.estimators.channel_widths import ChannelDesign
from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.kernel_learning import KernelLearner
from chimap.estimators.kernel_weights import KernelWeights
from chimap.estimators.real_targets import RealTargets
from chimap.features.base import Features, FittedFeatures
from chimap.features.blocks import BlockFeatures
from chimap.features.fourier.width_groups import partition
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.fit.design import Design, PlainDesign, features_of
from chimap.fit.recipe import checked_alpha
from chimap.kernels import Kernel
from chimap.losses import CATALOGUE as LOSSES
from chimap.losses import Loss

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


@dataclass(frozen=True)
class Channels(PlainDesign):
    """Features of each channel side by side; each column belongs to one."""

    def fit(self, sample: Rows, seed: int) -> FittedFeatures:
        """See ``Design``."""
        partition(self.blocks, sample.shape[1])
        parts = self.parts(sample.shape[1])
        scale = Scale.of(sample, [part.settings.exact for part in parts])
        fitted = features_of([part.scaled(scale) for part in parts], seed).fit(scale.rows(sample))
        if not scale.exponent:
            return fitted
        each = [ScaledFeatures(one, scale) for one in fitted.features_]
        return BlockFeatures.of_fitted(each, {part.name: part.columns for part in parts}, sample.shape[1])


class MultipleKernelModel(KernelLearner):
    """A sum of kernels, one a channel, whose weights are learned. See ``MultipleKernelLearner``."""

    _holds_out_groups = True
    _races = False

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "exp-chi2",
        *,
        blocks: Blocks | None = None,
        features: str | Features = "auto",
        gamma: float | str = "mean",
        n_components: int = 512,
        n_terms: int = 2,
        sampling: str = "auto",
        form: str = "pair",
        normalize: str | None = None,
        loss: str | Loss = "square",
        class_weight: ClassWeight = None,
        threshold: str | float | None = None,
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
        memory: str | int = "1GiB",
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
        self.n_terms = n_terms
        self.sampling = sampling
        self.form = form
        self.normalize = normalize
        self.loss = loss
        self.class_weight = class_weight
        self.threshold = threshold
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

    def _design(self) -> Design:
        self._check_sizes()
        for name in ("shared", "joint"):
            check_choice(getattr(self, name), name, (False, True))
        check_choice(self.widths, "widths", ("block", "bin"))
        tuning = self._tuning("training", self.joint)
        if not self.joint:
            return Channels(self._settings(), self._named_blocks())
        return ChannelDesign(self._settings(), self._named_blocks(), self.widths, tuning, self._objective())

    def _objective(self) -> KernelWeights:
        check_positive(self.n_alphas, "n_alphas", integer=True)
        return KernelWeights(
            self._checked_loss(), checked_alpha(self.alpha), self.n_alphas, self.group_weights, bool(self.shared),
            not self.joint,
        )  # fmt: skip

    @property
    def channels_(self) -> list[str]:
        """Names of the channels, in the order of ``kernel_weights_``."""
        return list(self.features_.names_)

    def describe(self) -> JSON:
        """See ``HistogramClassifier``; and of each channel its share of the kernel weights, summed over the targets."""
        totals = self.kernel_weights_.sum(axis=0)
        shares = totals / (totals.sum() or 1.0)
        return super().describe() | {
            "channels": dict(zip(self.channels_, shares.tolist(), strict=True)),
        }


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
