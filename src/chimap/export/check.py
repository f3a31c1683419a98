"""Whether a written file predicts what the model does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chimap import _arrays
from chimap.export.parts import ModelParts
from chimap.export.tables import BinTables
from chimap.features.blocks import BlockFeatures
from chimap.features.landmarks.nystroem import NystroemFeatures

_ROWS = 256


@dataclass(frozen=True)
class Comparison:
    """Of rows: how many, the largest difference of scores, the model's largest score, and how many labels differ."""

    rows: int
    difference: float
    size: float
    differing: int


def made_rows(parts: ModelParts, n_rows: int = _ROWS, seed: int = 0) -> np.ndarray:
    """Rows (n, bins) of the sizes that the features were fitted on, a third empty, in the model's precision."""
    rng = np.random.default_rng(seed)
    scale = _largest(parts.features, parts.n_bins)
    X = scale * rng.beta(0.7, 3.0, (n_rows, parts.n_bins)) * (rng.random((n_rows, parts.n_bins)) > 1 / 3)
    X[0] = 0
    kernel = getattr(parts.features, "kernel_", None)
    if kernel is not None and kernel.is_signed:
        X *= rng.choice([-1.0, 1.0], X.shape)
    return X.astype(parts.dtype)


def _largest(features: Any, n_bins: int) -> np.ndarray:
    """The largest magnitudes of the bins, as far as the features know them; 1 where they do not."""
    if isinstance(features, BlockFeatures):
        out = np.zeros(n_bins)
        for own, columns in zip(features.features_, features.columns_, strict=True):
            out[columns] = np.maximum(out[columns], _largest(own, columns.size))
        return out
    if isinstance(features, NystroemFeatures):
        return np.abs(_arrays.to_dense(features.landmarks_)).max(axis=0).astype(np.float64)
    known = getattr(features, "largest_", getattr(getattr(features, "map_", None), "largest_", None))
    return np.ones(n_bins) if known is None else np.asarray(known)


def compare_onnx(path: Path, model: Any, parts: ModelParts) -> Comparison | None:
    """The file under onnxruntime against the model, on made rows; None where onnxruntime is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    X = made_rows(parts)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    found = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X}), strict=True))
    if parts.classes is None:
        return _compared(found["prediction"], model.predict(X), 0)
    expected = np.asarray(model.decision_function(X))
    scores = found["scores"] if expected.ndim == 2 else found["scores"][:, 1]
    # labels of rows whose best two scores are as close as rounding may go either way
    differing = int((np.asarray(found["label"], parts.classes.dtype) != model.predict(X)).sum())
    return _compared(scores, expected, differing)


def compare_tables(tables: BinTables, model: Any, parts: ModelParts) -> Comparison:
    """The tables against the model, on made rows."""
    X = made_rows(parts)
    scores = tables.scores(X)
    if parts.classes is None:
        return _compared(scores[:, 0], model.predict(X), 0)
    expected = np.asarray(model.decision_function(X))
    is_best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > parts.threshold).astype(int)
    differing = int((parts.classes[is_best] != model.predict(X)).sum())
    return _compared(scores.reshape(expected.shape), expected, differing)


def _compared(found: np.ndarray, expected: np.ndarray, differing: int) -> Comparison:
    gap, size = np.abs(found - expected).max(), np.abs(expected).max()
    return Comparison(int(expected.shape[0]), float(gap), float(size), differing)
