"""Features of several channels and the weights of their kernels: what classifier and regressor share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import JSON, Blocks, ClassWeight, Parameters, RandomState, Rows
from chimap._validation import check_choice, check_positive
from chimap.features.base import Features, FittedFeatures
from chimap.features.blocks import BlockFeatures
from chimap.features.fourier.widths import partition
from chimap.features.scaled import Scale, ScaledFeatures
from chimap.fit.design import PlainDesign, features_of
from chimap.fit.designing import Design
from chimap.fit.recipe import checked_alpha
from chimap.fit.settling import check_sizes, feature_settings
from chimap.kernel_learning.channel_widths import ChannelDesign
from chimap.kernel_learning.kernel_learner import KernelLearner
from chimap.kernel_learning.kernel_weights import KernelWeights
from chimap.kernels import Kernel
from chimap.losses import Loss

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


@dataclass(frozen=True)
class Channels(PlainDesign):
    """Features of the channels side by side; each column belongs to exactly one channel."""

    def fit(self, sample: Rows, seed: int, sample_weight: np.ndarray | None = None) -> FittedFeatures:
        """See ``Design``."""
        partition(self.blocks, sample.shape[1])
        parts = self.parts(sample.shape[1])
        scale = Scale.of(sample, [part.settings.exact for part in parts])
        fitted = features_of([part.scaled(scale) for part in parts], seed).fit(scale.rows(sample))
        if not scale.exponent:
            return fitted
        channels = [ScaledFeatures(features, scale) for features in fitted.features_]
        return BlockFeatures.of_fitted(channels, {part.name: part.columns for part in parts}, sample.shape[1])


class MultipleKernelModel(KernelLearner):
    """A sum of kernels, one per channel, whose weights are learned. See ``MultipleKernelLearner``."""

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
        weights: str = "importance",
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
        self.weights = weights
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

    def _design(self, given: Parameters) -> Design:
        check_sizes(given)
        for name in ("shared", "joint"):
            check_choice(getattr(self, name), name, (False, True))
        check_choice(self.widths, "widths", ("block", "bin"))
        tuning = self._tuning("training", self.joint)
        settings, blocks = feature_settings(given), self._named_blocks()
        if not self.joint:
            return Channels(settings, blocks)
        return ChannelDesign(settings, blocks, self.widths, tuning, self._objective(given))

    def _objective(self, given: Parameters) -> KernelWeights:
        check_positive(self.n_alphas, "n_alphas", integer=True)
        return KernelWeights(
            self._checked_loss(given), checked_alpha(self.alpha), self.n_alphas, self.group_weights, bool(self.shared),
            not self.joint,
        )  # fmt: skip

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
