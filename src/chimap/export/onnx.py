"""Convert a model to an ONNX graph that takes rows and returns labels, probabilities and scores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from chimap._onnx import Graph, Value
from chimap.export.parts import ModelParts
from chimap.selection.calibration import Calibration

if TYPE_CHECKING:
    import onnx


INPUT_TYPES = ("float32", "float64", "int64")


def onnx_model(parts: ModelParts, input_type: str | None = None, precision: np.dtype | None = None) -> onnx.ModelProto:
    """Return normalisation, map, features and linear model as one ONNX graph.

    The input is ``X`` (n, bins), of ``input_type`` or, by default, in the precision of the model. It is computed in
    ``precision``, by default that of the model, and rows in float64 in float64; the scores and all that follows from
    them always are, so that classes that nearly tie keep their order.

    A classifier has the outputs that scikit-learn's models have in ONNX, ``label`` (n,), in the type of the labels, and
    ``probabilities`` (n, classes), and besides them ``scores`` (n, classes): the class with the largest score is the
    label, and with two classes the score of the first is the negated score of the second. A regression has the output
    ``prediction`` (n,). With several tasks every output has shape (n, t), one column per task in the order of ``tasks``
    in the metadata, and probabilities are those of label 1.

    The graph does not check its rows: input that chimap rejects (negative bins, NaN) gives meaningless numbers.

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    ValueError
        If the features or the kernel cannot be expressed in ONNX, or if the graph exceeds the 2 GiB of the format.
    """
    g = Graph()
    preparation = parts.preparation
    given = preparation.dtype if input_type is None else np.dtype(input_type)
    rows = g.info("X", given, ["rows", parts.n_bins])
    x = Value(g, "X", given)
    precision = preparation.dtype if precision is None else precision
    if given.kind == "i" or given.itemsize < precision.itemsize:
        x = x.cast(precision)
    if preparation.normalize is not None:
        x = preparation.normalize.onnx(x, [block.columns for block in preparation.parts], parts.n_bins)
    if preparation.factors is not None:
        x = x * preparation.factors
    outputs = parts.features.onnx(x).cast(np.float64) @ parts.coef + parts.intercept
    declared = _declare_outputs(g, outputs, parts)
    notes = {name: str(value) for name, value in parts.about.items() if value is not None}
    if parts.tasks is not None:
        notes["tasks"] = json.dumps(parts.tasks)
    return g.model([rows], declared, notes)


def _declare_outputs(g: Graph, outputs: Value, parts: ModelParts) -> list[onnx.ValueInfoProto]:
    if parts.classes is None:
        outputs = parts.loss.onnx(outputs)
    if parts.tasks is not None:
        return _declare_tasks(g, outputs, parts)
    if parts.classes is None:
        g.node("Squeeze", outputs, g.constant(np.array([1], np.int64)), name="prediction")
        return [g.info("prediction", outputs.dtype, ["rows"])]
    if parts.n_outputs == 1:
        class_index = (outputs.take(0, 1) > parts.threshold).cast(np.int64)
        g.node("Concat", outputs * -1.0, outputs, name="scores", axis=1)
    else:
        assert isinstance(parts.calibration, Calibration)
        class_index = parts.structure.onnx(outputs, parts.calibration)
        g.node("Identity", outputs, name="scores")
    labels = g.constant(parts.classes)
    g.node("Gather", labels, class_index, name="label", axis=0)
    shape = ["rows", parts.classes.size]
    return [g.info("label", labels.dtype, ["rows"]), *_declare_numbers(g, outputs, parts, shape)]


def _declare_numbers(g: Graph, outputs: Value, parts: ModelParts, shape: list[object]) -> list[onnx.ValueInfoProto]:
    """Declare the probabilities and, of scores that are there, the type and shape."""
    assert parts.calibration is not None
    g.node("Identity", parts.calibration.onnx(outputs), name="probabilities")
    return [g.info(name, outputs.dtype, shape) for name in ("probabilities", "scores")]


def _declare_tasks(g: Graph, outputs: Value, parts: ModelParts) -> list[onnx.ValueInfoProto]:
    """Declare labels 0 and 1, probabilities and scores, or predictions, each (n, t)."""
    shape = ["rows", parts.n_outputs]
    if parts.classes is None:
        g.node("Identity", outputs, name="prediction")
        return [g.info("prediction", outputs.dtype, shape)]
    g.node("Cast", outputs > 0.0, name="label", to=g.type_of(np.int64))
    g.node("Identity", outputs, name="scores")
    return [g.info("label", np.dtype(np.int64), shape), *_declare_numbers(g, outputs, parts, shape)]
