"""Logarithm, exponential, cosine and sine that the compiler vectorises.

Loops for either precision call ``waves_of``, which is chosen by the type of the number. A branch on the item size of an
array would not do: the compiler learns that size only at run time, and computes both formulas.

The loops of other files inline these functions, and numba's cache does not notice a change here: delete
``__pycache__`` after one.
"""

from typing import Any

import numba as nb
import numpy as np
from numba.extending import overload

from chimap._loops._compile import EXACT, INLINED


@nb.njit(**EXACT)
def _atanh_tail(z):
    """Return (atanh(s) / s - 1) / z at z = s^2 <= 1/9, error below 1e-17: 1/3 + z/5 + z^2/7 + ... + z^15/33."""
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


@nb.njit(**EXACT)
def log(x):
    """Return ln x for positive normal x, float64; the error is below 1 ulp of the larger part.

    x = 2^k m with m in [sqrt(1/2), sqrt(2)): ln x = k ln 2 + 2 atanh((m-1)/(m+1)), |(m-1)/(m+1)| < 0.172.
    """
    bits = np.float64(x).view(np.int64)
    k = (bits - np.int64(0x3FE6A09E667F3BCD)) >> 52
    m = np.int64(bits - (k << 52)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    # ln 2 in two parts, the first with trailing zeros, so that k * high is exact
    return k * 0.693147180369123816490 + (k * 1.90821492927058770002e-10 + 2.0 * s * z * _atanh_tail(z) + 2.0 * s)


@nb.njit(**EXACT)
def log1p_unit(r):
    """Return ln(1 + r) for r in [0, 1], relative error below 1e-15: 2 atanh(r/(2+r)) with r/(2+r) <= 1/3."""
    s = r / (2.0 + r)
    z = s * s
    return 2.0 * s + 2.0 * s * z * _atanh_tail(z)


@nb.njit(**EXACT)
def cos_sin(x):
    """Return (cos x, sin x), float64, for |x| up to 1e8. Quarter turns are subtracted in three parts."""
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


@nb.njit(**EXACT)
def cos_sin_single(x):
    """Return (cos x, sin x) in float32 arithmetic, absolute error below 1e-7 for |x| up to 1e4."""
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


@nb.njit(**EXACT)
def log_single(x):
    """Return ln x for positive normal x in float32 arithmetic; the error is below 2 ulp.

    As in ``log``: x = 2^k m, ln x = k ln 2 + 2 atanh(s), s = (m-1)/(m+1), s^2 < 0.0295, with four terms of the series.
    """
    f = np.float32
    bits = f(x).view(np.int32)
    k = (bits - np.int32(0x3F3504F3)) >> np.int32(23)
    m = np.int32(bits - (k << np.int32(23))).view(np.float32)
    s = (m - f(1.0)) / (m + f(1.0))
    z = s * s
    tail = f(1 / 9.0)
    tail = tail * z + f(1 / 7.0)
    tail = tail * z + f(1 / 5.0)
    tail = tail * z + f(1 / 3.0)
    # ln 2 in two parts, the first with trailing zeros, so that k * high is exact
    n = f(k)
    return n * f(0.693145751953125) + (n * f(1.42860682030941723212e-6) + f(2.0) * s * z * tail + f(2.0) * s)


def waves_of(x: float | np.floating) -> Any:
    """Return (cos x, sin x) by ``cos_sin_single`` for float32 and by ``cos_sin`` for float64."""


@overload(waves_of)
def _waves_of(x):
    return (lambda x: cos_sin_single(x)) if x == nb.float32 else (lambda x: cos_sin(x))


def largest_angle_of(x: float | np.floating) -> float | np.floating:
    """Return the largest angle for which ``waves_of`` is accurate in the type of x; for compiled loops only."""
    raise NotImplementedError


@overload(largest_angle_of)
def _largest_angle_of(x):
    return (lambda x: np.float32(1e4)) if x == nb.float32 else (lambda x: 1e8)


@nb.njit(**EXACT)
def expm1_single(x):
    """Return exp(x) - 1 for x <= 0 in float32 arithmetic; the error is below 2 ulp, and it is -1 for x <= -87.

    x = n ln 2 + r with |r| <= ln 2 / 2: 2^n (exp(r) - 1) + (2^n - 1), so that small x keep their digits.
    """
    f = np.float32
    x = min(max(x, f(-87.0)), f(0.0))
    n = np.rint(x * f(1.44269504088896341))
    r = x - n * f(0.693145751953125)
    r = r - n * f(1.42860682030941723212e-6)
    p = f(1 / 40320.0) * r + f(1 / 5040.0)
    p = p * r + f(1 / 720.0)
    p = p * r + f(1 / 120.0)
    p = p * r + f(1 / 24.0)
    p = p * r + f(1 / 6.0)
    p = p * r + f(0.5)
    p = r + r * r * p
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return power * p + (power - f(1.0))


@nb.njit(**INLINED)
def _exp_parts(x):
    """Return (p, r, 2^n) with exp(x) = 2^n (1 + r + r^2 p) for x <= 0, float64: ``expm1_single`` in thirteen terms."""
    x = min(max(x, -708.0), 0.0)
    n = np.rint(x * 1.44269504088896340736)
    r = x - n * 0.693147180369123816490
    r = r - n * 1.90821492927058770002e-10
    p = r / 6227020800.0 + 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    return p, r, np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)


@nb.njit(**EXACT)
def expm1_double(x):
    """Return exp(x) - 1 for x <= 0, float64; it is -1 for x <= -708."""
    p, r, power = _exp_parts(x)
    p = r + r * r * p
    return power * p + (power - 1.0)


def expm1_of(x: Any) -> Any:
    """Return exp(x) - 1 for x <= 0, by ``expm1_single`` for float32 and by ``expm1_double`` for float64."""


@overload(expm1_of)
def _expm1_of(x):
    return (lambda x: expm1_single(x)) if x == nb.float32 else (lambda x: expm1_double(x))


@nb.njit(**EXACT)
def exp_single(x):
    """Return exp(x) for x <= 0 in float32 arithmetic; the error is below 2 ulp, and exp(-87) stands for all below it.

    x = n ln 2 + r with |r| <= ln 2 / 2, as in ``expm1_single``.
    """
    f = np.float32
    x = min(max(x, f(-87.0)), f(0.0))
    n = np.rint(x * f(1.44269504088896341))
    r = x - n * f(0.693145751953125)
    r = r - n * f(1.42860682030941723212e-6)
    p = f(1 / 5040.0) * r + f(1 / 720.0)
    p = p * r + f(1 / 120.0)
    p = p * r + f(1 / 24.0)
    p = p * r + f(1 / 6.0)
    p = p * r + f(0.5)
    p = p * r + f(1.0)
    p = p * r + f(1.0)
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@nb.njit(**EXACT)
def exp_double(x):
    """Return exp(x) for x <= 0, float64; exp(-708) stands for all below."""
    p, r, power = _exp_parts(x)
    p = p * r + 1.0
    p = p * r + 1.0
    return p * power


def exp_of(x):
    """Return exp(x) for x <= 0, by ``exp_single`` for float32 and by ``exp_double`` for float64."""


@overload(exp_of)
def _exp_of(x):
    return (lambda x: exp_single(x)) if x == nb.float32 else (lambda x: exp_double(x))
