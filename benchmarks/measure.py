"""What the benchmarks share: data, repeated timings, bounds, child processes and their peak memory, results."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from chimap.cli.machine import prepare_blas

prepare_blas()  # before NumPy loads its BLAS: the same setting as on the command line, for all competitors

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_file(name: str) -> Path:
    """Return the path of a data set in the shared folder, or exit with a message that says what is missing."""
    path = DATA / name
    if not path.is_file():
        sys.exit(f"skipped: this benchmark reads {path}, which is not here.")
    return path


def mnist(normalize: bool = False) -> tuple[np.ndarray, ...]:
    """Return (X, y, X_test, y_test) with float32 pixels."""
    with np.load(data_file("mnist.npz")) as z:
        X, y, Xt, yt = (z[k] for k in ("x_train", "y_train", "x_test", "y_test"))
    X, Xt = (a.reshape(len(a), -1).astype(np.float32) for a in (X, Xt))
    if normalize:
        X, Xt = X / X.sum(1, keepdims=True), Xt / Xt.sum(1, keepdims=True)
    return X, y, Xt, yt


def csr_of(z: Any, dtype: type = np.float32) -> sp.csr_matrix:
    """Return the CSR matrix whose arrays a file holds as data, indices, indptr and shape."""
    return sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])).astype(dtype)


def counts(name: str, labels: bool = False) -> sp.csr_matrix | tuple[sp.csr_matrix, np.ndarray]:
    """Return a CSR matrix of float64 counts with l1-normalised rows; with ``labels``, return (X, y)."""
    with np.load(data_file(name)) as z:
        X = csr_of(z, np.float64)
        y = z["y"].astype(np.int64) if labels else None
    sums = np.asarray(X.sum(axis=1)).ravel()
    X = (sp.diags(1 / np.where(sums > 0, sums, 1)) @ X).tocsr()
    return X if y is None else (X, y)


def seconds(call: Callable[[], object], repeats: int = 7) -> np.ndarray:
    """Return the sorted wall seconds of repeated calls, after one call that is not counted."""
    call()
    times = np.empty(repeats)
    for i in range(repeats):
        began = time.perf_counter()
        call()
        times[i] = time.perf_counter() - began
    return np.sort(times)


class Spread(NamedTuple):
    """A figure, and the range that the quartiles of its repeats span."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:6.2f}  [{self.low:.2f}, {self.high:.2f}]"


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> Spread:
    """Return the ratio of two medians, with the range that the quartiles span."""
    low = np.quantile(numerator, 0.25) / np.quantile(denominator, 0.75)
    high = np.quantile(numerator, 0.75) / np.quantile(denominator, 0.25)
    return Spread(*map(float, (np.median(numerator) / np.median(denominator), low, high)))


def report(question: str, value: object, target: str) -> None:
    """Print one line for people, and append one line of JSON for ``run.py`` to the file named by BENCHMARK_LINES."""
    print(f"{question:<72} {value!s:>22}   target {target}", flush=True)
    if lines := os.environ.get("BENCHMARK_LINES"):
        found = {"question": question.strip(), "shown": " ".join(str(value).split()), "target": target}
        if isinstance(value, Spread):
            found |= value._asdict()
        with open(lines, "a") as file:
            print(json.dumps(found), file=file)


_GEMM = """
import json, time, numpy as np
A, B, C = (np.full((4096, 4096), 0.5, np.float32) for _ in range(3))
{product}
times = []
for _ in range(6):
    began = time.perf_counter()
    call()
    times.append(time.perf_counter() - began)
print(json.dumps(2 * 4096**3 / sorted(times)[2]))
"""
_NUMPY = "call = lambda: np.matmul(A, B, out=C)"
_TORCH = "import torch; A, B, C = map(torch.from_numpy, (A, B, C)); call = lambda: torch.mm(A, B, out=C)"
_CORETYPES = ("Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids")


def sgemm_rates() -> dict[str, float]:
    """Return operations per second of a float32 product of order 4096, the third best of six.

    The rates are those of NumPy as installed, of each core type that its OpenBLAS can be set to and this machine can
    run, and of torch if it is installed.
    """
    ways = {"numpy": (_NUMPY, None), "torch": (_TORCH, None)}
    ways |= {f"numpy, {core}": (_NUMPY, core) for core in _CORETYPES}
    found = {}
    for name, (product, core) in ways.items():
        environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        if core:
            environment["OPENBLAS_CORETYPE"] = core
        code = [sys.executable, "-c", _GEMM.format(product=product)]
        done = subprocess.run(code, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:  # not every processor has the instructions of every core type
            found[name] = json.loads(done.stdout)
    return found


def processor_seconds(arguments: list[str]) -> float:
    """Return the processor time, user and system, of a command that must succeed."""
    # as in an installation: without bytecode files, the sources would be compiled at every start
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def child(code: str) -> dict[str, Any]:
    """Run Python code that prints JSON in a new process, and add its ``peak_bytes``, measured from outside."""
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
