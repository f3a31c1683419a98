"""A model that learns the widths of its kernel before the fit: what classifier and regressor share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike, Blocks, ClassWeight, Parameters, RandomState
from chimap._validation import ParameterError, check_choice, check_positive
from chimap.estimators.base import HistogramModel
from chimap.features.additive.base import AdditiveMap
from chimap.fit.designing import Design
from chimap.fit.recipe import Objective, checked_alpha
from chimap.fit.settling import check_sizes, feature_settings
from chimap.fit.solving import PenalisedLoss
from chimap.fit.targets import ClassCodec
from chimap.kernel_learning.width_design import SEARCHES, Tuning, WidthDesign
from chimap.kernel_learning.width_search import WidthPenalty
from chimap.kernels import Kernel
from chimap.losses import Loss
from chimap.selection import fold_count
from chimap.selection.base import OpenSettings

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator


class KernelLearner(HistogramModel):
    """Learns the widths first, on a part of the rows with few features, and then fits a plain model with them."""

    _holds_out_groups = False
    _races = False

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        *,
        blocks: Blocks | None = None,
        widths: str | ArrayLike = "block",
        n_components: int = 2048,
        n_terms: int = 2,
        map: AdditiveMap | None = None,
        sampling: str = "auto",
        form: str = "pair",
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
        alpha: str | float | Sequence[float] = "auto",
        selection: str | int | BaseCrossValidator = "auto",
        memory: str | int = "1GiB",
        precision: str = "float32",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.widths = widths
        self.n_components = n_components
        self.n_terms = n_terms
        self.map = map
        self.sampling = sampling
        self.form = form
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
        self.alpha = alpha
        self.selection = selection
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _design(self, given: Parameters) -> Design:
        check_sizes(given)
        check_choice(self.objective, "objective", tuple(SEARCHES))
        settings = feature_settings(given)
        return WidthDesign(settings, self._named_blocks(), self.widths, self._tuning(self.objective))

    def _objective(self, given: Parameters) -> Objective:
        return PenalisedLoss(self._checked_loss(given), OpenSettings(checked_alpha(self.alpha)))

    def _tuning(self, objective: str, holds_out: bool = True) -> Tuning:
        """Return the checked settings of the search for widths.

        holds_out: whether folds are needed even if alpha is given.
        """
        check_choice(self.width_penalty, "width_penalty", ("l2", "l1"))
        if self.width_strength != 0:
            check_positive(self.width_strength, "width_strength")
            if objective == "gradients":
                raise InputError(
                    Message(
                        "{width_strength=!s} is a penalty of an objective that is minimised, but "
                        "{objective='gradients'} takes widths from slopes. Leave {width_strength} at 0.",
                        self.width_strength,
                    )
                )
        for name in ("n_tune_components", "n_tune_rows"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name, integer=True)
        for name in ("max_iter", "patience"):
            check_positive(getattr(self, name), name, integer=True)
        check_positive(self.tol, "tol")
        if not 0 <= self.validation_fraction < 1:
            raise ParameterError("validation_fraction", self.validation_fraction, "at least 0 and below 1")
        return Tuning(
            objective, WidthPenalty(self.width_penalty, float(self.width_strength)), self.n_tune_components,
            self.n_tune_rows, self.validation_fraction, self.max_iter, self.tol, self.patience,
            checked_alpha(self.alpha), fold_count(self.selection, 2 if holds_out else 1),
            self._codec_type is ClassCodec,
        )  # fmt: skip
