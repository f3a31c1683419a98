"""How clearly rows are answered, and of several tasks which one the least: what is explained first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli.support import show, tasks

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap.data import Source


def margins(model: BaseEstimator, source: Source, y: np.ndarray | None, silent: bool) -> np.ndarray:
    """How clearly each row is answered, and rightly if its label is known: the worst mistake is the least, (n,)."""
    import numpy as np

    out = np.empty(source.n_rows)
    spread = None if y is None else spread_of(y)
    for start, outputs in model.predict_chunks(source, show.progress(silent)):
        part = slice(start, start + len(outputs))
        truth = None if y is None else y[part]
        if hasattr(model, "classes_") and tasks.names_of(model) is None:
            out[part] = _between_classes(model, outputs, truth)
        else:
            out[part] = of_tasks(model, outputs, truth, spread).min(axis=1)
    return out


def of_tasks(
    model: BaseEstimator, outputs: np.ndarray, y: np.ndarray | None, spread: np.ndarray | None
) -> np.ndarray:
    """The same for each task of two classes and each regression, (n, t); inf where the label is missing.

    Errors of regressions are in units of the spread (t,) of their targets, so that no unit counts more than another.
    """
    import numpy as np

    if y is None:
        return np.abs(outputs) if hasattr(model, "classes_") else np.zeros(outputs.shape)
    truth = y.reshape(outputs.shape)
    if hasattr(model, "classes_"):
        return np.where(np.isnan(truth), np.inf, outputs * (2 * truth - 1))
    assert spread is not None  # labels of a regression are numbers
    return np.where(np.isnan(truth), np.inf, -np.abs(outputs - truth) / spread)


def spread_of(y: np.ndarray) -> np.ndarray | None:
    """The standard deviation of each target, (t,), 1 where all are equal; None of classes that are text."""
    import numpy as np

    if y.dtype.kind not in "biuf":
        return None
    there = np.ma.masked_invalid(y.reshape(len(y), -1).astype(np.float64))
    spread = np.ma.filled(there.std(axis=0), 0.0)
    return np.where(spread > 0, spread, 1.0)


def _between_classes(model: BaseEstimator, outputs: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    import numpy as np

    scores = np.hstack([-outputs, outputs]) if outputs.shape[1] == 1 else outputs.copy()
    if y is None:
        best = np.partition(scores, -2, axis=1)
        return best[:, -1] - best[:, -2]
    true = np.searchsorted(model.classes_, y).clip(0, model.classes_.size - 1)
    rows = np.arange(len(outputs))
    own = scores[rows, true]
    scores[rows, true] = -np.inf
    return own - scores.max(axis=1)
