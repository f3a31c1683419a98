"""Compiler options of the loops."""

import warnings

import numba
from numba.core.caching import FunctionCache

if numba.config.DISABLE_JIT:
    raise ImportError(
        "chimap needs its loops compiled, but NUMBA_DISABLE_JIT keeps numba from compiling. Unset this variable."
    )


def _can_be_kept() -> bool:
    """Return whether compiled loops can be written to disk: beside the package, or in the user's cache folder."""
    try:
        FunctionCache(_can_be_kept)
    except RuntimeError:
        warnings.warn(
            "compiled loops cannot be kept on disk, because no cache folder is writable: every start compiles them "
            "again. Set NUMBA_CACHE_DIR to a writable folder.",
            stacklevel=2,
        )
        return False
    return True


CACHE = _can_be_kept()

SUMS = {"cache": CACHE, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
"""Options for reductions: sums may be reassociated, which lets them use vector registers."""

EXACT = {"cache": CACHE, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}
"""Options for all other loops: the range reductions of the logarithm and the cosine rely on the order of operations."""

INLINED = {**EXACT, "forceinline": True}
"""Options for long formulas inside loops, which the compiler would otherwise call, without vectorising the loop."""
