"""Memory budgets: how they are written, how much of one a fit may use, and the release of freed blocks."""

from __future__ import annotations

import ctypes
import numbers

import numpy as np

from chimap._validation import ParameterError

_MMAP_THRESHOLD = -3  # parameter of mallopt, from malloc.h of glibc
LIBRARY_BYTES = 2**28  # the interpreter with numpy, scipy, scikit-learn and numba (262 MiB on Linux)
_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "TB": 10**12,
    "TIB": 2**40,
    "T": 2**40,
}


def parse_memory(memory: str | int | float) -> int:
    """Return the bytes of a memory budget: a number of bytes, or a text such as "512MiB", "1.5 GB", "2g".

    >>> parse_memory("1GiB")
    1073741824
    """
    if isinstance(memory, numbers.Real) and not isinstance(memory, bool) and memory > 0:
        return int(memory)
    text = str(memory).strip()
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text[len(digits) :].strip().upper()
    try:
        size = float(digits) * _UNITS[unit]
    except (ValueError, KeyError):
        size = float("nan")
    if not (np.isfinite(size) and size > 0):
        raise ParameterError("memory", memory, "a number of bytes or a size such as '512MiB' or '2GiB'")
    return int(size)


def format_bytes(n: float) -> str:
    """Return a size in readable units: 1536 -> '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"


def room_in(budget: int) -> int:
    """Return the bytes of a budget that a fit may use, which is what the libraries leave.

    A budget of less than twice the libraries leaves as many bytes as the libraries take, at most all of it: so small a
    budget can only mean the fit's share besides them.

    >>> [room_in(mib * 2**20) // 2**20 for mib in (64, 256, 300, 512, 1024)]
    [64, 256, 256, 256, 768]
    """
    return max(min(budget, LIBRARY_BYTES), budget - LIBRARY_BYTES)


def budget_for(needed: float) -> int:
    """Return the smallest budget that leaves ``needed`` bytes to a fit.

    >>> [budget_for(mib * 2**20) // 2**20 for mib in (64, 256, 300)]
    [64, 256, 556]
    """
    return int(needed) + (LIBRARY_BYTES if needed > LIBRARY_BYTES else 0)


def whole_mebibytes(n_bytes: float) -> str:
    """Return a size that is not below ``n_bytes``, in the form of a budget.

    >>> whole_mebibytes(1.5 * 2**20)
    '2MiB'
    """
    return f"{int(-(-n_bytes // 2**20))}MiB"


def keep_no_large_blocks() -> None:
    """Make the allocator of glibc return every freed block of a MiB or more to the system, in this process.

    By default it comes to keep freed blocks of up to 32 MiB for later allocations. The stages of a fit have matrices of
    different sizes, so that the blocks of a stage stay resident besides those of the next (100 to 200 MiB).
    """
    try:
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 2**20)
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return
