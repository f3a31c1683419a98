"""Memory budgets: how they are written, how much of one a fit may use, and the release of freed blocks.

The budget "auto" is 1 GiB, doubled as long as a fit needs more, up to half of the memory that is free. So what a fit
returns does not depend on the memory of the machine, as long as that holds it.
"""

from __future__ import annotations

import ctypes
import numbers
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from chimap._validation import ParameterError, is_auto

_MMAP_THRESHOLD = -3  # parameter of mallopt, from malloc.h of glibc
LIBRARY_BYTES = 2**28  # the interpreter with numpy, scipy, scikit-learn and numba (262 MiB on Linux)
_LEAST_AUTO = 2**30  # bytes of the budget "auto", where a fit does not need more
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
    """Return the bytes of a memory budget: a number of bytes, a text such as "512MiB", "1.5 GB", "2g", or "auto".

    >>> parse_memory("1GiB"), parse_memory("auto")
    (1073741824, 1073741824)
    """
    if is_auto(memory):
        return _LEAST_AUTO
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
        raise ParameterError("memory", memory, "'auto', a number of bytes, or a size such as '512MiB' or '2GiB'")
    return int(size)


def budgets(memory: str | int) -> Iterator[str | int]:
    """Yield the budgets in which a fit is tried, the smallest first: those of "auto", or the one that is given."""
    if not is_auto(memory):
        yield memory
        return
    size = _LEAST_AUTO
    while size == _LEAST_AUTO or size <= free_bytes() / 2:
        yield f"{size >> 30}GiB"
        size *= 2


def free_bytes(root: Path = Path("/")) -> float:
    """Return the bytes that this process can still take: of the machine, and of the control groups that it is in.

    root: where the files of the system are. A system that does not say what is free has half of its memory free.
    """
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        free = next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        try:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
        except (AttributeError, ValueError, OSError):  # Windows
            return 2.0 * _LEAST_AUTO
    return min([free, *_left_in_groups(root)])


def _left_in_groups(root: Path) -> Iterator[float]:
    """Yield what the limit of each control group, of version 1 or 2, leaves; files that are read again count as free.

    In a container, the groups that the process is in may be mounted as the uppermost ones.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for kinds, path in (line.split(":", 2)[1:] for line in groups if line.count(":") >= 2):
        if kinds and "memory" not in kinds.split(","):
            continue
        top = root / ("sys/fs/cgroup/memory" if kinds else "sys/fs/cgroup")
        limit, used, files = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            if kinds
            else ("memory.max", "memory.current", "inactive_file")
        )
        below = Path(path.strip("/"))
        for folder in dict.fromkeys([top / below, *(top / parent for parent in below.parents), top]):
            try:
                statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                taken = int((folder / used).read_text()) - int(statistics.get(files, 0))
                yield max(0.0, float((folder / limit).read_text()) - taken)
            except (OSError, ValueError):  # not mounted here, or "max", no limit
                continue


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
