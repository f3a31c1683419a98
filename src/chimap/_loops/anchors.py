"""Loops of anchor maps: the nearest anchors as codes, sums of table entries by codes, exact k-means on a line."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from chimap._loops._compile import EXACT, SUMS

LANES = 16  # outputs in a vector: a cache line of float32


@intrinsic
def add_rows(typing_context: Any, out: Any, at: Any, table: Any, places: Any) -> Any:
    """Add the sum of table[p : p + LANES] over the tuple ``places`` to out[at : at + LANES]; both arrays are flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out_type, _, table_type, places_type = signature.args
        element = context.get_data_type(table_type.dtype)
        vector = ir.VectorType(element, LANES).as_pointer()
        size = context.get_abi_sizeof(element)

        def place(kind: Any, array: Any, index: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            return builder.bitcast(builder.gep(data, [index]), vector)

        target = place(out_type, arguments[0], arguments[1])
        indices = cgutils.unpack_tuple(builder, arguments[3], places_type.count)
        vectors = [builder.load(place(table_type, arguments[2], p), align=size) for p in indices]
        vectors.append(builder.load(target, align=size))
        while len(vectors) > 1:  # add as a tree, so that no addition waits for all earlier ones
            neighbours = [vectors[k : k + 2] for k in range(0, len(vectors), 2)]
            vectors = [builder.fadd(*pair) if len(pair) == 2 else pair[0] for pair in neighbours]
        builder.store(vectors[0], target, align=size)
        return context.get_dummy_value()

    return types.void(out, at, table, places), generate


@nb.njit(**EXACT)
def uniform_codes(X, rates, half, last, lift, codes):
    """Write the first of the k nearest anchors 0, h, 2h, ... as the code: a multiplication and a rounding.

    ``rates`` are 1/h of each column, ``half`` is k/2. A value half way between anchors belongs to the lower one.
    Products are float64 whatever the dtype of X, so that a number has the same code in both dtypes. ``lift`` is added
    to the codes of positive values.
    """
    for r in range(X.shape[0]):
        x, c = X[r], codes[r]
        for i in range(x.shape[0]):
            place = np.ceil(np.float64(x[i]) * rates[i] - half)
            window = np.int32(min(max(place, 0.0), last))
            c[i] = window + (lift if x[i] > 0 else 0)


@nb.njit(**EXACT)
def searched_codes(X, starts, borders, size, lift, codes):
    """Write codes for any anchors: the number of borders[start : start + size] of its column that a value exceeds.

    ``size`` is a power of two, at least the number of borders plus one; columns with fewer borders are padded with
    infinities. The search has no branch, and its steps run over the columns, so that they vectorise. Places are
    unsigned (and starts uint32), because numba checks signed indices for counting from the end.
    """
    d, one = X.shape[1], np.uint32(1)
    place = np.empty(d, np.uint32)
    for r in range(X.shape[0]):
        x, c = X[r], codes[r]
        place[:] = starts
        step = np.uint32(size >> 1)
        while step > 0:
            for i in range(d):
                further = np.uint32(place[i] + step)
                place[i] = further if borders[np.uint32(further - one)] < x[i] else place[i]
            step = np.uint32(step >> one)
        for i in range(d):
            c[i] = place[i] - starts[i] + np.uint32(lift if x[i] > 0 else 0)


@nb.njit(**EXACT)
def looked_up_features(codes, starts, amplitudes, table, out):
    """Write out[r, q, i] = amplitudes[i] * table[q, starts[i] + codes[r, i]]."""
    d = codes.shape[1]
    for r in range(codes.shape[0]):
        c = codes[r]
        for q in range(table.shape[0]):
            o, t = out[r, q], table[q]
            for i in range(d):
                o[i] = amplitudes[i] * t[starts[i] + c[i]]


@nb.njit(**EXACT)
def blended_features(X, windows, k, anchors, anchor_starts, highest, starts, amplitudes, table, out):
    """Write features of the k anchors of a window, weighted by the inverse of their distance to the value.

    Weights are smallest distance / distance, which neither overflows nor divides by zero; with two neighbours this is
    linear interpolation. Values above the highest anchor count as that anchor. Columns with fewer anchors are padded
    with infinitely distant ones.
    """
    d = X.shape[1]
    weights = np.empty((k, d))
    for r in range(X.shape[0]):
        x, w = X[r], windows[r]
        for i in range(d):
            v = min(np.float64(x[i]), highest[i])
            first = anchor_starts[i] + w[i]
            nearest = np.inf
            for p in range(k):
                nearest = min(nearest, abs(v - anchors[first + p]))
            total = 0.0
            for p in range(k):
                gap = abs(v - anchors[first + p])
                weights[p, i] = nearest / gap if gap > 0 else 1.0
                total += weights[p, i]
            for p in range(k):
                weights[p, i] *= amplitudes[i] / total
        for q in range(table.shape[0]):
            o, t = out[r, q], table[q]
            for i in range(d):
                blend = 0.0
                for p in range(k):
                    blend += weights[p, i] * t[starts[i] + w[i] + p]
                o[i] = blend


@nb.njit(**SUMS)
def lookup_sums(codes, table, n_codes, out):
    """Add table[i * n_codes + codes[r, i], c] over i to out[r, c], which starts at zero.

    There is one output or a multiple of LANES. Eight rows of the table are added at once, so that out is read and
    written once for eight. Places are unsigned, because numba checks signed indices for counting from the end.
    """
    d, width = codes.shape[1], np.uint64(table.shape[1])
    flat, sums, step = table.reshape(-1), out.reshape(-1), np.uint64(n_codes) * width
    whole = d - d % 8
    for r in range(codes.shape[0]):
        code = codes[r]
        if width == 1:
            total = flat[0] * 0
            for i in range(d):
                total += flat[i * n_codes + code[i]]
            sums[r] = total
            continue
        for lane in range(np.uint64(0), width, np.uint64(LANES)):
            at = np.uint64(r) * width + lane
            for i in range(0, whole, 8):
                b0 = np.uint64(i) * step + lane
                b2 = b0 + step + step
                b4 = b2 + step + step
                b6 = b4 + step + step
                left = (
                    b0 + code[i] * width,
                    b0 + step + code[i + 1] * width,
                    b2 + code[i + 2] * width,
                    b2 + step + code[i + 3] * width,
                )
                right = (
                    b4 + code[i + 4] * width,
                    b4 + step + code[i + 5] * width,
                    b6 + code[i + 6] * width,
                    b6 + step + code[i + 7] * width,
                )
                add_rows(sums, at, flat, left + right)
            for i in range(whole, d):
                add_rows(sums, at, flat, (np.uint64(i) * step + lane + code[i] * width,))


@nb.njit(**SUMS)
def lookup_sums_sparse(codes, indices, indptr, table, n_codes, out):
    """Do the same for CSR rows of codes; absent codes are zero and add nothing."""
    width, flat, sums = np.uint64(table.shape[1]), table.reshape(-1), out.reshape(-1)
    for r in range(indptr.shape[0] - 1):
        first, last = indptr[r], indptr[r + 1]
        if width == 1:
            total = flat[0] * 0
            for e in range(first, last):
                total += flat[indices[e] * n_codes + codes[e]]
            sums[r] = total
            continue
        whole = last - (last - first) % 4
        for lane in range(np.uint64(0), width, np.uint64(LANES)):
            at = np.uint64(r) * width + lane
            for e in range(first, whole, 4):  # out is read and written once for four
                p0 = np.uint64(indices[e] * n_codes + codes[e]) * width + lane
                p1 = np.uint64(indices[e + 1] * n_codes + codes[e + 1]) * width + lane
                p2 = np.uint64(indices[e + 2] * n_codes + codes[e + 2]) * width + lane
                p3 = np.uint64(indices[e + 3] * n_codes + codes[e + 3]) * width + lane
                add_rows(sums, at, flat, (p0, p1, p2, p3))
            for e in range(whole, last):
                add_rows(sums, at, flat, (np.uint64(indices[e] * n_codes + codes[e]) * width + lane,))


@nb.njit(**SUMS)
def scatter_sums(codes, values, first, last, n_codes, out):
    """Add values[r] to out[(i - first) * n_codes + codes[r, i]] for bins first..last-1.

    This is the transpose of ``lookup_sums``.
    """
    width, flat, sums = np.uint64(values.shape[1]), values.reshape(-1), out.reshape(-1)
    for r in range(codes.shape[0]):
        code = codes[r]
        for i in range(first, last):
            place = np.uint64((i - first) * n_codes + code[i])
            if width == 1:
                sums[place] += flat[r]
                continue
            for lane in range(np.uint64(0), width, np.uint64(LANES)):
                add_rows(sums, place * width + lane, flat, (np.uint64(r) * width + lane,))


@nb.njit(**SUMS)
def scatter_sums_sparse(codes, indices, indptr, values, first, last, n_codes, out):
    """Do the same for CSR rows of codes, whose indices are sorted."""
    width, flat, sums = np.uint64(values.shape[1]), values.reshape(-1), out.reshape(-1)
    for r in range(indptr.shape[0] - 1):
        low, high = indptr[r], indptr[r + 1]
        while low < high:  # find the first entry whose index is at least ``first``
            middle = (low + high) // 2
            if indices[middle] < first:
                low = middle + 1
            else:
                high = middle
        for e in range(low, indptr[r + 1]):
            if indices[e] >= last:
                break
            place = np.uint64((indices[e] - first) * n_codes + codes[e])
            if width == 1:
                sums[place] += flat[r]
                continue
            for lane in range(np.uint64(0), width, np.uint64(LANES)):
                add_rows(sums, place * width + lane, flat, (np.uint64(r) * width + lane,))


@nb.njit(**EXACT)
def kmeans_on_line(x, counts, k):
    """Return the centres of the optimal k-means of sorted distinct x > 0 with counts, where one of the k centres is 0.

    cost[m, j], the smallest sum of squares of the first j values with m + 1 centres, is the minimum over i of cost[m -
    1, i] + (sum of squares of values i..j-1 about their mean). The best i does not decrease with j, because the sums of
    squares obey the quadrangle inequality. So the stride over j is halved step by step, and the results of both
    neighbours bound each search: O(k n log n) in all. Source: Wu, Optimal quantization by matrix searching, 1991 (the
    monotonicity).
    """
    n = x.shape[0]
    middle = x[n // 2]
    mass, first, second = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    cost, better = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        y = x[i] - middle  # shifted, so that the sums of squares do not cancel
        mass[i + 1] = mass[i] + counts[i]
        first[i + 1] = first[i] + counts[i] * y
        second[i + 1] = second[i] + counts[i] * y * y
        cost[i + 1] = cost[i] + counts[i] * x[i] * x[i]  # all values belong to the centre 0
    best = np.zeros((k, n + 1), np.int32)
    top = 1
    while top <= n:
        top *= 2
    for m in range(1, k):
        stride = top
        while stride >= 1:
            for j in range(stride - 1, n + 1, 2 * stride):
                low = best[m, j - stride] if j >= stride else 0
                high = best[m, j + stride] if j + stride <= n else j
                smallest, at = np.inf, low
                for i in range(low, min(high, j) + 1):
                    weight, sum1 = mass[j] - mass[i], first[j] - first[i]
                    spread = second[j] - second[i] - sum1 * sum1 / weight if i < j else 0.0
                    total = cost[i] + max(spread, 0.0)
                    if total < smallest:
                        smallest, at = total, i
                better[j], best[m, j] = smallest, at
            stride //= 2
        cost, better = better, cost
    centres = np.empty(k)
    n_means, j = 0, n
    for m in range(k - 1, 0, -1):
        i = best[m, j]
        if i < j:
            total = weight = 0.0
            for p in range(i, j):
                total += counts[p] * x[p]
                weight += counts[p]
            centres[n_means] = total / weight
            n_means += 1
        j = i
    return centres[:n_means][::-1].copy()


@nb.njit(**EXACT)
def staircase_features(X, rates, heights, n_steps, linear, out):
    """Write unary codes: out[r, q, i] = heights[i] * (the share of step q that lies below X[r, i] * rates[i] steps).

    The number of steps is rounded to the nearest whole number unless ``linear``.
    """
    d = X.shape[1]
    level = np.empty(d)
    for r in range(X.shape[0]):
        x = X[r]
        for i in range(d):
            exact = min(np.float64(x[i]) * rates[i], np.float64(n_steps))
            level[i] = exact if linear else np.floor(exact + 0.5)
        for q in range(n_steps):
            o = out[r, q]
            for i in range(d):
                o[i] = heights[i] * min(max(level[i] - q, 0.0), 1.0)
