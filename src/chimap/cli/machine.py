"""What runs here: versions, the BLAS, cores and memory."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import TYPE_CHECKING

from chimap.cli import process, show

if TYPE_CHECKING:
    from chimap._types import JSON

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "safetensors")
_OPTIONAL_PACKAGES = ("torch", "dask", "pyarrow", "zarr", "h5py", "opencv-python-headless", "onnx")


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
        "recommended_coretype": process.recommended_coretype(),
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
    installed = {}
    for name in names:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
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
    installed = _versions(_PACKAGES)
    parts = [f"Python {platform.python_version()}", f"{platform.system()} {platform.machine()}"]
    parts += [f"{name} {installed[name]}" if name in installed else f"no {name}" for name in _PACKAGES]
    try:
        origin = json.loads(distribution("chimap").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    commit = origin.get("vcs_info", {}).get("commit_id")
    return ", ".join([*parts, *([f"commit {commit[:12]}"] if commit else [])])
