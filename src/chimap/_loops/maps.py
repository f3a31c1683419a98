"""Features of additive maps, out[r, q, i] is term q of bin i of row r."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT, SUMS
from chimap._loops.elementary import cos_sin, log
from chimap._loops.kernels import additive_term, for_every_form


@nb.njit(**EXACT)
def count_cells(magnitudes, bits, drop, first, lowest, highest, counts, values, excess):
    """Count nonzero magnitudes in cells that share all but ``drop`` bits of a float64.

    The lowest and the highest magnitude have cells of their own. A cell records the first value that fell into it, and
    the sum by which its values exceed that value.
    """
    last = counts.size - 1
    for i in range(magnitudes.size):
        value = magnitudes[i]
        if value == 0:
            continue
        cell = 0 if value == lowest else last if value == highest else (bits[i] >> drop) - first + 1
        if counts[cell] == 0:
            values[cell] = value
        counts[cell] += 1
        excess[cell] += value - values[cell]


@nb.njit(**EXACT)
def direct_features(X, nodes, out):
    """Write the direct series out[:, q] = prod_{p<q} (x-k_p)/(x+k_p) * 2 sqrt(k_q) x/(x+k_q).

    Each term takes one division.
    """
    d, n_terms = X.shape[1], nodes.shape[0]
    for r in range(X.shape[0]):
        x = X[r]
        product = np.ones_like(x)
        for q in range(n_terms):
            k = nodes[q]
            root = math.sqrt(k) + math.sqrt(k)
            o = out[r, q]
            for i in range(d):
                share = product[i] / (x[i] + k)
                o[i] = root * (x[i] * share)
                product[i] = (x[i] - k) * share


@nb.njit(**EXACT)
def direct_features_by_bin(X, nodes, out):
    """Do the same with separate nodes (n_terms, columns) for each column."""
    d, n_terms = X.shape[1], nodes.shape[0]
    for r in range(X.shape[0]):
        x = X[r]
        product = np.ones_like(x)
        for q in range(n_terms):
            k, o = nodes[q], out[r, q]
            for i in range(d):
                share = product[i] / (x[i] + k[i])
                root = math.sqrt(k[i])
                o[i] = (root + root) * (x[i] * share)
                product[i] = (x[i] - k[i]) * share


@nb.njit(**SUMS)
def combined_terms(long, combinations, out):
    """Write out[r, q, i] = sum_p combinations[q, p, i] long[r, p, i]; combinations of a single column serve all i."""
    n_terms, n_long, d = combinations.shape[0], long.shape[1], long.shape[2]
    shared = combinations.shape[2] == 1
    for r in range(long.shape[0]):
        for q in range(n_terms):
            o = out[r, q]
            for i in range(d):
                o[i] = 0
            for p in range(n_long):
                c = long[r, p]
                if shared:
                    u = combinations[q, p, 0]
                    for i in range(d):
                        o[i] += u * c[i]
                else:
                    w = combinations[q, p]
                    for i in range(d):
                        o[i] += w[i] * c[i]


@for_every_form
def landmark_features(form: int) -> Callable[..., None]:
    """Write out[r, q, i] = sum_j coefficients[b, q, j] k(X[r, i], landmarks[b, j]) with b = bins[i]."""

    @nb.njit(**SUMS)
    def features(X, bins, landmarks, coefficients, out):
        n_landmarks, n_terms = landmarks.shape[1], coefficients.shape[1]
        k = np.empty(n_landmarks, X.dtype)
        for r in range(X.shape[0]):
            for i in range(X.shape[1]):
                x, points = X[r, i], landmarks[bins[i]]
                for j in range(n_landmarks):
                    k[j] = additive_term(form, x, points[j])
                for q in range(n_terms):
                    weights, total = coefficients[bins[i], q], k[0] * 0
                    for j in range(n_landmarks):
                        total += weights[j] * k[j]
                    out[r, q, i] = total

    return features


@cache
def table_features(degree: int) -> Callable[..., None]:
    """Evaluate piecewise polynomials over the binary representation of x: no logarithm, no division, no branch.

    ``bits`` holds the rows as integers of the width of the floats. bits >> drop counts segments (exponent and leading
    mantissa bits) from ``first``; the dropped bits are the place t in [0, 1) within the segment. ``tables`` are
    (n_terms, degree + 1, n_segments) coefficients of t^p; the outermost segments are constants. ``segment`` and ``t``
    are work arrays for a row, of uint32 and of the floats. With the degree as an argument, the sum over p remained a
    loop, which took twice as long in float64; with signed segments, each look-up checked for indices that count from
    the end.
    """

    @nb.njit(**EXACT)
    def features(bits, tables, drop, first, segment, t, out):
        n_terms, last = tables.shape[0], tables.shape[2] - 1
        unit = tables[0, 0, 0] * 0 + 1
        step = unit / (np.int64(1) << np.int64(drop))
        mask = bits[0, 0] * 0 + ((bits[0, 0] * 0 + 1) << drop) - 1
        for r in range(bits.shape[0]):
            b = bits[r]
            for i in range(t.size):
                segment[i] = min(max((b[i] >> drop) - first, 0), last)
                t[i] = (unit * (b[i] & mask)) * step
            for q in range(n_terms):
                table, o = tables[q], out[r, q]
                for i in range(t.size):
                    s = segment[i]
                    total = table[degree, s]
                    for p in range(degree - 1, -1, -1):
                        total = table[p, s] + t[i] * total
                    o[i] = total

    return features


@nb.njit(**EXACT)
def homogeneous_features(X, amplitudes, step, gamma, out):
    """Write sqrt(x^gamma) times amplitudes[0], amplitudes[j] cos(j step ln x) and amplitudes[j] sin(j step ln x).

    Waves of zero amplitude are left out. Each value takes one logarithm and one cosine and sine; higher harmonics come
    from the angle-addition recurrence in float64.
    """
    d, m = X.shape[1], amplitudes.shape[0] - 1
    for r in range(X.shape[0]):
        x = X[r]
        root, c1, s1 = np.empty(d), np.empty(d), np.empty(d)
        cj, sj = np.ones(d), np.zeros(d)
        for i in range(d):
            v = np.float64(x[i])
            positive = v >= 2.2250738585072014e-308
            ln = log(v if positive else 1.0)
            c1[i], s1[i] = cos_sin(step * ln)
            if gamma == 1.0:
                root[i] = math.sqrt(v) if positive else 0.0
            elif gamma == 2.0:
                root[i] = v if positive else 0.0
            else:
                root[i] = math.exp(0.5 * gamma * ln) if positive else 0.0
            out[r, 0, i] = amplitudes[0] * root[i]
        place = 1
        for j in range(1, m + 1):
            a = amplitudes[j]
            for i in range(d):
                c = cj[i] * c1[i] - sj[i] * s1[i]
                s = sj[i] * c1[i] + cj[i] * s1[i]
                cj[i], sj[i] = c, s
            if a != 0:
                cosine, sine = out[r, place], out[r, place + 1]
                for i in range(d):
                    cosine[i] = a * root[i] * cj[i]
                    sine[i] = a * root[i] * sj[i]
                place += 2


@nb.njit(**EXACT)
def stationary_features(X, amplitudes, period, out):
    """Write amplitudes[0], then amplitudes[j] cos(2 pi j x / period), amplitudes[j] sin(2 pi j x / period).

    Whole periods are subtracted before the angle is computed, which keeps the digits of large x.
    """
    d, m = X.shape[1], amplitudes.shape[0] - 1
    for r in range(X.shape[0]):
        x = X[r]
        for i in range(d):
            turns = np.float64(x[i]) / period
            angle = 6.283185307179586 * (turns - np.floor(turns + 0.5))
            c1, s1 = math.cos(angle), math.sin(angle)
            c, s = 1.0, 0.0
            out[r, 0, i] = amplitudes[0]
            for j in range(1, m + 1):
                c, s = c * c1 - s * s1, s * c1 + c * s1
                out[r, 2 * j - 1, i] = amplitudes[j] * c
                out[r, 2 * j, i] = amplitudes[j] * s


@nb.njit(**EXACT)
def interleave_sparse(features, indices, indptr, n_bins, out_data, out_indices):
    """Write the entries of CSR features from those of the CSR rows: row r holds term 0 of its bins, then term 1, ...

    ``features`` are (n_terms, nnz); column q * n_bins + i is term q of bin i.
    """
    n_terms = features.shape[0]
    for r in range(indptr.shape[0] - 1):
        first, width = indptr[r], indptr[r + 1] - indptr[r]
        for q in range(n_terms):
            start = n_terms * first + q * width
            for e in range(width):
                out_data[start + e] = features[q, first + e]
                out_indices[start + e] = q * n_bins + indices[first + e]


@nb.njit(**EXACT)
def chebyshev_features(X, scale, out):
    """Write the Chebyshev series of x / scale, times sqrt(scale): out[:, q] = d_q.

    d_0 = 2x/(x+1), d_1 = -sqrt(2) L d_0, d_q = ((-1)^q 2 L d_{q-1} + (q-2) d_{q-2}) / q with L = ln(x) / pi, in
    float64.
    """
    d, n_terms = X.shape[1], out.shape[1]
    root = math.sqrt(scale)
    for r in range(X.shape[0]):
        x = X[r]
        L, before, last = np.empty(d), np.zeros(d), np.empty(d)
        o = out[r, 0]
        for i in range(d):
            v = np.float64(x[i]) / scale
            positive = v >= 2.2250738585072014e-308
            L[i] = log(v if positive else 1.0) * 0.31830988618379067154
            last[i] = root * (2.0 * v / (v + 1.0)) if positive else 0.0
            o[i] = last[i]
        for q in range(1, n_terms):
            o = out[r, q]
            sign = 1.0 if q % 2 == 0 else -1.0
            # d_{-1} does not matter: its factor at q = 1 is set to 0, and at q = 2 it is zero
            a = -1.41421356237309504880 if q == 1 else sign * 2.0 / q
            b = 0.0 if q == 1 else (q - 2.0) / q
            for i in range(d):
                following = a * L[i] * last[i] + b * before[i]
                before[i], last[i] = last[i], following
                o[i] = following
