"""From the result of a fit to the attributes of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from chimap._types import Sometimes
from chimap.estimators.settled import SettledModel
from chimap.fit.recipe import given_weights
from chimap.fit.result import FitResult, HeldOutRows
from chimap.fit.targets import Codec
from chimap.losses import Loss, Observed
from chimap.selection import LearningCurve, SelectionResult


class AdoptingModel(SettledModel):
    """A model that takes its learned attributes from the result of a fit."""

    _codec: Sometimes[Codec]
    _stale: bool = False  # whether batches have arrived since the weights were solved for
    _seed: int
    learning_curve_: Sometimes[LearningCurve | None]
    loss_: Loss | None
    selection_: SelectionResult | None
    _take_codec: Callable[[Codec], None]
    _take_held_out: Callable[[HeldOutRows | None], None]
    keeps_posterior: ClassVar[bool]

    def _adopt(self, result: FitResult) -> None:
        """Set the learned attributes from a result."""
        fitted, learned = result.known, result.learned
        self.n_features_in_ = result.n_features_in
        self._seed, self._codec = fitted.seed, fitted.codec
        self._take_codec(fitted.codec)
        self.features_, self.kernel_ = fitted.features, fitted.features.kernel_
        self._coef, self._intercept, self.alpha_ = result.coef, result.intercept, learned.solution.alpha
        loss = learned.loss
        self.selection_, self.loss_ = learned.selection, loss.loss if isinstance(loss, Observed) else loss
        self.n_passes_, self.n_rows_, self.learning_curve_ = learned.n_passes, learned.n_rows, result.curve
        self.bin_weights_ = given_weights(self._given())
        if result.shift is not None:
            self.shift_ = result.shift
        for name, value in (fitted.attributes | learned.attributes).items():
            setattr(self, name, value)
        self._take_held_out(result.held_out)
        self._posterior = learned.posterior() if self._keeps_posterior else None
        self._stale = False

    @property
    def _keeps_posterior(self) -> bool:
        return self.keeps_posterior and self._given().get("n_principal") is None
