"""Whether a written file predicts what the model does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap.data import ArraySource
from chimap.estimators.prediction import Prediction
from chimap.export.parts import ModelParts
from chimap.export.tables import BinTables
from chimap.features.base import FittedFeatures
from chimap.features.blocks import BlockFeatures
from chimap.features.landmarks.nystroem import NystroemFeatures

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


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


def _largest(features: FittedFeatures, n_bins: int) -> np.ndarray:
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


def compare_onnx(path: Path, model: BaseEstimator, parts: ModelParts) -> Comparison | None:
    """The file under onnxruntime against the model, on made rows; None where onnxruntime is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    X = made_rows(parts)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X}), strict=True))
    expected, answers = _of_model(model, X)
    if parts.classes is None:
        return _compared(outputs["prediction"].reshape(expected.shape), expected, 0)
    # labels of rows whose best two scores are as close as rounding may go either way
    differing = int((np.asarray(outputs["label"], parts.classes.dtype) != answers).sum())
    return _compared(outputs["scores"][:, -expected.shape[1] :], expected, differing)


def compare_tables(tables: BinTables, model: BaseEstimator, parts: ModelParts) -> Comparison:
    """The tables against the model, on made rows."""
    X = made_rows(parts)
    scores = tables.scores(X)
    expected, answers = _of_model(model, X)
    differing = 0 if parts.classes is None else int((parts.answers(scores) != answers).sum())
    return _compared(scores, expected, differing)


def _of_model(model: BaseEstimator, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear outputs (n, t), and labels or targets, of rows whose columns are those of the model."""
    if isinstance(model, Prediction):  # which matches columns by name
        outputs = model.predict_source(ArraySource(X, column_names=getattr(model, "feature_names_in_", None)))
    else:
        outputs = model._outputs(X)
    answers = model.labels_of(outputs) if hasattr(model, "labels_of") else model.targets_of(outputs)
    return outputs, answers


def _compared(outputs: np.ndarray, expected: np.ndarray, differing: int) -> Comparison:
    gap, size = np.abs(outputs - expected).max(), np.abs(expected).max()
    return Comparison(int(expected.shape[0]), float(gap), float(size), differing)
