"""The process and the machine that it runs on: prepared before NumPy is loaded, and described."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from chimap.cli import show

if TYPE_CHECKING:
    from chimap._types import JSON

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "safetensors")
_OPTIONAL_PACKAGES = ("torch", "dask", "pyarrow", "zarr", "h5py", "opencv-python-headless", "onnx")
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


def describe() -> tuple[JSON, dict[str, str | None]]:
    """Return facts about the installation as plain values, and as lines for the terminal."""
    import numpy as np
    import scipy.linalg  # noqa: F401  loads a second BLAS
    from threadpoolctl import threadpool_info

    from chimap import _threads
    from chimap._version import __version__

    np.ones((2, 2)) @ np.ones((2, 2))
    pools = [p for p in threadpool_info() if p["user_api"] == "blas"]
    keys = ("internal_api", "version", "architecture", "num_threads")
    facts: JSON = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "packages": _versions(_PACKAGES),
        "optional": _versions(_OPTIONAL_PACKAGES),
        "blas": [{key: pool.get(key) for key in keys} for pool in pools],
        "cores": _threads.available(),
        "memory_bytes": _total_memory(),
        "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE"),
        "recommended_coretype": recommended_coretype(),
    }
    return facts, {
        "chimap": f"{facts['version']}, Python {facts['python']} on {facts['platform']} ({facts['machine']})",
        "packages": _listed_versions(facts["packages"]),
        "optional": _listed_versions(facts["optional"]) or "none installed",
        "BLAS": "\n".join(dict.fromkeys(_blas_line(p) for p in facts["blas"])) or "unknown",
        "advice": _advice(facts["recommended_coretype"]),
        "cores": str(facts["cores"]),
        "memory": show.size(facts["memory_bytes"]),
    }


def _versions(names: tuple[str, ...]) -> dict[str, str]:
    from importlib import metadata

    installed = {}
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def _listed_versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in versions.items())


def _blas_line(pool: JSON) -> str:
    name = f"{pool['internal_api']} {pool['version']}"
    return f"{name}, kernels {pool['architecture']}, {pool['num_threads']} threads"


def _advice(coretype: str | None) -> str | None:
    """Return advice for programs that import the package; the command line sets the variable itself."""
    if coretype is None:
        return None
    return (
        f"in your programs, set OPENBLAS_CORETYPE={coretype} before importing NumPy: this is up to twice as fast on "
        "new processors (chimap commands set it themselves)"
    )


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def installation() -> str:
    """Return a line such as 'Python 3.11.7, Linux x86_64, numpy 2.1.0, ...', without importing the packages.

    The line ends with the commit if it is known.
    """
    from importlib import metadata

    installed = _versions(_PACKAGES)
    parts = [f"Python {platform.python_version()}", f"{platform.system()} {platform.machine()}"]
    parts += [f"{name} {installed[name]}" if name in installed else f"no {name}" for name in _PACKAGES]
    try:
        origin = json.loads(metadata.distribution("chimap").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {}
    commit = origin.get("vcs_info", {}).get("commit_id")
    return ", ".join([*parts, *([f"commit {commit[:12]}"] if commit else [])])
