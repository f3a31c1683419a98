"""What a fit has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap._types import Parameters
from chimap.fit.solving import Learned
from chimap.fit.targets import Codec
from chimap.selection.learning_curve import LearningCurve
from chimap.solvers.held_out import HeldOut


@dataclass(frozen=True)
class Known:
    """What is learned before the rows are added up: seed, targets, features, and what else a design shows."""

    seed: int
    codec: Codec
    features: Any
    attributes: Parameters


@dataclass(frozen=True)
class HeldOutRows:
    """Outputs (m, t) of rows by machines that have not seen them, their labels or targets y (m,) and weights, (m,)
    or (m, t).

    noise (t,): variance of the targets about what is certain, where it is known.
    """

    outputs: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    noise: np.ndarray | None = None

    @classmethod
    def of(
        cls, held_out: HeldOut | None, y: np.ndarray, weights: np.ndarray | None = None
    ) -> HeldOutRows | None:
        """With the labels and weights of all rows of the source."""
        if held_out is None:
            return None
        rows = held_out.rows
        return cls(held_out.outputs, y[rows], None if weights is None else weights[rows], held_out.noise)


@dataclass(frozen=True)
class FitResult:
    """Features and their weights. coef (D, t), intercept (t,). shift (D,): of features that are rounded, or None.

    held_out: what the model says of rows that it has not seen, or None where there are too few. curve: how the score
    grows with the rows, where it comes with the fit.
    """

    known: Known
    learned: Learned
    coef: np.ndarray
    intercept: np.ndarray
    shift: np.ndarray | None
    n_features_in: int
    seconds: dict[str, float]
    chunk_rows: int
    held_out: HeldOutRows | None = None
    curve: LearningCurve | None = None
