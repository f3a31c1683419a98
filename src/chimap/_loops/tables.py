"""Scores of additive models from tables of linear pieces, a table for each bin: out[r] += sum_i a + b x_i.

The piece of a value x of bin i is read off its bits. For u = rate_i x in (0, 1) as a float32, the number whose bits are
(bits(u) >> power) + a constant is, up to a few per cent, u^(1 / 2^power): the exponent is divided by 2^power, and the
mantissa makes it continuous. Cutting that number into equal pieces gives pieces that are shorter the smaller u is, by a
shift and an addition: no logarithm, no root, no search.

``tables`` are (bins * n_places, 2, lanes) float32; place p = i n_places + j holds a, then b, of all outputs.
"""

import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from chimap._loops._compile import EXACT, SUMS

TABLE_END = 0x3F800000  # the bits of 1.0, where the tables end

_UNROLL = 4  # terms that are added to each other first, so that additions do not wait for each other


@nb.njit(**EXACT)
def _place_of(bits, power, n_pieces):
    """Return the piece of a number with these bits; numbers of 1 and above, and NaN, get the last piece."""
    shift = np.int32(power & np.int32(15))  # known to be small, so that a 32-bit shift suffices
    offset = np.int32(np.int32(TABLE_END) - np.int32(np.int32(TABLE_END) >> shift))
    root = np.int32(np.int32(bits >> shift) + offset).view(np.float32)
    return min(np.uint32(np.int32(root * np.float32(n_pieces))), np.uint32(n_pieces - 1))


@nb.njit(**EXACT)
def pieces_of(bits, power, n_pieces, out):
    """Write the pieces of numbers in [0, 1) given by their bits (m,) int32, as the loops below compute them."""
    for k in range(bits.shape[0]):
        out[k] = _place_of(bits[k], np.int32(power), np.int32(n_pieces))


@nb.njit(**EXACT)
def _sized_place(bits, mask, power, n_pieces, mirror):
    """Return (bits of |u|, place) of u = rate x. A mask of -1 keeps the sign, which makes negative u large."""
    size = np.int32(bits & mask)
    behind = np.uint32(np.int32(bits >> np.int32(31)) & mirror)
    return np.uint32(size), np.uint32(behind + _place_of(size, power, n_pieces))


@nb.njit(**SUMS)
def single_dense(X, rates, mask, power, n_pieces, mirror, starts, tables, bins_at_once, rows_at_once, out, outside):
    """Do the same as ``dense_table_scores`` for one output, entry by entry: the look-ups are gathers."""
    n, d = X.shape
    flat, entries, two = X.reshape(-1), tables.reshape(-1), np.uint32(2)
    for r in range(n):
        start, total, top = np.uint64(r) * np.uint64(d), np.float32(0), np.uint32(0)
        for i in range(np.uint64(d)):
            x = flat[start + i]
            bits = np.float32(x * rates[i]).view(np.int32)
            size, j = _sized_place(bits, mask, power, n_pieces, mirror)
            top = max(top, size)
            p = np.uint32(np.uint32(starts[i] + j) * two)
            total += entries[p] + x * entries[np.uint32(p + np.uint32(1))]
        out[r, 0] += total
        outside[r] |= top >= np.uint32(TABLE_END)


@nb.njit(**SUMS)
def single_sparse(data, indices, indptr, rates, mask, power, n_pieces, mirror, starts, tables, out, outside):
    """Do the same as ``sparse_table_scores`` for one output."""
    entries, two = tables.reshape(-1), np.uint32(2)
    for r in range(indptr.shape[0] - 1):
        total, top = np.float32(0), np.uint32(0)
        for e in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            x, i = data[e], np.uint32(indices[e])
            bits = np.float32(x * rates[i]).view(np.int32)
            size, j = _sized_place(bits, mask, power, n_pieces, mirror)
            top = max(top, size)
            p = np.uint32(np.uint32(starts[i] + j) * two)
            total += entries[p] + x * entries[np.uint32(p + np.uint32(1))]
        out[r, 0] += total
        outside[r] |= top >= np.uint32(TABLE_END)


@intrinsic(prefer_literal=True)
def _add_terms(typingctx, lanes, out, row, tables, places, x, first, n):
    """Add tables[places[k], 0] + x[first + k] tables[places[k], 1] over k < n to out[row, :], in vector registers.

    It is written by hand, because the compiler cannot know that ``out`` and ``tables`` do not overlap, and would take
    the outputs one by one.
    """
    width = lanes.literal_value
    signature = types.void(lanes, out, row, tables, places, x, first, n)

    def code(context, builder, signature, arguments):
        vector, word, long = ir.VectorType(ir.FloatType(), width), ir.IntType(32), ir.IntType(64)

        def data(k):
            return context.make_array(signature.args[k])(context, builder, arguments[k]).data

        def load(pointer):
            loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
            loaded.align = 4
            return loaded

        def term(k):
            place = builder.zext(builder.load(builder.gep(places_data, [k])), long)
            start = builder.gep(tables_data, [builder.mul(place, long(2 * width))])
            undefined = ir.Constant(vector, ir.Undefined)
            value = builder.load(builder.gep(x_data, [k]))
            spread = builder.shuffle_vector(
                builder.insert_element(undefined, value, word(0)),
                undefined,
                ir.Constant(ir.VectorType(word, width), [0] * width),
            )
            rise = builder.fmul(spread, load(builder.gep(start, [long(width)])), flags=("contract",))
            return builder.fadd(load(start), rise, flags=("contract",))

        places_data, tables_data = data(4), data(3)
        x_data = builder.gep(data(5), [arguments[6]])
        target = builder.gep(data(1), [builder.mul(arguments[2], long(width))])
        total = cgutils.alloca_once_value(builder, load(target))
        n = arguments[7]
        whole = builder.and_(n, long(-_UNROLL))
        with cgutils.for_range_slice(builder, long(0), whole, long(_UNROLL), intp=long) as (k, _):
            terms = [term(builder.add(k, long(j))) for j in range(_UNROLL)]
            while len(terms) > 1:
                terms = [builder.fadd(*pair) for pair in zip(terms[::2], terms[1::2], strict=True)]
            builder.store(builder.fadd(builder.load(total), terms[0]), total)
        with cgutils.for_range_slice(builder, whole, n, long(1), intp=long) as (k, _):
            builder.store(builder.fadd(builder.load(total), term(k)), total)
        stored = builder.store(builder.load(total), builder.bitcast(target, vector.as_pointer()))
        stored.align = 4
        return context.get_dummy_value()

    return signature, code


def _dense_scores(lanes):
    @nb.njit(**SUMS)
    def dense(X, rates, mask, power, n_pieces, mirror, starts, tables, bins_at_once, rows_at_once, out, outside):
        """Add the scores of rows X to out (rows, lanes), and set outside (rows,) where a value is beyond the tables.

        The bins are taken in blocks whose tables stay in cache while a block of rows passes over them.
        """
        n, d = X.shape
        flat, entries = X.reshape(-1), tables.reshape(-1)
        places = np.empty(bins_at_once, np.uint32)
        for row in range(0, n, rows_at_once):
            for first in range(0, d, bins_at_once):
                m = min(bins_at_once, d - first)
                for r in range(row, min(n, row + rows_at_once)):
                    start = np.uint64(r) * np.uint64(d) + np.uint64(first)
                    top = np.uint32(0)
                    for i in range(np.uint64(m)):
                        bits = np.float32(flat[start + i] * rates[np.uint64(first) + i]).view(np.int32)
                        size, j = _sized_place(bits, mask, power, n_pieces, mirror)
                        top = max(top, size)
                        places[i] = np.uint32(starts[np.uint64(first) + i] + j)
                    _add_terms(lanes, out, np.uint64(r), entries, places, flat, np.int64(start), np.int64(m))
                    outside[r] |= top >= np.uint32(TABLE_END)

    return dense


def _sparse_scores(lanes):
    @nb.njit(**SUMS)
    def sparse(data, indices, indptr, rates, mask, power, n_pieces, mirror, starts, tables, out, outside):
        """Do the same for CSR rows; absent entries are zero and add nothing."""
        entries = tables.reshape(-1)
        longest = np.int64(0)
        for r in range(indptr.shape[0] - 1):
            longest = max(longest, np.int64(indptr[r + 1] - indptr[r]))
        places = np.empty(longest, np.uint32)
        for r in range(indptr.shape[0] - 1):
            start, m = np.uint64(indptr[r]), np.int64(indptr[r + 1] - indptr[r])
            top = np.uint32(0)
            for k in range(np.uint64(m)):
                x, i = data[start + k], np.uint32(indices[start + k])
                bits = np.float32(x * rates[i]).view(np.int32)
                size, j = _sized_place(bits, mask, power, n_pieces, mirror)
                top = max(top, size)
                places[k] = np.uint32(starts[i] + j)
            _add_terms(lanes, out, np.uint64(r), entries, places, data, np.int64(start), m)
            outside[r] |= top >= np.uint32(TABLE_END)

    return sparse


# Loops by lanes, the number of outputs that are added together.
dense_table_scores = {1: single_dense, **{lanes: _dense_scores(lanes) for lanes in (4, 8, 16)}}
sparse_table_scores = {1: single_sparse, **{lanes: _sparse_scores(lanes) for lanes in (4, 8, 16)}}
