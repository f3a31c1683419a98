"""How the loops are compiled."""

import warnings

import numba
from numba.core.caching import FunctionCache

if numba.config.DISABLE_JIT:
    raise ImportError(
        "chimap's loops are compiled, and NUMBA_DISABLE_JIT keeps numba from compiling. Unset this variable."
    )


def _can_be_kept() -> bool:
    """Whether compiled loops can be written to disk: beside the package, or in the user's folder of caches."""
    try:
        FunctionCache(_can_be_kept)
    except RuntimeError:
        warnings.warn(
            "compiled loops cannot be kept on disk, so that every start compiles them again: no folder can be written "
            "to. Set NUMBA_CACHE_DIR to one that can.", stacklevel=2,
        )  # fmt: skip
        return False
    return True


CACHE = _can_be_kept()

SUMS = {
    "cache": CACHE,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
"""For reductions: sums may be reassociated, which is what lets them use vector registers."""

EXACT = {"cache": CACHE, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}
"""For everything else: the range reductions of the logarithm and the cosine rely on the order of operations."""

INLINED = {**EXACT, "forceinline": True}
"""For long formulas inside of loops: the compiler would call them, and not vectorise the loop."""
