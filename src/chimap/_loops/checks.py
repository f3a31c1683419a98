"""Checks of values."""

import numba as nb
import numpy as np

from chimap._loops._compile import CACHE


@nb.njit(cache=CACHE, nogil=True, error_model="numpy")
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
