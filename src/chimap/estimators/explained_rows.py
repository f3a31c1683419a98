"""What the explanations of a fitted estimator are about: its reference row, its bins and its scores, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import Rows
from chimap._validation import DataError
from chimap.data.table import places_of
from chimap.explain import rows_like

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def mean_row(rows: Rows) -> np.ndarray:
    """Return the mean (columns,) of dense or sparse rows, summed in float64."""
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel().astype(rows.dtype) / rows.shape[0]


def mean_row_of_fit(model: BaseEstimator) -> np.ndarray:
    """Return the mean row (bins,) of the fit's sample. Raise DataError if the model does not know it."""
    mean = getattr(model, "mean_row_", None)
    if mean is None:
        raise DataError(
            "this model does not know the mean row of its fit: give rows to compare with as background=X."
        )
    return np.asarray(mean)


def rows_like_fit(model: BaseEstimator, is_signed: bool) -> np.ndarray:
    """Return rows whose bins have the means and deviations of the fit's sample. Raise DataError if it is not known.

    is_signed: whether bins may be negative.
    """
    deviation = getattr(model, "deviation_row_", None)
    if deviation is None:
        raise DataError("this model does not know the means and deviations of its fit's rows: give rows X.")
    return rows_like(mean_row_of_fit(model), deviation, is_signed)


def bin_names(model: BaseEstimator) -> np.ndarray:
    """Return the names of the bins, or their numbers; bins of images are named by cells and words."""
    names = getattr(model, "feature_names_in_", None)
    histograms = getattr(model, "histograms_", None)
    if names is None and histograms is not None:
        names = histograms.get_feature_names_out()
    return np.arange(model.n_features_in_) if names is None else np.asarray(names)


def places_of_bins(names: np.ndarray, bins: Sequence[int] | Sequence[str], estimator: str) -> list[int]:
    """Return the places of bins given by place, or by name or glob. Raise DataError if there is no such bin."""
    if any(isinstance(each, str) for each in bins):
        return places_of([str(name) for name in names], list(bins), estimator, "bins")
    places = [int(each) for each in bins]
    if wrong := [place for place in places if not -names.size <= place < names.size]:
        raise DataError(f"bins: there is no bin {wrong[0]}; the rows have {names.size} bins.")
    return places


def output_names(model: BaseEstimator, n_outputs: int) -> np.ndarray:
    """Return the names of the scores: classes, tasks or targets; two classes have one score, for the second."""
    classes = getattr(model, "classes_", None)
    if classes is None or is_of_tasks(model):
        names = getattr(model, "task_names_", None)
        if names is not None:
            return np.asarray(names)
        return np.array(["prediction"]) if n_outputs == 1 else np.arange(n_outputs)
    return np.asarray(classes[-n_outputs:])


def is_of_tasks(model: BaseEstimator) -> bool:
    """Whether the outputs belong to several tasks of two classes."""
    return bool(getattr(model, "multilabel_", False))


def answers_by_sign(model: BaseEstimator) -> bool:
    """Whether the sign of a score is the answer, as it is for two classes."""
    return is_of_tasks(model) or len(getattr(model, "classes_", ())) == 2


def answers_of(model: BaseEstimator, outputs: np.ndarray) -> np.ndarray:
    """Return labels, or predicted targets, for linear outputs."""
    if hasattr(model, "labels_of"):
        return np.asarray(model.labels_of(outputs))
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs
