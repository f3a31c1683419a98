"""How much work a separate fit of a race was, by the operations that it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_EACH = 0.15  # seconds of a fit that are not counted as operations
_OPERATIONS = 5e10  # per second, of a fit as a whole
_STRENGTHS = 4  # factors, where the number of strengths that were scored is not known


def work_of_fit(fitted: BaseEstimator, n_rows: int) -> float:
    """Return the estimated seconds of a fit of n rows on two cores: the same number on every machine.

    With D features of p bins and s strengths these are 2 n p D operations for features, n D^2 for their sums unless the
    machine is exact, with D = n, and s factors of D^3/3. For the square loss the estimate is within a
    factor of three of the time; LIBLINEAR and solvers that read the rows again take longer.

    Parameters
    ----------
    fitted : estimator
        The fitted estimator.
    n_rows : int
        Number of rows that it was fitted on.
    """
    n_features = float(fitted.coef_.shape[-1])
    selection = getattr(fitted, "selection_", None)
    strengths = _STRENGTHS if selection is None else np.shape(selection.scores)[0]
    products = 2 * fitted.n_features_in_ * n_features * n_rows
    sums = 0.0 if n_features == n_rows else n_features**2 * n_rows
    return _EACH + (products + sums + strengths * n_features**3 / 3) / _OPERATIONS
