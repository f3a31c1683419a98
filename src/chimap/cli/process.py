"""What a process is given before NumPy is loaded: variables for the BLAS, and usable standard streams."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
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


PIPE_CLOSED = 128 + 13  # the exit code that shells give a program ended by SIGPIPE


class _ClosedOutput(io.TextIOBase):
    """Stand-in for a standard output that the shell has closed: every write raises an error."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "closed, so there is nowhere to write the result", "stdout")


def prepare_streams() -> None:
    """Make sure that both streams exist and accept any character.

    File descriptors of closed streams are reserved first: a file opened under one of them would receive the output
    meant for the stream.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # an ASCII terminal shows "?" instead of failing
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def discard_output() -> None:
    """Discard buffered output, so that the interpreter does not fail to flush it at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
