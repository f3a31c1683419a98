"""Margins of predictions, by row and by task: rows with the smallest margins are explained first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli import data_rows, show

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap.data import Source


def margins(model: BaseEstimator, source: Source, y: np.ndarray | None, silent: bool) -> np.ndarray:
    """Return the margin of each row, (n,).

    With labels ``y``, the margin is that of the true answer, so that the worst mistake has the smallest margin. Without
    labels, it says how certain the prediction is.
    """
    import numpy as np

    out = np.empty(source.n_rows)
    spread = None if y is None else spread_of(y)
    for start, outputs in model.predict_chunks(source, show.progress(silent)):
        chunk = slice(start, start + len(outputs))
        truth = None if y is None else y[chunk]
        if hasattr(model, "classes_") and data_rows.task_names_of(model) is None:
            out[chunk] = _between_classes(model, outputs, truth)
        else:
            out[chunk] = of_tasks(model, outputs, truth, spread).min(axis=1)
    return out


def of_tasks(
    model: BaseEstimator, outputs: np.ndarray, y: np.ndarray | None, spread: np.ndarray | None
) -> np.ndarray:
    """Return the margins of each binary task or regression, (n, t); inf where the label is missing.

    The margin of a regression is its negative error divided by the spread (t,) of the target, so that units do not
    matter.
    """
    import numpy as np

    if y is None:
        return np.abs(outputs) if hasattr(model, "classes_") else np.zeros(outputs.shape)
    truth = y.reshape(outputs.shape)
    if hasattr(model, "classes_"):
        return np.where(np.isnan(truth), np.inf, outputs * (2 * truth - 1))
    assert spread is not None  # the labels of a regression are numbers
    return np.where(np.isnan(truth), np.inf, -np.abs(outputs - truth) / spread)


def spread_of(y: np.ndarray) -> np.ndarray | None:
    """Return the standard deviation of each target, (t,), with 1 for constant targets; None for text labels."""
    import numpy as np

    from chimap.data.label_kinds import is_text

    if is_text(y):
        return None
    known = np.ma.masked_invalid(y.reshape(len(y), -1).astype(np.float64))
    spread = np.ma.filled(known.std(axis=0), 0.0)
    return np.where(spread > 0, spread, 1.0)


def _between_classes(model: BaseEstimator, outputs: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    import numpy as np

    scores = np.hstack([-outputs, outputs]) if outputs.shape[1] == 1 else outputs.copy()
    if y is None:
        best = np.partition(scores, -2, axis=1)
        return best[:, -1] - best[:, -2]
    true_columns = np.searchsorted(model.classes_, y).clip(0, model.classes_.size - 1)
    rows = np.arange(len(outputs))
    score_of_true = scores[rows, true_columns]
    scores[rows, true_columns] = -np.inf
    return score_of_true - scores.max(axis=1)
