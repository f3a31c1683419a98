"""What the benchmarks share: data, repeats, child processes with their peak memory, and one line of results."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from chimap.cli._blas import prepare_blas

prepare_blas()  # before NumPy loads its BLAS: what the command line does, here for all sides

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_file(name: str) -> Path:
    """A data set of the shared folder, or an exit that says what is missing."""
    path = DATA / name
    if not path.is_file():
        sys.exit(f"skipped: this benchmark reads {path}, which is not here.")
    return path


def mnist(normalize: bool = False) -> tuple[np.ndarray, ...]:
    """(X, y, X_test, y_test), float32 pixels."""
    with np.load(data_file("mnist.npz")) as z:
        X, y, Xt, yt = (z[k] for k in ("x_train", "y_train", "x_test", "y_test"))
    X, Xt = (a.reshape(len(a), -1).astype(np.float32) for a in (X, Xt))
    if normalize:
        X, Xt = X / X.sum(1, keepdims=True), Xt / Xt.sum(1, keepdims=True)
    return X, y, Xt, yt


def counts(name: str) -> sp.csr_matrix:
    """A CSR matrix of counts, float64, rows l1-normalised."""
    with np.load(data_file(name)) as z:
        X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])).astype(np.float64)
    sums = np.asarray(X.sum(axis=1)).ravel()
    return sp.diags(1 / np.where(sums > 0, sums, 1)) @ X


def seconds(call: Callable[[], object], repeats: int = 7) -> np.ndarray:
    """Sorted wall seconds of repeated calls, after one that is not counted."""
    call()
    times = np.empty(repeats)
    for i in range(repeats):
        began = time.perf_counter()
        call()
        times[i] = time.perf_counter() - began
    return np.sort(times)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> str:
    """Ratio of medians, with the range that the quartiles span."""
    low = np.quantile(numerator, 0.25) / np.quantile(denominator, 0.75)
    high = np.quantile(numerator, 0.75) / np.quantile(denominator, 0.25)
    return f"{np.median(numerator) / np.median(denominator):6.2f}  [{low:.2f}, {high:.2f}]"


def report(question: str, value: object, target: str) -> None:
    """One line for people."""
    print(f"{question:<72} {value!s:>22}   target {target}", flush=True)


def child(code: str) -> dict[str, object]:
    """Run Python code in a new process that prints JSON. Adds "peak_bytes", seen from outside it."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        peak = 0
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            try:
                for line in status.read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        peak = max(peak, int(line.split()[1]) * 1024)
            except (FileNotFoundError, ProcessLookupError):
                break
            time.sleep(0.02)
        out = process.stdout.read() if process.stdout else ""
    if process.returncode:
        sys.exit(f"the child process failed with {process.returncode}:\n{out}")
    return {**json.loads(out), "peak_bytes": peak}
