"""Build ONNX graphs from values that support arithmetic, so that code reads like the formulas of the maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap._errors import InputError, MissingPackageError
from chimap._types import ArrayLike, DTypeLike

if TYPE_CHECKING:
    import onnx


OPSET, IR_VERSION = 17, 8  # supported by onnxruntime 1.12 and later


def import_onnx() -> Any:
    """Return the package onnx. Raises ImportError naming the extra to install."""
    try:
        import onnx
    except ImportError as error:
        raise MissingPackageError('Writing ONNX needs the package onnx: pip install "chimap[onnx]".') from error
    return onnx


class Graph:
    """A graph under construction: its nodes and constants."""

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._count = 0

    def type_of(self, dtype: DTypeLike) -> int:
        """Return the number that ONNX assigns to a dtype."""
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def info(self, name: str, dtype: DTypeLike, shape: Sequence[object] | None) -> onnx.ValueInfoProto:
        """Declare an input or output."""
        return self._onnx.helper.make_tensor_value_info(name, self.type_of(dtype), shape)

    def constant(self, array: ArrayLike) -> Value:
        """Add a constant; text becomes ONNX strings."""
        array = np.asarray(array)
        if array.dtype.kind in "UOST":
            array = array.astype(object)
        name = self._name("constant")
        self._constants[name] = self._onnx.numpy_helper.from_array(
            np.ascontiguousarray(array).reshape(array.shape), name
        )
        return Value(self, name, array.dtype)

    def node(
        self,
        operation: str,
        *inputs: Value,
        dtype: DTypeLike = None,
        name: str = "",
        unused: Sequence[str] = (),
        **attributes: object,
    ) -> Value:
        """Add an operation and return its result, whose dtype is that of the first input unless ``dtype`` is given.

        ``unused`` are names of results after the first that the operation has and nobody needs.
        """
        name = name or self._name(operation.lower())
        others = [f"{name}_{result}" for result in unused]
        input_names = [value.name for value in inputs]
        self._nodes.append(
            self._onnx.helper.make_node(operation, input_names, [name, *others], name=name, **attributes)
        )
        return Value(self, name, inputs[0].dtype if dtype is None else np.dtype(dtype))

    def concatenated(self, values: list[Value], axis: int) -> Value:
        """Concatenate values along an axis."""
        return values[0] if len(values) == 1 else self.node("Concat", *values, axis=axis)

    def each_row(self, matrix: np.ndarray, body: Callable[[Value], Value]) -> Value:
        """Apply ``body``, which maps a row (d,) to (n,), to each row of a constant matrix (m, d); return (n, m).

        The rows are processed one after the other.
        """
        outer, self._nodes = self._nodes, []
        name = self._name("row")
        result = body(Value(self, name, matrix.dtype))
        inner, self._nodes = self._nodes, outer
        graph = self._onnx.helper.make_graph(
            inner,
            self._name("body"),
            [self.info(name, matrix.dtype, [matrix.shape[1]])],
            [self.info(result.name, result.dtype, None)],
        )
        results = self.node("Scan", self.constant(matrix), dtype=result.dtype, body=graph, num_scan_inputs=1)
        return results.transposed(1, 0)

    def model(
        self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto], notes: dict[str, str]
    ) -> onnx.ModelProto:
        """Return the finished model. Raises ValueError if it exceeds the format's limit of 2 GiB."""
        helper = self._onnx.helper
        size = sum(len(tensor.raw_data) for tensor in self._constants.values())
        if size > 2**31 - 2**24:
            raise InputError(
                f"the constants of the graph take {size / 2**30:.1f} GiB, but an ONNX file holds at most 2 GiB: fit "
                "with fewer components."
            )
        graph = helper.make_graph(self._nodes, "chimap", inputs, outputs, list(self._constants.values()))
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="chimap")
        helper.set_model_props(model, notes)
        self._onnx.checker.check_model(model)
        return model

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"


class Value:
    """A tensor of the graph. Numbers and arrays combined with it become constants of its dtype."""

    def __init__(self, graph: Graph, name: str, dtype: DTypeLike):
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def __add__(self, other: Value | ArrayLike) -> Value:
        return self._with("Add", other)

    def __sub__(self, other: Value | ArrayLike) -> Value:
        return self._with("Sub", other)

    def __rsub__(self, other: Value | ArrayLike) -> Value:
        return self._as_value(other) - self

    def __mul__(self, other: Value | ArrayLike) -> Value:
        return self._with("Mul", other)

    def __truediv__(self, other: Value | ArrayLike) -> Value:
        return self._with("Div", other)

    def __matmul__(self, other: Value | ArrayLike) -> Value:
        return self._with("MatMul", other)

    def __gt__(self, other: Value | ArrayLike) -> Value:
        return self.graph.node("Greater", self, self._as_value(other), dtype=bool)

    def __lt__(self, other: Value | ArrayLike) -> Value:
        return self.graph.node("Less", self, self._as_value(other), dtype=bool)

    def apply(self, operation: str) -> Value:
        """Apply an operation with a single input, such as "Log", "Cos" or "Abs"."""
        return self.graph.node(operation, self)

    def power(self, exponent: float) -> Value:
        """Return self ** exponent, entry by entry."""
        return self._with("Pow", exponent)

    def at_least(self, other: Value | ArrayLike) -> Value:
        """Return max(self, other), entry by entry."""
        return self._with("Max", other)

    def at_most(self, other: Value | ArrayLike) -> Value:
        """Return min(self, other), entry by entry."""
        return self._with("Min", other)

    def where(self, yes: Value, no: Value | ArrayLike) -> Value:
        """Return ``yes`` where self, a condition, is true, and ``no`` elsewhere."""
        return self.graph.node("Where", self, yes, yes._as_value(no), dtype=yes.dtype)

    def cast(self, dtype: DTypeLike) -> Value:
        """Convert to another dtype."""
        if self.dtype == np.dtype(dtype):
            return self
        return self.graph.node("Cast", self, dtype=dtype, to=self.graph.type_of(dtype))

    def sum(self, axis: int, *, keep: bool = False) -> Value:
        """Return the sums along an axis."""
        axes = self.graph.constant(np.array([axis], np.int64))
        return self.graph.node("ReduceSum", self, axes, keepdims=int(keep))

    def take(self, indices: Value | ArrayLike, axis: int) -> Value:
        """Select entries along an axis by integer indices, an array or a value of the graph."""
        places = indices if isinstance(indices, Value) else self.graph.constant(np.asarray(indices, np.int64))
        return self.graph.node("Gather", self, places, axis=axis)

    def descending(self, count: int) -> Value:
        """Return the ``count`` largest entries of each row (n, d), the largest first."""
        k = self.graph.constant(np.array([count], np.int64))
        return self.graph.node("TopK", self, k, unused=["places"], axis=1)

    def cumulated(self) -> Value:
        """Return the sums of the entries of each row (n, d) up to each of them."""
        return self.graph.node("CumSum", self, self.graph.constant(np.array(1, np.int64)))

    def largest(self) -> Value:
        """Return the largest entry of each row (n, d), as (n, 1)."""
        return self.graph.node("ReduceMax", self, axes=[1], keepdims=1)

    def place_of_largest(self) -> Value:
        """Return the place of the largest entry of each row (n, d), the first of several, as (n,)."""
        return self.graph.node("ArgMax", self, dtype=np.int64, axis=1, keepdims=0)

    def equals(self, other: Value | ArrayLike) -> Value:
        """Return where self equals the other, entry by entry."""
        return self.graph.node("Equal", self, self._as_value(other), dtype=bool)

    def expanded(self, axis: int) -> Value:
        """Insert a new axis of length 1."""
        return self.graph.node("Unsqueeze", self, self.graph.constant(np.array([axis], np.int64)))

    def reshaped(self, *shape: int) -> Value:
        """Reshape; 0 keeps the length of that axis."""
        return self.graph.node("Reshape", self, self.graph.constant(np.array(shape, np.int64)))

    def transposed(self, *axes: int) -> Value:
        """Permute the axes."""
        return self.graph.node("Transpose", self, perm=list(axes))

    def _with(self, operation: str, other: Value | ArrayLike) -> Value:
        return self.graph.node(operation, self, self._as_value(other))

    def _as_value(self, other: Value | ArrayLike) -> Value:
        return other if isinstance(other, Value) else self.graph.constant(np.asarray(other, dtype=self.dtype))


def unit_rows(x: Value) -> Value:
    """Return rows divided by their l1 norms, empty ones as they are, by quotients in float64."""
    wide = x.cast(np.float64)
    return (wide / row_sums(wide)).cast(x.dtype)


def row_sums(wide: Value) -> Value:
    """Return the l1 norms (n, 1) of rows in float64, as a sum of float32 numbers may be beyond float32; 1 if empty."""
    sums = wide.apply("Abs").sum(1, keep=True)
    return (sums > 0.0).where(sums, 1.0)


def log_of_one_more(x: Value) -> Value:
    """Return ln(1 + x). ONNX has no log1p, so the logarithm of 1 + x is taken in double precision."""
    return (x.cast(np.float64) + 1.0).apply("Log").cast(x.dtype)


def stacked(values: list[Value]) -> Value:
    """Return values (n, bins) stacked along a new axis, (n, values, bins)."""
    return values[0].graph.concatenated([value.expanded(1) for value in values], 1)


def positive(x: Value) -> tuple[Value, Value]:
    """Return where x has a logarithm, and x with 1 in all other places."""
    is_positive = x > np.finfo(x.dtype).tiny
    return is_positive, is_positive.where(x, 1.0)
