"""Compare the predictions of a written file to those of the model."""

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
from chimap.features.exact import ExactBlocks
from chimap.features.landmarks.nystroem import NystroemFeatures

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


_ROWS = 256


@dataclass(frozen=True)
class FileCheck:
    """The predictions of a file compared to those of the model.

    Parameters
    ----------
    rows : int
        Number of rows compared.
    difference : float
        Largest absolute difference between two scores.
    size : float
        Largest absolute score of the model.
    differing : int
        Number of labels that differ.
    """

    rows: int
    difference: float
    size: float
    differing: int


def made_rows(parts: ModelParts, n_rows: int = _ROWS, seed: int = 0) -> np.ndarray:
    """Return synthetic rows (n, bins) in the model's precision.

    Once prepared, the values have the magnitudes that the features were fitted on; about a third of them are 0, and the
    first row is empty.
    """
    rng = np.random.default_rng(seed)
    scale = _largest(parts.features, parts.n_bins)
    X = scale * rng.beta(0.7, 3.0, (n_rows, parts.n_bins)) * (rng.random((n_rows, parts.n_bins)) > 1 / 3)
    X[0] = 0
    kernel = getattr(parts.features, "kernel_", None)
    if kernel is not None and kernel.is_signed:
        X *= rng.choice([-1.0, 1.0], X.shape)
    for place in range(parts.n_bins):
        X[:, place] = parts.units(place).values(X[:, place])
    return X.astype(parts.dtype)


def _largest(features: FittedFeatures, n_bins: int) -> np.ndarray:
    """Return the largest magnitude of each bin if the features know it, else 1."""
    if isinstance(features, BlockFeatures | ExactBlocks):
        out = np.zeros(n_bins)
        for block, columns in zip(features.features_, features.columns_, strict=True):
            out[columns] = np.maximum(out[columns], _largest(block, columns.size))
        return out
    if isinstance(features, NystroemFeatures):
        return np.abs(_arrays.to_dense(features.landmarks_)).max(axis=0).astype(np.float64)
    known = getattr(features, "largest_", getattr(getattr(features, "map_", None), "largest_", None))
    return np.ones(n_bins) if known is None else np.asarray(known)


def compare_onnx(path: Path, model: BaseEstimator, parts: ModelParts) -> FileCheck | None:
    """Compare the file, run by onnxruntime, to the model on synthetic rows; None if onnxruntime is not installed."""
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
    # If the best two scores of a row differ by no more than rounding, either label may come out.
    differing = int((np.asarray(outputs["label"], parts.classes.dtype) != answers).sum())
    return _compared(outputs["scores"][:, -expected.shape[1] :], expected, differing)


def compare_tables(tables: BinTables, model: BaseEstimator, parts: ModelParts) -> FileCheck:
    """Compare the tables to the model on synthetic rows."""
    X = made_rows(parts)
    scores = tables.scores(X)
    expected, answers = _of_model(model, X)
    differing = 0 if parts.classes is None else int((parts.answers(scores) != answers).sum())
    return _compared(scores, expected, differing)


def _of_model(model: BaseEstimator, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the linear outputs (n, t) and the labels or targets of rows whose columns are in the model's order."""
    if isinstance(model, Prediction):  # it matches columns by name, so it needs the names
        outputs = model.predict_source(ArraySource(X, column_names=getattr(model, "feature_names_in_", None)))
    else:
        outputs = model.decision_function(X).reshape(X.shape[0], -1)  # one column for two classes
    answers = model.labels_of(outputs) if hasattr(model, "labels_of") else model.targets_of(outputs)
    return outputs, answers


def _compared(outputs: np.ndarray, expected: np.ndarray, differing: int) -> FileCheck:
    gap, size = np.abs(outputs - expected).max(), np.abs(expected).max()
    return FileCheck(int(expected.shape[0]), float(gap), float(size), differing)
