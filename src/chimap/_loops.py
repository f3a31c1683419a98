"""The compiled inner loops, all of them, and nothing else.

Plain arithmetic on C-contiguous arrays: no checks, no allocation the size of the output.
``error_model="numpy"`` and contiguous row slices let the compiler vectorise; without them every division
carries a check and the loops run ten times slower. Results of compilation are cached on disk.

Loops are compiled without threads of their own and release the interpreter lock; ``_threads.over_rows`` runs them on
slices of rows. (numba's parallel loops were tried: their worker threads spin after each loop and take the
cores from BLAS, which made the pass a third slower, and one of their layers aborts when two Python threads meet.)

Sums may be reassociated (that is what lets a reduction use vector registers); the range reductions of the
logarithm and the cosine may not, so those functions are compiled without that licence and inlined by LLVM.
"""

import math

import numba as nb
import numpy as np

_SUMS = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
_EXACT = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}

# Numbers of the additive kernels and of their squared distances, as `additive_term` takes them.
CHI2, INTERSECTION, JENSEN_SHANNON, HELLINGER = 0, 1, 2, 3
DISTANCE = 4  # CHI2 + DISTANCE is the squared distance of chi2, and so on


# --- elementary functions that vectorise ------------------------------------------------------------------


@nb.njit(**_EXACT)
def _atanh_tail(z):
    """(atanh(s) / s - 1) / z at z = s^2 <= 1/9, error below 1e-17: 1/3 + z/5 + z^2/7 + ... + z^15/33."""
    p = 1 / 33.0
    p = p * z + 1 / 31.0
    p = p * z + 1 / 29.0
    p = p * z + 1 / 27.0
    p = p * z + 1 / 25.0
    p = p * z + 1 / 23.0
    p = p * z + 1 / 21.0
    p = p * z + 1 / 19.0
    p = p * z + 1 / 17.0
    p = p * z + 1 / 15.0
    p = p * z + 1 / 13.0
    p = p * z + 1 / 11.0
    p = p * z + 1 / 9.0
    p = p * z + 1 / 7.0
    p = p * z + 1 / 5.0
    return p * z + 1 / 3.0


@nb.njit(**_EXACT)
def _log(x):
    """ln x for positive normal x, float64; error below 1 ulp of the larger part.

    x = 2^k m with m in [sqrt(1/2), sqrt(2)): ln x = k ln 2 + 2 atanh((m-1)/(m+1)), |(m-1)/(m+1)| < 0.172.
    """
    bits = np.float64(x).view(np.int64)
    k = (bits - np.int64(0x3FE6A09E667F3BCD)) >> 52
    m = np.int64(bits - (k << 52)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    # ln 2 in two parts, the first with trailing zeros, so that k * high is exact
    return k * 0.693147180369123816490 + (
        k * 1.90821492927058770002e-10 + 2.0 * s * z * _atanh_tail(z) + 2.0 * s
    )


@nb.njit(**_EXACT)
def _log1p_unit(r):
    """ln(1 + r) for r in [0, 1], relative error below 1e-15: 2 atanh(r/(2+r)) with r/(2+r) <= 1/3."""
    s = r / (2.0 + r)
    z = s * s
    return 2.0 * s + 2.0 * s * z * _atanh_tail(z)


@nb.njit(**_EXACT)
def _cos_sin(x):
    """(cos x, sin x), float64, for |x| up to about 1e8: quarter turns taken off in three parts."""
    q = np.rint(x * 0.63661977236758134308)
    r = x - q * 1.57079632673412561417
    r = r - q * 6.07710050630396597660e-11
    r = r - q * 2.02226624879595063154e-21
    z = r * r
    s = -7.6471637318198164759e-13
    s = s * z + 1.6059043836821614599e-10
    s = s * z - 2.5052108385441718775e-8
    s = s * z + 2.7557319223985890653e-6
    s = s * z - 1.9841269841269841270e-4
    s = s * z + 8.3333333333333333333e-3
    s = s * z - 1.6666666666666666667e-1
    s = r + r * z * s
    c = 4.7794773323873852974e-14
    c = c * z - 1.1470745597729724714e-11
    c = c * z + 2.0876756987868098979e-9
    c = c * z - 2.7557319223985890653e-7
    c = c * z + 2.4801587301587301587e-5
    c = c * z - 1.3888888888888888889e-3
    c = c * z + 4.1666666666666666667e-2
    c = 1.0 - 0.5 * z + z * z * c
    n = np.int64(q) & 3
    swap = (n & 1) == 1
    cosine = s if swap else c
    sine = c if swap else s
    return (-cosine if (n == 1 or n == 2) else cosine), (-sine if n >= 2 else sine)


@nb.njit(**_EXACT)
def _cos_sin_single(x):
    """(cos x, sin x), float32 arithmetic, absolute error below 1e-7 for |x| up to about 1e4."""
    f = np.float32
    q = np.rint(x * f(0.63661977236758134308))
    r = x - q * f(1.5703125)
    r = r - q * f(4.83751296997070312e-4)
    r = r - q * f(7.54953362047672271729e-8)
    r = r - q * f(2.56334406825708960298e-12)
    z = r * r
    s = f(2.7183114939898219064e-6)
    s = s * z - f(1.9839334836096632576e-4)
    s = s * z + f(8.3333293858894631756e-3)
    s = s * z - f(1.6666666641626524300e-1)
    s = r + r * z * s
    c = f(2.4390448796277409065e-5)
    c = c * z - f(1.3886763774609929416e-3)
    c = c * z + f(4.1666623323739063189e-2)
    c = f(1.0) - f(0.5) * z + z * z * c
    n = np.int32(q) & np.int32(3)
    swap = (n & 1) == 1
    cosine = s if swap else c
    sine = c if swap else s
    return (-cosine if (n == 1 or n == 2) else cosine), (-sine if n >= 2 else sine)


# --- additive kernels -------------------------------------------------------------------------------------


@nb.njit(inline="always", error_model="numpy")
def _jensen_shannon(x, y):
    # With r = min/max both parts below are positive, so nothing cancels:
    # k = max / (2 ln 2) * [(1 + r) ln(1 + r) - r ln r].
    top = max(x, y)
    r = np.float64(min(x, y)) / np.float64(top) if top > 0 else 0.0
    return 0.72134752044448170368 * top * ((1.0 + r) * _log1p_unit(r) - r * _log(max(r, 1e-300)))


@nb.njit(inline="always", error_model="numpy")
def _jensen_shannon_distance(x, y):
    # With u = (x-y)/(x+y): D^2 = (x+y)/(2 ln 2) * [2 u atanh(u) + ln(1-u^2)] = (x+y)/(2 ln 2) sum u^2k/(k(2k-1)).
    # The series serves |u| <= 1/3, where x + y - 2k would cancel; elsewhere the difference is accurate.
    total = np.float64(x) + np.float64(y)
    u = (np.float64(x) - np.float64(y)) / total if total > 0 else 0.0
    z = min(u * u, 0.1111111111111112)
    p = 1 / 496.0
    p = p * z + 1 / 435.0
    p = p * z + 1 / 378.0
    p = p * z + 1 / 325.0
    p = p * z + 1 / 276.0
    p = p * z + 1 / 231.0
    p = p * z + 1 / 190.0
    p = p * z + 1 / 153.0
    p = p * z + 1 / 120.0
    p = p * z + 1 / 91.0
    p = p * z + 1 / 66.0
    p = p * z + 1 / 45.0
    p = p * z + 1 / 28.0
    p = p * z + 1 / 15.0
    p = p * z + 1 / 6.0
    p = p * z + 1.0
    near = 0.72134752044448170368 * total * z * p
    far = total - 2.0 * _jensen_shannon(np.float64(x), np.float64(y))
    return near if u * u <= 0.1111111111111111 else far


@nb.njit(**_EXACT)
def _chi2(x, y):
    # The order matters: x y alone, or 1/(x+y), leaves the range of the floats where k itself does not.
    s = x + y
    return (x + x) * (y / s) if s > 0 else x * 0


@nb.njit(**_EXACT)
def _chi2_distance(x, y):
    s = x + y
    return (x - y) * ((x - y) / s) if s > 0 else x * 0


@nb.njit(inline="always", error_model="numpy")
def additive_term(form, x, y):
    """k(x, y) of one bin for form = CHI2 ..., its squared distance for form = CHI2 + DISTANCE ...

    ``form`` does not change inside a loop, so the compiler lifts the choice out of it.
    """
    if form == CHI2:
        return _chi2(x, y)
    elif form == INTERSECTION:
        return min(x, y)
    elif form == JENSEN_SHANNON:
        return _jensen_shannon(x, y)
    elif form == HELLINGER:
        return math.sqrt(x) * math.sqrt(y)
    elif form == CHI2 + DISTANCE:
        return _chi2_distance(x, y)
    elif form == INTERSECTION + DISTANCE:
        return abs(x - y)
    elif form == JENSEN_SHANNON + DISTANCE:
        return _jensen_shannon_distance(x, y)
    else:
        d = math.sqrt(x) - math.sqrt(y)
        return d * d


@nb.njit(inline="always", error_model="numpy")
def _distance_gamma(form, x, y, a, b):
    """Squared distance of one bin of the gamma-homogeneous variant; a = x^((gamma-1)/2), 0 where x is 0, and so b.

    Of close values, with D1^2 the distance of the plain kernel: (a sqrt x - b sqrt y)^2 + a b (D1^2 - (sqrt x -
    sqrt y)^2). Of distant ones: a^2 x + b^2 y - 2 a b k. Nothing cancels in either.
    """
    rx, ry = math.sqrt(x), math.sqrt(y)
    if abs(x - y) > 0.6 * (x + y):
        return (a * rx) * (a * rx) + (b * ry) * (b * ry) - 2.0 * (a * b * additive_term(form, x, y))
    lead, plain = a * rx - b * ry, rx - ry
    return lead * lead + a * b * (additive_term(form + DISTANCE, x, y) - plain * plain)


_ROWS = 8  # rows of X that share a tile of Y while it is in cache


@nb.njit(**_SUMS)
def pair_sums(form, X, Y, tile, out):
    """out[i, j] = sum over bins of additive_term(form, X[i], Y[j]); Y is walked in tiles of ``tile`` rows."""
    n, m, d = X.shape[0], Y.shape[0], X.shape[1]
    for block in range((n + _ROWS - 1) // _ROWS):
        for first in range(0, m, tile):
            for i in range(block * _ROWS, min(n, (block + 1) * _ROWS)):
                a = X[i]
                for j in range(first, min(m, first + tile)):
                    b = Y[j]
                    total = a[0] * 0
                    for col in range(d):
                        total += additive_term(form, a[col], b[col])
                    out[i, j] = total


@nb.njit(**_SUMS)
def pair_sums_gamma(form, X, Y, XP, YP, squared, tile, out):
    """The same for the gamma-homogeneous variant; XP = X^((gamma-1)/2), 0 where X is 0, and so YP.

    ``form`` is a kernel k (not a distance), whose variant is XP YP k.
    """
    n, m, d = X.shape[0], Y.shape[0], X.shape[1]
    for block in range((n + _ROWS - 1) // _ROWS):
        for first in range(0, m, tile):
            for i in range(block * _ROWS, min(n, (block + 1) * _ROWS)):
                a, ap = X[i], XP[i]
                for j in range(first, min(m, first + tile)):
                    b, bp = Y[j], YP[j]
                    total = 0.0
                    if squared:
                        for col in range(d):
                            total += _distance_gamma(form, a[col], b[col], ap[col], bp[col])
                    else:
                        for col in range(d):
                            total += ap[col] * bp[col] * additive_term(form, a[col], b[col])
                    out[i, j] = total


@nb.njit(**_SUMS)
def pair_sums_sparse(form, xd, xw, xi, xp, yd, yw, yi, yp, n_bins, plain, squared, out):
    """CSR against CSR, kernel or squared distance; xw = xd^((gamma-1)/2) and so yw, not read if ``plain`` (gamma 1).

    Row i of X is spread over dense buffers (one pair per block of rows) and every row of Y walks its own entries:
    k(0, y) = 0 and D^2(0, y) = k(y, y) = y^gamma. What X alone holds is left over from its own k(x, x).
    """
    n, m = xp.shape[0] - 1, yp.shape[0] - 1
    for block in range((n + _ROWS - 1) // _ROWS):
        row, weight = np.zeros(n_bins), np.ones(n_bins)
        for i in range(block * _ROWS, min(n, (block + 1) * _ROWS)):
            own, n_own = 0.0, 0
            for e in range(xp[i], xp[i + 1]):
                x, w = np.float64(xd[e]), 1.0 if plain else np.float64(xw[e])
                row[xi[e]], weight[xi[e]] = x, w
                own += w * w * x
                n_own += 1 if x > 0 else 0
            for j in range(m):
                total, shared, n_shared = 0.0, 0.0, 0
                for e in range(yp[j], yp[j + 1]):
                    x, y = row[yi[e]], np.float64(yd[e])
                    a, b = (1.0, 1.0) if plain else (weight[yi[e]], np.float64(yw[e]))
                    if x > 0 and y > 0:
                        if not squared:
                            total += a * b * additive_term(form, x, y)
                        else:
                            shared += a * a * x
                            n_shared += 1
                            if plain:
                                total += additive_term(form + DISTANCE, x, y)
                            else:
                                total += _distance_gamma(form, x, y, a, b)
                    elif squared:
                        total += b * b * y
                if squared and n_shared < n_own:
                    total += max(own - shared, 0.0)
                out[i, j] = total
            for e in range(xp[i], xp[i + 1]):
                row[xi[e]] = 0.0


# --- maps: out[r, q, i] is term q of bin i of row r --------------------------------------------------------


@nb.njit(**_EXACT)
def direct_features(X, nodes, out):
    """Direct series: out[:, q] = prod_{p<q} (x-k_p)/(x+k_p) * 2 sqrt(k_q) x/(x+k_q); one division a term."""
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
                o[i] = root * x[i] * share
                product[i] = (x[i] - k) * share


@nb.njit(**_EXACT)
def table_features(bits, tables, drop, first, out):
    """Piecewise polynomials over the binary representation of x: no logarithm, no division, no branch.

    bits: the rows as integers of the width of the floats. bits >> drop counts segments (exponent and leading
    mantissa bits) from ``first``; the dropped bits are the place t in [0, 1) within the segment.
    tables: (n_terms, degree + 1, n_segments) coefficients of t^p; the outermost segments are constants.
    """
    n_terms, n_coefficients, last = tables.shape[0], tables.shape[1], tables.shape[2] - 1
    d = bits.shape[1]
    unit = tables[0, 0, 0] * 0 + 1
    step = unit / (np.int64(1) << np.int64(drop))
    mask = bits[0, 0] * 0 + ((bits[0, 0] * 0 + 1) << drop) - 1
    for r in range(bits.shape[0]):
        b = bits[r]
        segment = np.empty(d, np.int32)
        t = np.empty(d, tables.dtype)
        for i in range(d):
            segment[i] = min(max((b[i] >> drop) - first, 0), last)
            t[i] = (unit * (b[i] & mask)) * step
        for q in range(n_terms):
            o = out[r, q]
            if n_coefficients == 3:
                a0, a1, a2 = tables[q, 0], tables[q, 1], tables[q, 2]
                for i in range(d):
                    s = segment[i]
                    o[i] = a0[s] + t[i] * (a1[s] + t[i] * a2[s])
            else:
                top = tables[q, n_coefficients - 1]
                for i in range(d):
                    o[i] = top[segment[i]]
                for p in range(n_coefficients - 2, -1, -1):
                    a = tables[q, p]
                    for i in range(d):
                        o[i] = a[segment[i]] + t[i] * o[i]


@nb.njit(**_EXACT)
def homogeneous_features(X, amplitudes, step, gamma, out):
    """sqrt(x^gamma) times amplitudes[0], then amplitudes[j] cos(j step ln x), amplitudes[j] sin(j step ln x).

    One logarithm and one cosine/sine a value; higher harmonics by the angle-addition recurrence in float64.
    """
    d, m = X.shape[1], amplitudes.shape[0] - 1
    for r in range(X.shape[0]):
        x = X[r]
        root, c1, s1 = np.empty(d), np.empty(d), np.empty(d)
        cj, sj = np.ones(d), np.zeros(d)
        for i in range(d):
            v = np.float64(x[i])
            positive = v >= 2.2250738585072014e-308
            log = _log(v if positive else 1.0)
            c1[i], s1[i] = _cos_sin(step * log)
            if gamma == 1.0:
                root[i] = math.sqrt(v) if positive else 0.0
            elif gamma == 2.0:
                root[i] = v if positive else 0.0
            else:
                root[i] = math.exp(0.5 * gamma * log) if positive else 0.0
            out[r, 0, i] = amplitudes[0] * root[i]
        for j in range(1, m + 1):
            a = amplitudes[j]
            cosine, sine = out[r, 2 * j - 1], out[r, 2 * j]
            for i in range(d):
                c = cj[i] * c1[i] - sj[i] * s1[i]
                s = sj[i] * c1[i] + cj[i] * s1[i]
                cj[i], sj[i] = c, s
                cosine[i] = a * root[i] * c
                sine[i] = a * root[i] * s


@nb.njit(**_EXACT)
def interleave_sparse(features, indices, indptr, n_bins, out_data, out_indices):
    """Entries of the CSR features from those of the CSR rows: row r holds term 0 of its bins, then term 1, ...

    features: (n_terms, nnz); column q * n_bins + i is term q of bin i.
    """
    n_terms = features.shape[0]
    for r in range(indptr.shape[0] - 1):
        first, width = indptr[r], indptr[r + 1] - indptr[r]
        for q in range(n_terms):
            start = n_terms * first + q * width
            for e in range(width):
                out_data[start + e] = features[q, first + e]
                out_indices[start + e] = q * n_bins + indices[first + e]


# --- random features --------------------------------------------------------------------------------------


@nb.njit(**_EXACT)
def waves(angles, scale, offset, shift, out):
    """out = [scale cos(angles + offset), scale sin(the first angles + offset)] - shift.

    angles (rows, m), offset (m,), out (rows, D), shift (D,) with m <= D <= 2m: the first D - m angles have a sine too.
    """
    m = angles.shape[1]
    pairs = out.shape[1] - m
    single = out.itemsize == 4
    for r in range(angles.shape[0]):
        a, left, right = angles[r], out[r, :m], out[r, m:]
        for j in range(pairs):
            if single:
                c, s = _cos_sin_single(np.float32(a[j] + offset[j]))
            else:
                c, s = _cos_sin(np.float64(a[j] + offset[j]))
            left[j] = scale * c - shift[j]
            right[j] = scale * s - shift[m + j]
        for j in range(pairs, m):
            if single:
                c, s = _cos_sin_single(np.float32(a[j] + offset[j]))
            else:
                c, s = _cos_sin(np.float64(a[j] + offset[j]))
            left[j] = scale * c - shift[j]


@nb.njit(**_SUMS)
def sparse_times_dense(data, indices, indptr, W, out):
    """out = CSR @ W without densifying; the columns of W go in blocks so that the touched rows stay in cache."""
    n, m, width = indptr.shape[0] - 1, W.shape[1], 512
    for r in range(n):
        for first in range(0, m, width):
            o = out[r, first : min(m, first + width)]
            for j in range(o.shape[0]):
                o[j] = 0
            for e in range(indptr[r], indptr[r + 1]):
                v = data[e]
                w = W[indices[e], first : min(m, first + width)]
                for j in range(o.shape[0]):
                    o[j] += v * w[j]


# --- moments ----------------------------------------------------------------------------------------------


@nb.njit(**_EXACT)
def add_triangle(flat, starts, height, square, first, last):
    """Add rows first..last-1 of the upper triangle of ``square`` (any float) to row panels, float64.

    Panel p is rows [p height, (p+1) height) and columns from p height on, row by row from flat[starts[p]].
    """
    n = square.shape[0]
    for i in range(first, last):
        p = i // height
        corner = p * height
        at = starts[p] + (i - corner) * (n - corner) - corner
        for j in range(i, n):
            flat[at + j] += square[i, j]


_STRIP = 512  # columns of four rows that stay in the first cache while all right-hand sides pass over them


@nb.njit(**_SUMS)
def panel_product(panel, first, P, out):
    """Add to out (t, n) what one row panel of a symmetric matrix gives of its product with P (t, n).

    panel: rows first .. and columns from first on, zero below the diagonal. Each entry serves twice, as h_ij p_j in
    row i and as h_ij p_i in row j; that is why this beats a general product, which would read the panel twice and
    copy it each time for so few right-hand sides. The rows of P, one a right-hand side, are contiguous.
    """
    height, width = panel.shape
    t = P.shape[0]
    for i in range(height):
        for c in range(t):
            out[c, first + i] -= panel[i, i] * P[c, first + i]  # the diagonal would count twice
    whole = height - height % 4
    for i in range(0, whole, 4):
        for start in range(0, width, _STRIP):
            stop = min(width, start + _STRIP)
            h0, h1 = panel[i, start:stop], panel[i + 1, start:stop]
            h2, h3 = panel[i + 2, start:stop], panel[i + 3, start:stop]
            for c in range(t):
                p, o = P[c, first + start : first + stop], out[c, first + start : first + stop]
                a0, a1 = P[c, first + i], P[c, first + i + 1]
                a2, a3 = P[c, first + i + 2], P[c, first + i + 3]
                s0 = s1 = s2 = s3 = 0.0
                for j in range(stop - start):
                    s0 += h0[j] * p[j]
                    s1 += h1[j] * p[j]
                    s2 += h2[j] * p[j]
                    s3 += h3[j] * p[j]
                    o[j] += (h0[j] * a0 + h1[j] * a1) + (h2[j] * a2 + h3[j] * a3)
                out[c, first + i] += s0
                out[c, first + i + 1] += s1
                out[c, first + i + 2] += s2
                out[c, first + i + 3] += s3
    for i in range(whole, height):
        for c in range(t):
            p, o = P[c, first:], out[c, first:]
            a, s = P[c, first + i], 0.0
            for j in range(width):
                s += panel[i, j] * p[j]
                o[j] += panel[i, j] * a
            out[c, first + i] += s


# --- checks -----------------------------------------------------------------------------------------------


@nb.njit(cache=True, nogil=True, error_model="numpy")
def all_in_domain(values, signed):
    """Whether every value is finite, and not negative unless ``signed``."""
    n, block = values.shape[0], 65536
    bad = 0
    for b in range((n + block - 1) // block):
        v = values[b * block : min(n, (b + 1) * block)]
        count = 0
        for i in range(v.shape[0]):
            ok = abs(v[i]) < np.inf and (signed or v[i] >= 0)
            count += 0 if ok else 1
        bad += count
    return bad == 0
