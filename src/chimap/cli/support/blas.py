"""Environment of the BLAS, to be set before NumPy loads it."""

from __future__ import annotations

import os
from pathlib import Path

_NEEDED = {"avx512f", "avx512vl", "avx512dq", "avx512bw"}


def prepare_blas() -> None:
    """Have OpenBLAS use its AVX-512 kernels, and its threads sleep. Variables that the user has set stay."""
    coretype = recommended_coretype()
    if coretype is not None:
        os.environ.setdefault("OPENBLAS_CORETYPE", coretype)
    # The threads of a pool spin for 2^26 cycles (some 20 ms) after each product, against the loops that come
    # next on other threads; 2^4, the least that OpenBLAS takes, sends them to sleep at once.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def recommended_coretype(cpuinfo: str = "/proc/cpuinfo") -> str | None:
    """ "SkylakeX" where the processor has the AVX-512 instructions of these kernels, else None.

    OpenBLAS chooses its kernels by the model number of the processor and falls back to AVX2 (half the rate) on
    models newer than itself, although they have all that its AVX-512 kernels need.
    """
    try:
        lines = Path(cpuinfo).read_text(errors="replace").splitlines()
    except OSError:  # not Linux: leave the choice to OpenBLAS
        return None
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return "SkylakeX" if set(flags) >= _NEEDED else None
