"""Sums of additive kernels, and of their squared distances, over pairs of rows."""

import math
from collections.abc import Callable

import numba as nb
import numpy as np
from numba.extending import overload

from chimap._loops._compile import EXACT, INLINED, SUMS
from chimap._loops.elementary import log, log1p_unit
from chimap._loops.numbers import CHI2, DISTANCE, HELLINGER, INTERSECTION, JENSEN_SHANNON, LOG_SECH

_INLINED = {
    option: value for option, value in INLINED.items() if option != "cache"
}  # they are cached as part of the loops


@nb.njit(**INLINED)
def _jensen_shannon(x, y):
    # With r = min/max, both terms below are positive, so nothing cancels:
    # k = max / (2 ln 2) * [(1 + r) ln(1 + r) - r ln r].
    top = max(x, y)
    r = np.float64(min(x, y)) / np.float64(top) if top > 0 else 0.0
    return 0.72134752044448170368 * top * ((1.0 + r) * log1p_unit(r) - r * log(max(r, 1e-300)))


@nb.njit(**INLINED)
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


@nb.njit(**EXACT)
def _chi2(x, y):
    # The order matters: x y alone, or 1/(x+y), can overflow or underflow where k itself does not.
    s = x + y
    return (x + x) * (y / s) if s > 0 else x * 0


@nb.njit(**EXACT)
def _chi2_distance(x, y):
    s = x + y
    return (x - y) * ((x - y) / s) if s > 0 else x * 0


@nb.njit(**INLINED)
def _log_sech(x, y):
    # sech(ln x - ln y) = 2 u / (1 + u^2) with u = min/max, which does not overflow; = 1 / (1 + r), r = (1-u)^2 / 2u,
    # which keeps the digits of close values
    u = min(x, y) / max(x, y)
    r = (1.0 - u) * (1.0 - u) / max(2.0 * u, 1e-300)
    return -log1p_unit(r) if r <= 1.0 else log(max(2.0 * u / (1.0 + u * u), 1e-300))


def additive_term(form: int, x: float, y: float) -> float:
    """Return k(x, y) of a single bin for form = CHI2 ..., and its squared distance for form = CHI2 + DISTANCE ...

    A loop must know ``form`` when it is compiled (see ``for_every_form``), and compiles this formula alone. With one
    function that branches on the form, all formulas were compiled for each loop, which took twice as long as compiling
    the loop itself.
    """
    raise NotImplementedError


@overload(additive_term, jit_options=_INLINED, prefer_literal=True)
def _additive_term(form, x, y):
    return {
        CHI2: lambda form, x, y: _chi2(x, y),
        INTERSECTION: lambda form, x, y: min(x, y),
        JENSEN_SHANNON: lambda form, x, y: _jensen_shannon(x, y),
        HELLINGER: lambda form, x, y: math.sqrt(x) * math.sqrt(y),
        LOG_SECH: lambda form, x, y: _log_sech(x, y),
        CHI2 + DISTANCE: lambda form, x, y: _chi2_distance(x, y),
        INTERSECTION + DISTANCE: lambda form, x, y: abs(x - y),
        JENSEN_SHANNON + DISTANCE: lambda form, x, y: _jensen_shannon_distance(x, y),
        HELLINGER + DISTANCE: lambda form, x, y: (math.sqrt(x) - math.sqrt(y)) ** 2,
    }[form.literal_value]


def _distance_gamma(form: int, x: float, y: float, a: float, b: float) -> float:
    """Return the squared distance of a bin of the gamma-homogeneous variant.

    a = x^((gamma-1)/2), 0 where x is 0, and b likewise for y. For close values, with D1^2 the distance of the plain
    kernel, it is (a sqrt x - b sqrt y)^2 + a b (D1^2 - (sqrt x - sqrt y)^2); for distant ones a^2 x + b^2 y - 2 a b k.
    Nothing cancels in either.
    """
    raise NotImplementedError


@overload(_distance_gamma, jit_options=_INLINED, prefer_literal=True)
def _distance_gamma_of(form, x, y, a, b):
    kernel, distance = form.literal_value, form.literal_value + DISTANCE

    def squared(form, x, y, a, b):
        rx, ry = math.sqrt(x), math.sqrt(y)
        lead, plain = a * rx - b * ry, rx - ry
        near = lead * lead + a * b * (additive_term(distance, x, y) - plain * plain)
        far = (a * rx) * (a * rx) + (b * ry) * (b * ry) - 2.0 * (a * b * additive_term(kernel, x, y))
        return far if abs(x - y) > 0.6 * (x + y) else near

    return squared


def for_every_form(build: Callable[[int], Callable[..., None]]) -> tuple[Callable[..., None], ...]:
    """Return a loop for each form, at its number. It is compiled at its first call, with its formula alone inside.

    With the form as an argument of a single loop, the choice stayed inside the loop and nothing was vectorised: the
    kernels took four to nine times as long.
    """
    return tuple(build(form) for form in range(LOG_SECH + 1))


_ROWS = 8  # rows of X that share a tile of Y while it is in cache


@for_every_form
def pair_sums(form: int) -> Callable[..., None]:
    """Write out[i, j] = sum over bins of additive_term(form, X[i], Y[j]), in tiles of ``tile`` rows of Y."""

    @nb.njit(**SUMS)
    def sums(X, Y, tile, out):
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

    return sums


@for_every_form
def pair_sums_gamma(form: int) -> Callable[..., None]:
    """Do the same for the gamma-homogeneous variant, with XP = X^((gamma-1)/2), 0 where X is 0, and YP likewise.

    ``form`` is a kernel k (not a distance), whose variant is XP YP k.
    """

    @nb.njit(**SUMS)
    def sums(X, Y, XP, YP, squared, tile, out):
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

    return sums


@for_every_form
def pair_sums_sparse(form: int) -> Callable[..., None]:
    """Write the kernel or squared distance of CSR rows X and Y.

    xw = xd^((gamma-1)/2), and yw likewise, are not read if ``plain`` (gamma 1). Row i of X is spread over dense buffers
    (a pair for each block of rows), and every row of Y walks its own entries: k(0, y) = 0 and D^2(0, y) = k(y, y) =
    y^gamma. The part of bins that X alone holds is what remains of k(x, x) of its row.
    """
    distance = form + DISTANCE

    @nb.njit(**SUMS)
    def sums(xd, xw, xi, xp, yd, yw, yi, yp, n_bins, plain, squared, out):
        n, m = xp.shape[0] - 1, yp.shape[0] - 1
        for block in range((n + _ROWS - 1) // _ROWS):
            row, weight = np.zeros(n_bins), np.ones(n_bins)
            for i in range(block * _ROWS, min(n, (block + 1) * _ROWS)):
                total_x, n_x = 0.0, 0
                for e in range(xp[i], xp[i + 1]):
                    x, w = np.float64(xd[e]), 1.0 if plain else np.float64(xw[e])
                    row[xi[e]], weight[xi[e]] = x, w
                    total_x += w * w * x
                    n_x += 1 if x > 0 else 0
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
                                    total += additive_term(distance, x, y)
                                else:
                                    total += _distance_gamma(form, x, y, a, b)
                        elif squared:
                            total += b * b * y
                    if squared and n_shared < n_x:
                        total += max(total_x - shared, 0.0)
                    out[i, j] = total
                for e in range(xp[i], xp[i + 1]):
                    row[xi[e]] = 0.0

    return sums
