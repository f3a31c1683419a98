"""``export_model``: write a model to a file of another format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._files import check_free, check_writable, replacing
from chimap._messages import Message
from chimap._onnx import import_onnx
from chimap._validation import check_choice, check_positive
from chimap.export.onnx import INPUT_TYPES, onnx_model
from chimap.export.page import write_page
from chimap.export.parts import ModelParts, parts_of
from chimap.export.tables import WRITERS, BinTables, bin_tables
from chimap.export.weights import write_weights
from chimap.features.base import FittedFeatures
from chimap.features.blocks import BlockFeatures
from chimap.features.exact import ExactBlocks
from chimap.features.landmarks.nystroem import NystroemFeatures
from chimap.tables import BinFunctions

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


_ROWS = 256
_NEAR = 1e-4  # share of the largest score by which a file in float32 may be off; else it is written in float64
_NEAR_PROBABILITY = 1e-3


@dataclass(frozen=True)
class FileCheck:
    """The predictions of a file compared to those of the model."""

    rows: int
    difference: float  # largest absolute difference between two scores
    size: float  # largest absolute score of the model
    differing: int  # labels that differ
    probabilities: float | None = None  # largest difference between two; None if the file has none
    is_widened: bool = False  # whether a graph computes in float64, as it would not be near in the model's precision

    @property
    def is_near(self) -> bool:
        """Whether the file answers as the model does, but for rounding; False for NaN."""
        gap, off = self.difference, 0.0 if self.probabilities is None else self.probabilities
        return gap <= _NEAR * self.size and off <= _NEAR_PROBABILITY


def made_rows(parts: ModelParts, n_rows: int = _ROWS, seed: int = 0) -> np.ndarray:
    """Return synthetic rows (n, bins) in the precision of the model; a third of the entries and the first row are 0.

    Once prepared, the values have the magnitudes that the features were fitted on.
    """
    rng = np.random.default_rng(seed)
    scale = _largest(parts.features, parts.n_bins)
    X = scale * rng.beta(0.7, 3.0, (n_rows, parts.n_bins)) * (rng.random((n_rows, parts.n_bins)) > 1 / 3)
    X[0] = 0
    kernel, normalize = getattr(parts.features, "kernel_", None), parts.preparation.normalize
    if kernel is not None and kernel.is_signed and (normalize is None or normalize.takes_signs):
        X *= rng.choice([-1.0, 1.0], X.shape)
    for place in range(parts.n_bins):
        X[:, place] = parts.preparation.unit_of_bin(place).values(X[:, place])
    return X.astype(parts.preparation.dtype)


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


def compare_onnx(graph: bytes, parts: ModelParts, input_type: str | None = None) -> FileCheck | None:
    """Compare a graph, run by onnxruntime, to the model on synthetic rows; None if onnxruntime is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    X = made_rows(parts)
    if input_type is not None:
        X = (np.rint(X) if input_type == "int64" else X).astype(input_type)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X}), strict=True))
    expected = parts.outputs(X)
    if parts.classes is None:
        predicted = parts.loss.predicted(expected)
        return _compared(outputs["prediction"].reshape(predicted.shape), predicted, 0)
    assert parts.calibration is not None
    # If the best two scores of a row differ by no more than rounding, either label may come out.
    differing = int((np.asarray(outputs["label"], parts.classes.dtype) != parts.predicted(expected)).sum())
    off = np.abs(outputs["probabilities"] - parts.calibration(expected)).max()
    compared = _compared(outputs["scores"][:, -expected.shape[1] :], expected, differing)
    return replace(compared, probabilities=float(off))


def compare_tables(tables: BinTables, parts: ModelParts) -> FileCheck:
    """Compare the tables to the model on synthetic rows."""
    X = made_rows(parts)
    scores, expected = tables.scores(X), parts.outputs(X)
    differing = 0 if parts.classes is None else int((parts.predicted(scores) != parts.predicted(expected)).sum())
    return _compared(scores, expected, differing)


def _compared(outputs: np.ndarray, expected: np.ndarray, differing: int) -> FileCheck:
    if (is_bad := ~np.isfinite(outputs)).any():
        raise InputError(
            f"the file would answer {outputs[is_bad][0]} where the model answers {expected[is_bad][0]:g}: nothing was "
            "written. Export the weights, which need features from chimap or elsewhere."
        )
    gap, size = np.abs(outputs - expected).max(), np.abs(expected).max()
    return FileCheck(int(expected.shape[0]), float(gap), float(size), differing)


@dataclass(frozen=True)
class Wanted:
    """What is asked of a file besides its format.

    Parameters
    ----------
    path : Path
        Where the file will stand; it is written under a name of its own first.
    tolerance, input_type, check
        See ``export_model``.
    """

    path: Path
    tolerance: float
    input_type: str | None
    check: bool


Written: TypeAlias = tuple[FileCheck | None, float | None]
"""The comparison of a file with its model, and the bound on the error of its tables."""


def _write_onnx(parts: ModelParts, path: Path, wanted: Wanted) -> Written:
    graph, comparison = _checked_graph(parts, wanted.input_type, wanted.check)
    path.write_bytes(graph)
    return comparison, None


def _write_tables(parts: ModelParts, path: Path, wanted: Wanted) -> Written:
    tables = bin_tables(parts, wanted.tolerance)
    comparison = compare_tables(tables, parts) if wanted.check else None
    WRITERS[wanted.path.suffix.lower()](tables, path)
    return comparison, tables.bound


def _write_page(parts: ModelParts, path: Path, wanted: Wanted) -> Written:
    tables = bin_tables(parts, wanted.tolerance, "a page")
    comparison = compare_tables(tables, parts) if wanted.check else None
    write_page(tables, parts, path, wanted.path.stem)
    return comparison, tables.bound


def _write_weights(parts: ModelParts, path: Path, wanted: Wanted) -> Written:
    write_weights(parts, path, wanted.path.suffix.lower())
    return None, None


@dataclass(frozen=True)
class Format:
    """A format of files.

    Parameters
    ----------
    endings : tuple of str
        Endings of its files, the usual one first.
    write : callable
        Writes the parts of a model to a path.
    """

    endings: tuple[str, ...]
    write: Callable[[ModelParts, Path, Wanted], Written]


FORMATS: dict[str, Format] = {
    "onnx": Format((".onnx",), _write_onnx),
    "tables": Format(tuple(WRITERS), _write_tables),
    "weights": Format((".safetensors", ".npz"), _write_weights),
    "page": Format((".html",), _write_page),
}
"""The formats. Without one, .npz means tables for an additive model and weights for any other."""


@dataclass(frozen=True)
class Exported:
    """The result of an export.

    Parameters
    ----------
    path : Path
        The file that was written.
    format : {"onnx", "tables", "weights", "page"}
        Its format.
    n_bytes : int
        Its size in bytes.
    comparison : FileCheck or None, default=None
        The file's predictions compared to the model's on synthetic rows; None if they were not compared.
    error : float or None, default=None
        For tables and pages, the largest error of a score for rows within the range of the tables; else None.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from chimap import HistogramClassifier
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), 100)
    >>> model = HistogramClassifier("chi2", alpha=1.0).fit(X, X[:, 0] > 0.25)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = export_model(model, Path(folder) / "tables.json")
    >>> done.format, done.n_bytes > 0
    ('tables', True)
    """

    path: Path
    format: str
    n_bytes: int
    comparison: FileCheck | None = None
    error: float | None = None


def export_model(
    model: BaseEstimator,
    path: str | Path,
    format: str | None = None,
    *,
    tolerance: float = 1e-3,
    input_type: str | None = None,
    overwrite: bool = False,
    check: bool = True,
) -> Exported:
    """Write a fitted model to a file that can be used without chimap.

    docs/guides/export.md describes how to read the files.

    Parameters
    ----------
    model : estimator
        A fitted ``HistogramClassifier``, ``FourierKernelLearner``, ``MultipleKernelLearner``, the corresponding
        regressor, a ``LookupClassifier``, or a compiled model.
    path : str or Path
        The file to write.
    format : {"onnx", "tables", "weights", "page"} or None, default=None
        "onnx" writes map, features and linear model as one graph. "tables" writes the knots and values of each bin's
        function, for additive models (see ``export.tables.BinTables``). "weights" writes coefficients and intercepts.
        "page" writes an HTML page that predicts rows by such tables in a browser. None chooses by the ending of
        ``path``: .onnx is ONNX, .json and .csv are tables, .safetensors is weights, .html is a page, and .npz is tables
        if the model is additive, else weights.
    tolerance : float, default=1e-3
        Tolerance of tables and pages, defined as in ``HistogramClassifier.compile``.
    input_type : {"float32", "float64", "int64"} or None, default=None
        Type of the rows that an ONNX graph takes. Those in float64 are computed in float64. None is the precision of
        the model.
    overwrite : bool, default=False
        Whether to replace an existing file.
    check : bool, default=True
        Whether to compare the file to the model on synthetic rows: tables and pages always, an ONNX file if onnxruntime
        is installed, weights never.

    Returns
    -------
    Exported
        The path, format and size of the file, and the result of the comparison.

    Raises
    ------
    ValueError
        If the format cannot hold this model (the message names one that can), or if the ending of ``path`` and
        ``format`` do not go together.
    ImportError
        If ``format`` is "onnx" and the package onnx is not installed.
    FileExistsError
        If ``path`` exists and ``overwrite`` is False.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> model = HistogramClassifier("chi2").fit(*load_digits(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_model(model, f"{folder}/digits.csv").format
    'tables'
    """
    path = Path(path)
    parts = parts_of(model)
    chosen = _format(path, format, parts)
    check_positive(tolerance, "tolerance")
    check_choice(input_type, "input_type", (*INPUT_TYPES, None))
    if input_type is not None and chosen != "onnx":
        raise InputError(
            Message(
                "{input_type=} is for ONNX graphs, and {} would be written: leave it out, or write an .onnx file.",
                input_type,
                chosen,
            )
        )
    check_free(path, overwrite)
    check_writable(path)
    with replacing(path) as temporary:
        comparison, error = FORMATS[chosen].write(parts, temporary, Wanted(path, tolerance, input_type, check))
    return Exported(path, chosen, path.stat().st_size, comparison, error)


def _checked_graph(parts: ModelParts, input_type: str | None, check: bool) -> tuple[bytes, FileCheck | None]:
    """Return a graph and its comparison: in the precision of the model, or in float64 where that is not near it."""
    precisions = dict.fromkeys([parts.preparation.dtype, np.dtype(np.float64)])
    for precision in precisions:
        graph = onnx_model(parts, input_type, precision).SerializeToString()
        compared = compare_onnx(graph, parts, input_type) if check else None
        if compared is None or compared.is_near:
            break
    return graph, compared and replace(compared, is_widened=precision != parts.preparation.dtype)


def _format(path: Path, format: str | None, parts: ModelParts) -> str:
    ending = path.suffix.lower()
    if format is not None:
        check_choice(format, "format", tuple(FORMATS))
        if ending not in (endings := FORMATS[format].endings):
            raise InputError(
                f"{path}: format {format!r} is written to {' or '.join(endings)} files; change the file name."
            )
        if format == "onnx":
            import_onnx()
        return format
    formats = [name for name, each in FORMATS.items() if ending in each.endings]
    if not formats:
        listed = "; ".join(f"{name}: {', '.join(each.endings)}" for name, each in FORMATS.items())
        raise InputError(f"{path}: the file ending selects the format, and must be one of {listed}.")
    if len(formats) == 1:
        return formats[0]
    try:
        BinFunctions(parts.features, parts.coef)
    except ValueError:  # the model is not additive
        return "weights"
    return "tables"
