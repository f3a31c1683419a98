"""What a fit has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap.fit.solving import Learned
from chimap.fit.targets import Codec


@dataclass(frozen=True)
class Known:
    """What is learned before the rows are added up: seed, targets, features, and what else a design shows."""

    seed: int
    codec: Codec
    features: Any
    attributes: dict[str, Any]


@dataclass(frozen=True)
class FitResult:
    """Features and their weights. coef (D, t), intercept (t,). shift (D,): of features that are rounded, or None."""

    known: Known
    learned: Learned
    coef: np.ndarray
    intercept: np.ndarray
    shift: np.ndarray | None
    n_features_in: int
    seconds: dict[str, float]
    chunk_rows: int
