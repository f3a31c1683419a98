"""Convert a model to an ONNX graph that takes rows and returns labels and scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce, singledispatch
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap.backends.base import RowFeatures
from chimap.export.graph import Graph, Value
from chimap.export.onnx_kernels import dirichlet_logs, gram, row_sums
from chimap.export.onnx_maps import map_features, stationary_waves
from chimap.export.parts import ModelParts
from chimap.features.additive import AdditiveMap, DirichletMap, StationaryMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.blocks import BlockFeatures
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.features.fourier.base import RandomFeatures
from chimap.features.landmarks import LandmarkFeatures, NystroemFeatures
from chimap.features.scaled import ScaledFeatures

if TYPE_CHECKING:
    import onnx


def onnx_model(parts: ModelParts) -> onnx.ModelProto:
    """Return normalisation, map, features and linear model as one ONNX graph.

    The input is ``X`` (n, bins) in the precision of the model. A classifier has the outputs ``label`` (n,), in the type
    of the labels, and ``scores`` (n, classes): the class with the largest score is the label, and with two classes the
    score of the first is the negated score of the second. A regression has the output ``prediction`` (n,). With several
    tasks every output has shape (n, t), one column per task in the order of ``tasks`` in the metadata.

    The graph does not check its rows: input that chimap rejects (negative bins, NaN) gives meaningless numbers.

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    ValueError
        If the features or the kernel cannot be expressed in ONNX, or if the graph exceeds the 2 GiB of the format.
    """
    g = Graph()
    rows = g.info("X", parts.dtype, ["rows", parts.n_bins])
    x = _normalised(Value(g, "X", parts.dtype), parts)
    if parts.factors is not None:
        x = x * parts.factors
    outputs = features(parts.features, g, x) @ parts.coef.astype(parts.dtype) + parts.intercept
    declared = _declare_outputs(g, outputs, parts)
    notes = {name: str(value) for name, value in parts.about.items() if value is not None}
    if parts.tasks is not None:
        notes["tasks"] = json.dumps(parts.tasks)
    return g.model([rows], declared, notes)


def _normalised(x: Value, parts: ModelParts) -> Value:
    return x if parts.normalize is None else NORMALIZED[parts.normalize](x, parts)


def _l1(x: Value, parts: ModelParts) -> Value:
    for columns in parts.blocks:
        is_whole = np.array_equal(columns, np.arange(parts.n_bins))
        sums = row_sums(x if is_whole else x.take(columns, 1))
        scaled = x / sums
        if is_whole:
            x = scaled
            continue
        inside = np.zeros(parts.n_bins, dtype=bool)
        inside[columns] = True
        x = x.graph.constant(inside).where(scaled, x)
    return x


def _log1p(x: Value, parts: ModelParts) -> Value:
    # ONNX has no log1p, so the logarithm of 1 + x is taken in double precision.
    return _signed(x, (x.cast(np.float64).apply("Abs") + 1.0).apply("Log").cast(x.dtype))


def _sqrt(x: Value, parts: ModelParts) -> Value:
    return _signed(x, x.apply("Abs").apply("Sqrt"))


def _signed(x: Value, size: Value) -> Value:
    return x.apply("Sign") * size


NORMALIZED: dict[str, Callable[[Value, ModelParts], Value]] = {"l1": _l1, "log1p": _log1p, "sqrt": _sqrt}
"""Each entry of ``NORMALIZATIONS`` as ONNX nodes."""


@singledispatch
def features(fitted: RowFeatures, g: Graph, x: Value) -> Value:
    """Return the features (n, D) of prepared rows x (n, bins)."""
    raise InputError(
        Message(
            "{} cannot be written as ONNX. Export the weights ({format='weights'}) and compute the features with "
            "chimap.",
            type(fitted).__name__,
        )
    )


@features.register
def _additive(fitted: AdditiveMap, g: Graph, x: Value) -> Value:
    return map_features(fitted, g, x)


@features.register
def _blocks(fitted: BlockFeatures, g: Graph, x: Value) -> Value:
    pairs = zip(fitted.features_, fitted.columns_, strict=True)
    return g.concatenated([features(block, g, x.take(columns, 1)) for block, columns in pairs], 1)


@features.register
def _fourier(fitted: FourierFeatures, g: Graph, x: Value) -> Value:
    inputs = map_features(fitted.map_, g, x) if isinstance(fitted.map_, AdditiveMap) else x
    return _waves(fitted, g, inputs - fitted.centre_ if fitted.centre_.any() else inputs)


@features.register
def _skewed(fitted: SkewedFourierFeatures, g: Graph, x: Value) -> Value:
    # ONNX has no log1p, so the logarithm of ratios close to 1 is taken in float64.
    c, centre = float(fitted.kernel_.c), fitted.centre_.astype(np.float64)
    ratio = (x.cast(np.float64) + c) / (centre + c)
    return _waves(fitted, g, ratio.apply("Log").cast(x.dtype))


def _waves(fitted: RandomFeatures, g: Graph, inputs: Value) -> Value:
    """Return sqrt(2/D) [cos(W'u + b), sin of the leading angles that come in pairs].

    W is a full matrix here, even if the model draws it as a structured product.
    """
    products = [part @ fitted.frequencies_ for part in fitted.projection_.addends(inputs)]
    angles = reduce(add, products) + fitted.offset_
    n_pairs = fitted.n_components - fitted.offset_.size
    waves = [angles.apply("Cos")]
    if n_pairs:
        waves.append(angles.take(np.arange(n_pairs), 1).apply("Sin"))
    # The factor is a vector because onnxruntime would fuse a scalar into the next product, in single precision.
    return g.concatenated(waves, 1) * np.full(fitted.n_components, np.sqrt(2.0 / fitted.n_components))


@features.register
def _scaled(fitted: ScaledFeatures, g: Graph, x: Value) -> Value:
    half = fitted.scale.exponent // 2  # two factors, since their product may overflow the type
    return features(fitted.features, g, x * 2.0**half * 2.0 ** (fitted.scale.exponent - half))


@features.register
def _identity(fitted: IdentityMap, g: Graph, x: Value) -> Value:
    return x


@features.register
def _stationary(fitted: StationaryMap, g: Graph, x: Value) -> Value:
    return stationary_waves(fitted, g, x)


@features.register
def _dirichlet(fitted: DirichletMap, g: Graph, x: Value) -> Value:
    w = fitted.kernel_.whitening
    z = dirichlet_logs(fitted.kernel_, x)
    return z + (z * w.scale).sum(1, keep=True) * w.common * w.scale


@features.register
def _landmarks(fitted: LandmarkFeatures, g: Graph, x: Value) -> Value:
    mapping = fitted.unit_map_
    mapped = []
    for factor in mapping.factors:
        columns = x if factor.columns is None else x.take(factor.columns, 1)
        is_map = isinstance(factor.map, AdditiveMap)
        mapped.append(map_features(factor.map, g, columns) if is_map else columns)
    # Double precision: kernel values minus 1 suffer cancellation, and the whitening magnifies the rounding.
    u = g.concatenated(mapped, 1).cast(np.float64) * mapping.scale + -(mapping.centre * mapping.scale)
    exponents = u @ fitted._mapped.astype(np.float64) + -fitted._half_norms.astype(np.float64)
    exponents = exponents + (u * u).sum(1, keep=True) * np.full(1, -0.5)
    less_one = exponents.apply("Exp") + np.full(1, -1.0)
    return (less_one @ fitted.projection_.astype(np.float64) + fitted._ones).cast(x.dtype)


@features.register
def _exact(fitted: ExactFeatures, g: Graph, x: Value) -> Value:
    if fitted.map_ is None:
        return gram(fitted.kernel_, g, x, fitted.rows_).cast(x.dtype)
    kept, means = fitted.rows_.centred(), fitted.rows_.column_means()
    mapped = map_features(fitted.map_, g, x) if isinstance(fitted.map_, AdditiveMap) else x
    u = (
        mapped.cast(np.float64) - means
    )  # float64, since weights of both signs magnify the rounding of kernel values
    products = u @ g.constant(np.ascontiguousarray(kept.T.astype(x.dtype))).cast(np.float64)
    if fitted._gamma is None:
        return products.cast(x.dtype)
    squares = (u * u).sum(1, keep=True) + np.square(kept).sum(axis=1)
    distances = (squares - products * 2.0).at_least(0.0)
    return (distances * -fitted._gamma).apply("Exp").cast(x.dtype)


@features.register
def _exact_blocks(fitted: ExactBlocks, g: Graph, x: Value) -> Value:
    pairs = zip(fitted.features_, fitted.columns_, strict=True)
    values = [features(block, g, x.take(columns, 1)) for block, columns in pairs]
    return reduce(add, values)


@features.register
def _nystroem(fitted: NystroemFeatures, g: Graph, x: Value) -> Value:
    return (gram(fitted.kernel_, g, x, fitted.landmarks_) @ fitted.projection_).cast(x.dtype)


def _declare_outputs(g: Graph, outputs: Value, parts: ModelParts) -> list[onnx.ValueInfoProto]:
    if parts.tasks is not None:
        return _declare_tasks(g, outputs, parts)
    if parts.classes is None:
        g.node("Squeeze", outputs, g.constant(np.array([1], np.int64)), name="prediction")
        return [g.info("prediction", outputs.dtype, ["rows"])]
    if parts.n_outputs == 1:
        class_index = (outputs.take(0, 1) > parts.threshold).cast(np.int64)
        g.node("Concat", outputs * -1.0, outputs, name="scores", axis=1)
    else:
        class_index = g.node("ArgMax", outputs, dtype=np.int64, axis=1, keepdims=0)
        g.node("Identity", outputs, name="scores")
    labels = g.constant(parts.classes)
    g.node("Gather", labels, class_index, name="label", axis=0)
    return [
        g.info("label", labels.dtype, ["rows"]),
        g.info("scores", outputs.dtype, ["rows", parts.classes.size]),
    ]


def _declare_tasks(g: Graph, outputs: Value, parts: ModelParts) -> list[onnx.ValueInfoProto]:
    """Declare labels 0 and 1 (n, t) and scores (n, t), or predictions (n, t)."""
    shape = ["rows", parts.n_outputs]
    if parts.classes is None:
        g.node("Identity", outputs, name="prediction")
        return [g.info("prediction", outputs.dtype, shape)]
    g.node("Cast", outputs > 0.0, name="label", to=g.type_of(np.int64))
    g.node("Identity", outputs, name="scores")
    return [g.info("label", np.dtype(np.int64), shape), g.info("scores", outputs.dtype, shape)]
