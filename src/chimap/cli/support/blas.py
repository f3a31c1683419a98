"""Environment variables for the BLAS, to be set before NumPy loads it."""

from __future__ import annotations

import os
from pathlib import Path

_NEEDED = {"avx512f", "avx512vl", "avx512dq", "avx512bw"}


def prepare_blas() -> None:
    """Make OpenBLAS use its AVX-512 kernels and put its idle threads to sleep.

    Variables that the user has set are kept.
    """
    coretype = recommended_coretype()
    if coretype is not None:
        os.environ.setdefault("OPENBLAS_CORETYPE", coretype)
    # After each product the threads of the pool spin for 2^26 cycles (some 20 ms) and slow down the loops that run
    # next on other threads. 2^4, the smallest value that OpenBLAS accepts, sends them to sleep at once.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def recommended_coretype(cpuinfo: str = "/proc/cpuinfo") -> str | None:
    """Return "SkylakeX" if the processor has the AVX-512 instructions that those kernels need, else None.

    OpenBLAS chooses its kernels by the model number of the processor. On models newer than itself it falls back to
    AVX2, at half the rate, although they have all instructions of its AVX-512 kernels.
    """
    try:
        lines = Path(cpuinfo).read_text(errors="replace").splitlines()
    except OSError:  # not Linux: leave the choice to OpenBLAS
        return None
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return "SkylakeX" if set(flags) >= _NEEDED else None
