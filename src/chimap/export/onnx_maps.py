"""The additive maps as ONNX nodes: each computes what its compiled loop computes."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap.export.graph import Graph, Value
from chimap.export.onnx_kernels import plain_term, signature_power
from chimap.features.additive import (
    AdditiveKPCA,
    AdditiveMap,
    AnchorMap,
    ChebyshevMap,
    CompressedMap,
    DirectMap,
    HomogeneousMap,
    OptimalMap,
    StaircaseMap,
    StationaryMap,
)


def map_features(psi: AdditiveMap, g: Graph, x: Value) -> Value:
    """Return Psi (n, terms * bins) of rows x (n, bins), in their dtype."""
    return _with_signs(psi, g, x).reshaped(0, psi._n_terms_out * int(psi.n_features_in_))


def stationary_waves(psi: StationaryMap, g: Graph, x: Value) -> Value:
    """Return Psi (n, terms * bins) of rows x (n, bins).

    As in the compiled loop, whole periods are subtracted before the angle is computed.
    """
    turns = x.cast(np.float64) / (psi.period_ * psi.kernel_.width)
    angle = (turns - (turns + 0.5).apply("Floor")) * (2 * np.pi)
    values = [angle * 0.0 + psi.amplitudes_[0]]
    for j, amplitude in enumerate(psi.amplitudes_[1:], start=1):
        values += [(angle * float(j)).apply(wave) * amplitude for wave in ("Cos", "Sin")]
    return _stack(g, values).cast(x.dtype).reshaped(0, psi._n_features_out)


def _with_signs(psi: AdditiveMap, g: Graph, x: Value) -> Value:
    """Return Psi (n, terms, bins): the terms of the magnitudes times the factor of gamma times the signs."""
    kernel = psi.kernel_
    magnitudes = x.apply("Abs") if kernel.is_signed else x
    out = terms(psi, g, magnitudes)
    if psi._maps_plain_kernel and kernel.gamma != 1:
        out = out * signature_power(magnitudes, kernel.gamma).expanded(1)
    return out * x.apply("Sign").expanded(1) if kernel.is_signed else out


@singledispatch
def terms(psi: AdditiveMap, g: Graph, x: Value) -> Value:
    """Return the terms (n, terms, bins) of magnitudes x (n, bins)."""
    raise InputError(
        Message(
            "{} cannot be written as ONNX. Fit with another additive map, such as OptimalMap, or export the weights "
            "({format='weights'}).",
            type(psi).__name__,
        )
    )


def _stack(g: Graph, values: list[Value]) -> Value:
    return g.concatenated([value.expanded(1) for value in values], 1)


@terms.register
def _direct(psi: DirectMap, g: Graph, x: Value) -> Value:
    values: list[Value] = []
    product: Value | None = None
    for k in psi.nodes_:  # a number, or one number per bin
        share = g.constant(np.ones(1, x.dtype)) / (x + k) if product is None else product / (x + k)
        values.append(x * share * (2 * np.sqrt(k)))
        product = (x - k) * share
    return _stack(g, values)


def _positive(x: Value) -> tuple[Value, Value]:
    """Return where x has a logarithm, and x with 1 in all other places."""
    is_positive = x > np.finfo(np.float64).tiny
    return is_positive, is_positive.where(x, 1.0)


@terms.register
def _chebyshev(psi: ChebyshevMap, g: Graph, x: Value) -> Value:
    v = x.cast(np.float64) / psi.scale_
    is_positive, safe = _positive(v)
    L = safe.apply("Log") / np.pi
    values = [is_positive.where(v * 2.0 / (v + 1.0) * np.sqrt(psi.scale_), 0.0)]
    for q in range(1, psi.n_terms):
        sign = 1.0 if q % 2 == 0 else -1.0
        next_term = L * values[-1] * (-np.sqrt(2.0) if q == 1 else sign * 2.0 / q)
        values.append(next_term if q < 3 else next_term + values[-2] * ((q - 2.0) / q))
    return _stack(g, values).cast(x.dtype)


@terms.register
def _homogeneous(psi: HomogeneousMap, g: Graph, x: Value) -> Value:
    v = x.cast(np.float64)
    is_positive, safe = _positive(v)
    log = safe.apply("Log")
    root = is_positive.where(safe.power(psi.kernel_.gamma / 2), 0.0)
    values = [root * psi.amplitudes_[0]]
    for j in 1 + np.flatnonzero(psi.amplitudes_[1:]):
        angle = log * (2 * np.pi / psi.period_ * j)
        values += [root * angle.apply(wave) * psi.amplitudes_[j] for wave in ("Cos", "Sin")]
    return _stack(g, values).cast(x.dtype)


@terms.register
def _optimal(psi: OptimalMap, g: Graph, x: Value) -> Value:
    psi._prepare(x.dtype)
    tables, drop, first = psi._tables[x.dtype]
    info, last = np.finfo(x.dtype), tables.shape[2] - 1
    integer = np.int32 if info.bits == 32 else np.int64
    # The first and the last segment are constant, so any number within them gives their value.
    ends = np.array([((first + 1) << drop) - 1, (first + last) << drop], dtype=integer)
    low, high = ends.view(x.dtype)
    x = x.at_least(low).at_most(high)
    per_doubling = 1 << (info.nmant - drop)
    lowest = int(np.floor(np.log2(float(low)))) - 1
    powers = g.constant(np.exp2(np.arange(lowest, int(np.floor(np.log2(float(high)))) + 3.0)).astype(x.dtype))
    # The exponent of x: rounding of the logarithm may make it too high or too low by one near powers of two.
    place = (x.cast(np.float64).apply("Log") / np.log(2.0)).apply("Floor") - lowest
    ratio = x / powers.take(place.cast(np.int64), 0)
    place = (
        place - (ratio < 1.0).cast(np.float64) + (ratio > np.nextafter(x.dtype.type(2), 0)).cast(np.float64)
    )
    mantissa = (x / powers.take(place.cast(np.int64), 0) - 1.0) * per_doubling
    inner = mantissa.apply("Floor")
    t = mantissa - inner
    bias = (lowest + info.maxexp - 1) * per_doubling - first
    segment = (
        (place * per_doubling + inner.cast(np.float64) + bias).at_least(0.0).at_most(last).cast(np.int64)
    )
    values = []
    for coefficients in tables:
        value = g.constant(coefficients[-1]).take(segment, 0)
        for a in coefficients[-2::-1]:
            value = value * t + g.constant(a).take(segment, 0)
        values.append(value)
    return _stack(g, values)


@terms.register
def _compressed(psi: CompressedMap, g: Graph, x: Value) -> Value:
    if psi._differs_by_bin:
        base_terms = _with_signs(psi.base_, g, x * (1 / psi.scales_))
        combinations = psi.combinations_ * psi.scales_[:, None, None] ** (psi.kernel_.gamma / 2)
        rows = base_terms.transposed(0, 2, 1).expanded(2)  # (n, bins, 1, base terms)
        return (rows @ combinations).reshaped(0, 0, psi.n_terms).transposed(0, 2, 1)
    base_terms = _with_signs(psi.base_, g, x)
    return g.constant(psi.combinations_[0].T.astype(x.dtype)) @ base_terms


@terms.register
def _staircase(psi: StaircaseMap, g: Graph, x: Value) -> Value:
    rates, heights = psi._steps()
    level = (x.cast(np.float64) * rates).at_most(psi.n_terms)
    if psi.steps == "constant":
        level = (level + 0.5).apply("Floor")
    steps = level.expanded(1) - np.arange(psi.n_terms)[:, None]
    return (steps.at_least(0.0).at_most(1.0) * heights).cast(x.dtype)


@terms.register
def _kpca(psi: AdditiveKPCA, g: Graph, x: Value) -> Value:
    values = plain_term(psi.kernel_, x.expanded(2), g.constant(psi.landmarks_.astype(x.dtype)))
    weighted = values.expanded(2) @ psi._coefficients.transpose(0, 2, 1)  # (n, bins, 1, terms)
    return weighted.reshaped(0, 0, psi.n_terms).transposed(0, 2, 1)


@terms.register
def _anchors(psi: AnchorMap, g: Graph, x: Value) -> Value:
    psi._prepare(x.dtype)
    table, places = psi._tables[x.dtype]
    k, n_bins, n_codes = psi.n_neighbors, int(psi.n_features_in_), psi._factors.shape[2]
    if psi.anchors == "uniform":
        code = (x.cast(np.float64) * places - k / 2).apply("Ceil").at_least(0.0).at_most(psi.n_anchors - k)
    else:
        borders = places.reshape(n_bins, -1)[:, : psi.n_anchors - k]
        code = (x.expanded(2) > borders).cast(np.float64).sum(2)
    if psi._lift:
        code = code + (x > 0).cast(np.float64)
    starts = np.arange(n_bins) * (n_codes if psi._factors.shape[1] > 1 else 0)
    entries = g.constant(np.ascontiguousarray(table.T))
    if psi.has_codes:
        looked_up = entries.take((code + starts).cast(np.int64), 0)  # (n, bins, terms)
        return looked_up.transposed(0, 2, 1) * psi._amplitudes
    v = x.cast(np.float64).at_most(psi.scale_)
    anchors = g.constant(np.minimum(psi.anchors_, np.finfo(np.float64).max).reshape(-1))
    windows = [code + p for p in range(k)]
    gaps = [
        (v - anchors.take((w + np.arange(n_bins) * psi.n_anchors).cast(np.int64), 0)).apply("Abs")
        for w in windows
    ]
    nearest = gaps[0]
    for gap in gaps[1:]:
        nearest = nearest.at_most(gap)
    weights = [(gap > 0.0).where(nearest / (gap > 0.0).where(gap, 1.0), 1.0) for gap in gaps]
    total, blend = weights[0], None
    for weight in weights[1:]:
        total = total + weight
    for weight, w in zip(weights, windows, strict=True):
        share = (weight / total * psi._amplitudes).expanded(2)
        weighted = entries.take((w + starts).cast(np.int64), 0).cast(np.float64) * share
        blend = weighted if blend is None else blend + weighted
    assert blend is not None
    return blend.transposed(0, 2, 1).cast(x.dtype)
