"""``export_model``: a model into a file of another kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chimap._files import check_writable, replacing
from chimap._validation import check_choice, check_positive
from chimap.export.check import Comparison, compare_onnx, compare_tables
from chimap.export.graph import import_onnx
from chimap.export.onnx import onnx_model
from chimap.export.parts import ModelParts, parts_of
from chimap.export.tables import WRITERS, bin_tables, write_tables
from chimap.export.weights import write_weights
from chimap.features.rounded import check_not_rounded

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


FORMATS: dict[str, tuple[str, ...]] = {
    "onnx": (".onnx",),
    "tables": tuple(WRITERS),
    "weights": (".safetensors", ".npz"),
}
"""Endings that each format takes; .npz alone means tables of an additive model, and else weights."""


@dataclass(frozen=True)
class Exported:
    """What was written. comparison : with the model, on made rows; None where nothing compared them. error : of a score
    from tables, at most, for rows within them.

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
    comparison: Comparison | None = None
    error: float | None = None


def export_model(
    model: BaseEstimator,
    path: str | Path,
    format: str | None = None,
    *,
    tolerance: float = 1e-3,
    overwrite: bool = False,
    check: bool = True,
) -> Exported:
    """Write a fitted model to a file that needs no chimap to be used.

    format : "onnx" (map, features and linear model as one graph), "tables" (of an additive model: knots and values of
        each bin's function; see ``export.tables.BinTables``), "weights" (coefficients and intercepts), or None for what
        the ending says: .onnx, .json and .csv, .safetensors; .npz is tables where the model has them, and else weights.
    tolerance : of tables, as of ``HistogramClassifier.compile``.
    check : whether tables, or an ONNX file where onnxruntime is installed, are compared with the model on made rows.

    model : ``HistogramClassifier``, ``FourierKernelLearner``, ``MultipleKernelLearner``, the regressions beside them,
    ``LookupClassifier``, or a compiled model. docs/guides/export.md tells how the files are read.

    Raises ValueError for what the format cannot hold, with what can; ImportError without the package onnx;
    FileExistsError unless ``overwrite``.

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
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; choose another name, or allow overwriting it.")
    check_writable(path)
    ending = path.suffix.lower()
    if chosen == "onnx":
        made = onnx_model(parts)
        with replacing(path) as beside:
            beside.write_bytes(made.SerializeToString())
        comparison = compare_onnx(path, model, parts) if check else None
        return Exported(path, chosen, path.stat().st_size, comparison)
    if chosen == "tables":
        check_not_rounded(model, "a table")
        tables = bin_tables(parts, tolerance)
        with replacing(path) as beside:
            write_tables(tables, beside, ending)
        comparison = compare_tables(tables, model, parts) if check else None
        return Exported(path, chosen, path.stat().st_size, comparison, tables.bound)
    with replacing(path) as beside:
        write_weights(parts, beside, ending)
    return Exported(path, chosen, path.stat().st_size)


def _format(path: Path, format: str | None, parts: ModelParts) -> str:
    ending = path.suffix.lower()
    if format is not None:
        check_choice(format, "format", tuple(FORMATS))
        if ending not in FORMATS[format]:
            raise ValueError(
                f"{path}: format {format!r} is written to {' or '.join(FORMATS[format])} files; name such a file."
            )
        if format == "onnx":
            import_onnx()
        return format
    able = [name for name, endings in FORMATS.items() if ending in endings]
    if not able:
        listed = "; ".join(f"{name}: {', '.join(endings)}" for name, endings in FORMATS.items())
        raise ValueError(f"{path}: the ending says what to write, and must be one of {listed}.")
    if len(able) == 1:
        return able[0]
    return "tables" if _is_additive(parts) else "weights"


def _is_additive(parts: ModelParts) -> bool:
    from chimap.tables import BinFunctions

    try:
        BinFunctions(parts.features, parts.coef)
    except ValueError:
        return False
    return True
