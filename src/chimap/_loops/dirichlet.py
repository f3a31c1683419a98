"""Whitened logarithms of histograms."""

import numba as nb

from chimap._loops._compile import EXACT, SUMS
from chimap._loops.elementary import log, log_single


@nb.njit(**SUMS)
def _sum(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@nb.njit(**SUMS)
def _product(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@nb.njit(**EXACT)
def _offset_logs(x, total, offset, out):
    """Write out = ln(x / total + offset).

    There is a loop for each width: a choice inside a loop keeps it from being vectorised.
    """
    if x.itemsize == 4:
        for i in range(x.shape[0]):
            out[i] = log_single(x[i] / total + offset)
    else:
        for i in range(x.shape[0]):
            out[i] = log(x[i] / total + offset)


@nb.njit(**EXACT)
def dirichlet_features(X, offset, scale, mean, common, out, sums):
    """Write out = z + common (scale . z) scale with z = scale (ln(x / |x|_1 + offset) - mean).

    ``sums`` gets |x|_1 of each row; an empty row is not divided. All arrays have one floating type (sums and products
    of rows are accumulated in float64); scale and mean are (bins,). ``offset`` is a normal number, so that every
    logarithm is finite.
    """
    d, kind = X.shape[1], X.dtype.type
    for r in range(X.shape[0]):
        o = out[r]
        sums[r] = _sum(X[r])
        _offset_logs(X[r], sums[r] if sums[r] > 0 else kind(1), offset, o)
        for i in range(d):
            o[i] = scale[i] * (o[i] - mean[i])
        shared = kind(common * _product(scale, o))
        for i in range(d):
            o[i] += shared * scale[i]
