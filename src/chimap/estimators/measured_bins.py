"""How much each bin matters: by its slope, by the variance of its contributions, or by the score without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._types import Rows
from chimap.data.labels import clean_targets
from chimap.estimators.explained_rows import answers_of, mean_row
from chimap.explain import gradient_importance, variance_importance
from chimap.features.mapped_functions import MappedModel
from chimap.fit.targets import Codec, is_matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

VARIANCE_ROWS = 200  # rows whose contributions are compared


def slopes_of_bins(model: MappedModel | None, rows: Rows, units: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the importance (bins,) by slopes of the scores in their units. Raise ValueError if they have no slopes."""
    if model is None:
        raise InputError(
            "kind='gradient' is for additive kernels and exponential kernels over them; use kind='variance' or "
            "'permutation'."
        )
    model = replace(model, function=model.function.divided(units))
    return gradient_importance(model, rows, n_bins)


def variances_of_bins(
    contributions: Callable[[Rows, np.ndarray], tuple[np.ndarray, np.ndarray]], rows: Rows, units: np.ndarray
) -> np.ndarray:
    """Return the importance (bins,) by variances of contributions to the scores in their units, on some of the rows.

    contributions: returns those of rows, relative to a reference row, and the scores of the reference.
    """
    if rows.shape[0] > VARIANCE_ROWS:
        chosen = np.random.default_rng(0).choice(rows.shape[0], VARIANCE_ROWS, replace=False)
        rows = _arrays.take_rows(rows, np.sort(chosen))
    of_bins, _ = contributions(rows, mean_row(rows))
    return variance_importance(of_bins / units)


def units_of_targets(outputs: Callable[[Rows], np.ndarray], rows: Rows) -> np.ndarray:
    """Return units by which outputs are divided to compare them: several regression targets have different units."""
    spread = outputs(_arrays.take_rows(rows, slice(VARIANCE_ROWS))).std(axis=0)
    return np.where(spread > 0, spread, 1.0) if spread.size > 1 else np.ones(1)


def score_of_rows(
    model: BaseEstimator, codec: Codec, y: np.ndarray, outputs: Callable[[Rows], np.ndarray]
) -> Callable[[Rows], float]:
    """Return the function that measures accuracy or R^2 on prepared rows with labels or targets y.

    outputs: returns the linear outputs of prepared rows.
    """
    if is_matrix(y):
        score = codec.score(clean_targets(y, y.shape[1], "y"), None)
        return lambda rows: score(outputs(rows))

    from sklearn.metrics import accuracy_score, r2_score

    measure = accuracy_score if hasattr(model, "classes_") else r2_score
    return lambda rows: float(measure(y, answers_of(model, outputs(rows))))
