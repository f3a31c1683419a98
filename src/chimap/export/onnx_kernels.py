"""Exact kernels as ONNX nodes, against landmarks that are constants."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.export.graph import Graph, Value
from chimap.kernels import (
    AdditiveKernel,
    DirichletKernel,
    Exponential,
    Kernel,
    Linear,
    MinMax,
    OnColumns,
    PQKernel,
    Product,
    SkewedChi2,
    SkewedIntersection,
    Sum,
)
from chimap.kernels.skewed import Skewed


def gram(kernel: Kernel, g: Graph, x: Value, landmarks: Rows) -> Value:
    """K (n, m) of rows x (n, bins) with constant landmarks (m, bins), in float64."""
    return _gram(kernel, g, x.cast(np.float64), _arrays.to_dense(landmarks).astype(np.float64))


@singledispatch
def _gram(kernel: Kernel, g: Graph, x: Value, Y: np.ndarray) -> Value:
    raise ValueError(
        f"the kernel {kernel.name!r} of landmarks cannot be written as ONNX. Export the weights (--format weights), or "
        "fit with another kernel."
    )


@_gram.register
def _additive(kernel: AdditiveKernel, g: Graph, x: Value, Y: np.ndarray) -> Value:
    return g.each_row(Y, lambda y: term(kernel, x, y).sum(1))


@_gram.register
def _linear(kernel: Linear, g: Graph, x: Value, Y: np.ndarray) -> Value:
    return x @ Y.T


@_gram.register
def _exponential(kernel: Exponential, g: Graph, x: Value, Y: np.ndarray) -> Value:
    inner = kernel.kernel

    if isinstance(inner, Linear):
        squared = g.each_row(Y, lambda y: ((x - y) * (x - y)).sum(1))
    else:
        own, others = (_magnitude(x, inner).power(inner.gamma).sum(1, keep=True), inner.diagonal(Y))
        squared = own + others - _additive(inner, g, x, Y) * 2.0
    return (squared.at_least(0.0) * -float(kernel.gamma)).apply("Exp")


@_gram.register
def _skewed(kernel: Skewed, g: Graph, x: Value, Y: np.ndarray) -> Value:
    logs, others = (x + float(kernel.c)).apply("Log"), np.log(Y + float(kernel.c))
    factors = {SkewedChi2: _log_sech, SkewedIntersection: _minus_magnitude}[type(kernel)]
    return g.each_row(others, lambda y: factors((logs - y) * kernel.sigma).sum(1)).apply("Exp")


def _log_sech(u: Value) -> Value:
    """ln(1 / cosh u) = ln 2 - |u| - ln(1 + exp(-2 |u|))."""
    size = u.apply("Abs")
    return np.log(2.0) - size - ((size * -2.0).apply("Exp") + 1.0).apply("Log")


def _minus_magnitude(u: Value) -> Value:
    return u.apply("Abs") * -1.0


@_gram.register
def _dirichlet(kernel: DirichletKernel, g: Graph, x: Value, Y: np.ndarray) -> Value:
    w = kernel.whitening
    z = dirichlet_logs(kernel, x)
    others = kernel._whitened(Y, "landmarks")
    whole = g.concatenated([z, (z * w.scale).sum(1, keep=True) * np.sqrt(w.coupling)], 1)
    return whole @ others.T


def dirichlet_logs(kernel: DirichletKernel, x: Value) -> Value:
    """scale (ln(x / |x|_1 + f) - mean) (n, bins)."""
    w, offset = kernel.whitening, max(float(kernel.offset), float(np.finfo(x.dtype).tiny))
    return (((x / row_sums(x)) + offset).apply("Log") - w.mean) * w.scale


def row_sums(x: Value) -> Value:
    """l1 norms (n, 1), 1 for empty rows; added up in float64."""
    sums = x.cast(np.float64).apply("Abs").sum(1, keep=True)
    return (sums > 0.0).where(sums, 1.0).cast(x.dtype)


@_gram.register
def _pq(kernel: PQKernel, g: Graph, x: Value, Y: np.ndarray) -> Value:
    """The dot product of the vectors of sign(x_i - x_j), i < j, scaled to length 1."""
    left, right = np.triu_indices(Y.shape[1], 1)
    signs = (x.take(left, 1) - x.take(right, 1)).apply("Sign")
    others = np.sign(Y[:, left] - Y[:, right])
    lengths = np.maximum(np.sqrt((others * others).sum(axis=1)), 1.0)
    untied = (signs * signs).sum(1, keep=True).at_least(1.0).apply("Sqrt")
    return (signs @ (others / lengths[:, None]).T) / untied


@_gram.register
def _on_columns(kernel: OnColumns, g: Graph, x: Value, Y: np.ndarray) -> Value:
    columns = np.asarray(kernel.columns)
    return _gram(kernel.kernel, g, x.take(columns, 1), Y[:, columns])


@_gram.register
def _sum(kernel: Sum, g: Graph, x: Value, Y: np.ndarray) -> Value:
    parts = [
        _gram(part, g, x, Y) * weight for part, weight in zip(kernel.kernels, kernel.weights, strict=True)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@_gram.register
def _product(kernel: Product, g: Graph, x: Value, Y: np.ndarray) -> Value:
    total = _gram(kernel.kernels[0], g, x, Y)
    for part in kernel.kernels[1:]:
        total = total * _gram(part, g, x, Y)
    return total


# --- one bin


def term(kernel: AdditiveKernel, x: Value, y: Value) -> Value:
    """k(x, y) entry by entry: signs, the power of gamma, and the plain kernel of the magnitudes."""
    a, b = (_magnitude(value, kernel) for value in (x, y))
    product = plain_term(kernel, a, b)
    if kernel.gamma != 1:
        product = product * signature_power(a, kernel.gamma) * signature_power(b, kernel.gamma)
    return product * x.apply("Sign") * y.apply("Sign") if kernel.is_signed else product


def plain_term(kernel: AdditiveKernel, x: Value, y: Value) -> Value:
    """k(x, y) of magnitudes at gamma = 1, entry by entry; 0 where both are."""
    if kernel.name == "intersection":
        return x.at_most(y)
    if kernel.name == "hellinger":
        return x.apply("Sqrt") * y.apply("Sqrt")
    total = x + y
    safe = (total > 0.0).where(total, 1.0)
    if kernel.name == "chi2":
        return x * y * 2.0 / safe
    if kernel.name == "jensen_shannon":
        return (_share(x, safe) + _share(y, safe)) * (0.5 / np.log(2.0))
    raise ValueError(
        f"the additive kernel {kernel.name!r} has no ONNX formula; those of chi2, intersection, jensen_shannon and "
        "hellinger are there."
    )


def _share(x: Value, total: Value) -> Value:
    """x ln((x + y) / x), 0 at x = 0."""
    is_there = x > 0.0
    return is_there.where(x * (total / is_there.where(x, 1.0)).apply("Log"), 0.0)


def signature_power(x: Value, gamma: float) -> Value:
    """x^((gamma - 1) / 2), 0 where x = 0."""
    is_there = x > 0.0
    return is_there.where(is_there.where(x, 1.0).power((gamma - 1) / 2), 0.0)


def _magnitude(x: Value, kernel: AdditiveKernel) -> Value:
    return x.apply("Abs") if kernel.is_signed else x


@_gram.register
def _minmax(kernel: MinMax, g: Graph, x: Value, Y: np.ndarray) -> Value:
    # two empty rows have everything in common
    least = np.full(1, np.finfo(np.float64).tiny)
    shared = g.each_row(Y, lambda y: x.at_most(y).sum(1)) + least
    return shared / (g.each_row(Y, lambda y: x.at_least(y).sum(1)) + least)
