"""Exact kernels between the rows and constant landmarks, as ONNX nodes."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
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
    """Return the kernel values K (n, m) of rows x (n, bins) and constant landmarks (m, bins), in float64."""
    return _gram(kernel, g, x.cast(np.float64), _arrays.to_dense(landmarks).astype(np.float64))


@singledispatch
def _gram(kernel: Kernel, g: Graph, x: Value, Y: np.ndarray) -> Value:
    raise InputError(
        Message(
            "the kernel {!r} of the landmarks cannot be written as ONNX. Export the weights ({format='weights'}), or "
            "fit with another kernel.",
            kernel.name,
        )
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
        k_xx, k_yy = (_magnitude(x, inner).power(inner.gamma).sum(1, keep=True), inner.diagonal(Y))
        squared = k_xx + k_yy - _additive(inner, g, x, Y) * 2.0
    return (squared.at_least(0.0) * -float(kernel.gamma)).apply("Exp")


@_gram.register
def _skewed(kernel: Skewed, g: Graph, x: Value, Y: np.ndarray) -> Value:
    logs, landmark_logs = (x + float(kernel.c)).apply("Log"), np.log(Y + float(kernel.c))
    log_factor = {SkewedChi2: _log_sech, SkewedIntersection: _minus_magnitude}[type(kernel)]
    return g.each_row(landmark_logs, lambda y: log_factor((logs - y) * kernel.sigma).sum(1)).apply("Exp")


def _log_sech(u: Value) -> Value:
    """Return ln(1 / cosh u) = ln 2 - |u| - ln(1 + exp(-2 |u|))."""
    size = u.apply("Abs")
    return np.log(2.0) - size - ((size * -2.0).apply("Exp") + 1.0).apply("Log")


def _minus_magnitude(u: Value) -> Value:
    return u.apply("Abs") * -1.0


@_gram.register
def _dirichlet(kernel: DirichletKernel, g: Graph, x: Value, Y: np.ndarray) -> Value:
    w = kernel.whitening
    z = dirichlet_logs(kernel, x)
    landmarks = kernel._whitened(Y, "landmarks")
    whitened = g.concatenated([z, (z * w.scale).sum(1, keep=True) * np.sqrt(w.coupling)], 1)
    return whitened @ landmarks.T


def dirichlet_logs(kernel: DirichletKernel, x: Value) -> Value:
    """Return scale (ln(x / |x|_1 + f) - mean) (n, bins), f being the kernel's offset."""
    w, offset = kernel.whitening, max(float(kernel.offset), float(np.finfo(x.dtype).tiny))
    return (((x / row_sums(x)) + offset).apply("Log") - w.mean) * w.scale


def row_sums(x: Value) -> Value:
    """Return the l1 norms (n, 1), with 1 for empty rows; they are summed in float64."""
    sums = x.cast(np.float64).apply("Abs").sum(1, keep=True)
    return (sums > 0.0).where(sums, 1.0).cast(x.dtype)


@_gram.register
def _pq(kernel: PQKernel, g: Graph, x: Value, Y: np.ndarray) -> Value:
    """Return the dot products of the vectors of sign(x_i - x_j), i < j, scaled to unit length."""
    left, right = np.triu_indices(Y.shape[1], 1)
    signs = (x.take(left, 1) - x.take(right, 1)).apply("Sign")
    landmark_signs = np.sign(Y[:, left] - Y[:, right])
    landmark_norms = np.maximum(np.sqrt((landmark_signs * landmark_signs).sum(axis=1)), 1.0)
    norms = (signs * signs).sum(1, keep=True).at_least(1.0).apply("Sqrt")
    return (signs @ (landmark_signs / landmark_norms[:, None]).T) / norms


@_gram.register
def _on_columns(kernel: OnColumns, g: Graph, x: Value, Y: np.ndarray) -> Value:
    columns = np.asarray(kernel.columns)
    return _gram(kernel.kernel, g, x.take(columns, 1), Y[:, columns])


@_gram.register
def _sum(kernel: Sum, g: Graph, x: Value, Y: np.ndarray) -> Value:
    summands = [
        _gram(summand, g, x, Y) * weight
        for summand, weight in zip(kernel.kernels, kernel.weights, strict=True)
    ]
    total = summands[0]
    for summand in summands[1:]:
        total = total + summand
    return total


@_gram.register
def _product(kernel: Product, g: Graph, x: Value, Y: np.ndarray) -> Value:
    product = _gram(kernel.kernels[0], g, x, Y)
    for factor in kernel.kernels[1:]:
        product = product * _gram(factor, g, x, Y)
    return product


# --- kernels of single bins


def term(kernel: AdditiveKernel, x: Value, y: Value) -> Value:
    """Return k(x, y) entry by entry: the signs times the factor of gamma times the plain kernel of the magnitudes."""
    a, b = (_magnitude(value, kernel) for value in (x, y))
    product = plain_term(kernel, a, b)
    if kernel.gamma != 1:
        product = product * signature_power(a, kernel.gamma) * signature_power(b, kernel.gamma)
    return product * x.apply("Sign") * y.apply("Sign") if kernel.is_signed else product


def plain_term(kernel: AdditiveKernel, x: Value, y: Value) -> Value:
    """Return k(x, y) of magnitudes at gamma = 1, entry by entry; it is 0 where both are 0."""
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
    raise InputError(
        f"the additive kernel {kernel.name!r} cannot be written as ONNX; only chi2, intersection, jensen_shannon and "
        "hellinger can."
    )


def _share(x: Value, total: Value) -> Value:
    """Return x ln(total / x) with total = x + y, and 0 at x = 0."""
    is_positive = x > 0.0
    return is_positive.where(x * (total / is_positive.where(x, 1.0)).apply("Log"), 0.0)


def signature_power(x: Value, gamma: float) -> Value:
    """Return x^((gamma - 1) / 2), and 0 where x = 0."""
    is_positive = x > 0.0
    return is_positive.where(is_positive.where(x, 1.0).power((gamma - 1) / 2), 0.0)


def _magnitude(x: Value, kernel: AdditiveKernel) -> Value:
    return x.apply("Abs") if kernel.is_signed else x


@_gram.register
def _minmax(kernel: MinMax, g: Graph, x: Value, Y: np.ndarray) -> Value:
    # The kernel of two empty rows is 1: tiny / tiny.
    tiny = np.full(1, np.finfo(np.float64).tiny)
    minima = g.each_row(Y, lambda y: x.at_most(y).sum(1)) + tiny
    return minima / (g.each_row(Y, lambda y: x.at_least(y).sum(1)) + tiny)
