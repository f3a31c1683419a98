"""Stochastic subgradient steps on tables of piecewise linear functions, a table for each bin."""

import numba as nb

from chimap._loops._compile import SUMS


@nb.njit(**SUMS)
def table_scores(data, indices, indptr, rates, tables, out):
    """Write out[r, c] = sum over bins i of tables[c, i] at x_ri, by linear interpolation.

    Knots are 0, 1/rates[i], ... Rows are CSR; values above the last knot count as the last knot.
    """
    last = tables.shape[2] - 1
    for r in range(indptr.shape[0] - 1):
        for c in range(tables.shape[0]):
            total = 0.0
            for e in range(indptr[r], indptr[r + 1]):
                place = min(data[e] * rates[indices[e]], 1.0 * last)
                j = min(int(place), last - 1)
                f = tables[c, indices[e]]
                total += f[j] + (place - j) * (f[j + 1] - f[j])
            out[r, c] = total


@nb.njit(**SUMS)
def _shrink(tables, c, factor):
    """Multiply the tables of class c by a factor; the product of an array and a number takes seconds to compile."""
    for i in range(tables.shape[1]):
        for k in range(tables.shape[2]):
            tables[c, i, k] *= factor


@nb.njit(**SUMS)
def intersection_steps(data, indices, indptr, order, signs, rates, scale, alpha, first, tables, intercepts):
    """Take a subgradient step on the hinge loss for each row in ``order`` and each class, in place.

    f <- (1 - eta alpha) f + eta y K(x, .) / scale where y f(x) < 1, else (1 - eta alpha) f; eta = 1/(alpha (first + t))
    at step t. K(x, .) at the knots of bin i is min(x_i, knot). The shrinking is accumulated in one factor until the
    end. signs (classes, rows) are y.
    """
    n_knots = tables.shape[2]
    last = n_knots - 1
    for c in range(tables.shape[0]):
        factor, intercept = 1.0, intercepts[c]
        for t in range(order.shape[0]):
            r = order[t]
            total = 0.0
            for e in range(indptr[r], indptr[r + 1]):
                place = min(data[e] * rates[indices[e]], 1.0 * last)
                j = min(int(place), last - 1)
                f = tables[c, indices[e]]
                total += f[j] + (place - j) * (f[j + 1] - f[j])
            eta = 1.0 / (alpha * (first + t))
            y = signs[c, r]
            violated = y * (factor * total + intercept) < 1.0
            factor *= 1.0 - eta * alpha
            if violated:
                step = eta * y / scale
                for e in range(indptr[r], indptr[r + 1]):
                    rate = rates[indices[e]]
                    if rate > 0:
                        share = step / (factor * rate)
                        place = min(data[e] * rate, 1.0 * last)
                        f = tables[c, indices[e]]
                        for k in range(n_knots):
                            f[k] += share * min(place, 1.0 * k)
                intercept += eta * y
            if factor < 1e-9:
                _shrink(tables, c, factor)
                factor = 1.0
        _shrink(tables, c, factor)
        intercepts[c] = intercept
