"""Loops over triangles of symmetric matrices, and sums by class."""

import numba as nb

from chimap._loops._compile import EXACT, SUMS


@nb.njit(**EXACT)
def add_triangle(flat, starts, height, square, first, last):
    """Add rows first..last-1 of the upper triangle of ``square`` (any float type) to row panels of float64.

    Panel p is rows [p height, (p+1) height) and columns from p height on, row by row from flat[starts[p]].
    """
    n = square.shape[0]
    for i in range(first, last):
        p = i // height
        corner = p * height
        at = starts[p] + (i - corner) * (n - corner) - corner
        for j in range(i, n):
            flat[at + j] += square[i, j]


@nb.njit(**EXACT)
def add_by_class(Z, classes, scales, first, last, sums, total):
    """Add columns first..last-1 of the rows Z (any float type), times their scales (n,), to float64 sums.

    Twice the product is added to the row of sums (t, D) of the row's class, and once to total (D,).
    """
    for i in range(Z.shape[0]):
        class_sums, z, scale = sums[classes[i], first:last], Z[i, first:last], scales[i]
        for j in range(last - first):
            class_sums[j] += (2.0 * scale) * z[j]
        all_rows = total[first:last]
        for j in range(last - first):
            all_rows[j] += scale * z[j]


_STRIP = 512  # columns of four rows, which stay in the first cache while all right-hand sides pass over them


@nb.njit(**SUMS)
def panel_product(panel, first, P, out):
    """Add to out (t, n) the contribution of a row panel of a symmetric matrix to its product with P (t, n).

    ``panel`` is rows and columns from ``first`` on, zero below the diagonal. Each entry serves twice, as h_ij p_j in
    row i and as h_ij p_i in row j. That is why this is faster than a general product, which would read the panel twice
    and copy it each time for so few right-hand sides. The rows of P, one for each right-hand side, are contiguous.
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
