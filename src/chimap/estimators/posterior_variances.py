"""Variances of predictions by the posterior of Bayesian ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from chimap._messages import Message
from chimap._types import Rows
from chimap.backends.base import RowFeatures
from chimap.kernels import Kernel
from chimap.solvers.posterior import DualPosterior, Posterior


def checked_posterior(posterior: Posterior | DualPosterior | None) -> Posterior | DualPosterior:
    """Return the posterior. Raise ValueError if the fit left none."""
    if posterior is None:
        raise ValueError(
            Message(
                "return_std needs {loss='square'}, features as they are, and a y without missing entries; this "
                "model has no posterior. predict_set returns intervals for every model."
            )
        )
    return posterior


def posterior_variances(
    posterior: Posterior | DualPosterior, features: RowFeatures, kernel: Kernel, rows: Rows, dtype: np.dtype
) -> np.ndarray:
    """Return the variances (n,) of the outputs of prepared rows, divided by that of the noise."""
    values: Any = features
    if isinstance(posterior, DualPosterior) and posterior.n_rows < features._n_features_out:
        values = values.take(slice(posterior.n_rows))  # a machine in blocks has that of its first rows
    Z = np.empty((rows.shape[0], values._n_features_out), dtype=dtype)
    values.features_into(rows, Z)
    if isinstance(posterior, DualPosterior):
        return posterior.variances(Z, np.asarray(kernel.diagonal(rows), dtype=np.float64))
    return posterior.variances(Z)
