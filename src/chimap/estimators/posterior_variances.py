"""Variances of predictions by the posterior of Bayesian ridge."""

from __future__ import annotations

from typing import cast

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import Rows
from chimap.backends.base import RowFeatures
from chimap.features.exact import RowKernel
from chimap.kernels import Kernel
from chimap.solvers.posterior import DualPosterior, Posterior


def checked_posterior(posterior: Posterior | DualPosterior | None) -> Posterior | DualPosterior:
    """Return the posterior. Raise ValueError if the fit left none."""
    if posterior is None:
        raise InputError(
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
    if isinstance(posterior, DualPosterior) and posterior.n_rows < features._n_features_out:
        # a machine in blocks has that of its first rows
        features = cast(RowKernel, features).take(slice(posterior.n_rows))
    Z = np.empty((rows.shape[0], features._n_features_out), dtype=dtype)
    features.features_into(rows, Z)
    if isinstance(posterior, DualPosterior):
        return posterior.variances(Z, np.asarray(kernel.diagonal(rows), dtype=np.float64))
    return posterior.variances(Z)
