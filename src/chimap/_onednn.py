"""Products of bfloat16 matrices that are accumulated and returned in float32, by the C interface of oneDNN 3.

oneDNN uses the processor's units for bfloat16, AMX or AVX-512, whichever it has. No other way was found that is faster
than float32 and does not round the result. On two cores of an AMD EPYC (Zen 4), where products of float32 reach 180 to
200 GFLOP/s:

- ``torch.mm(..., out_dtype=torch.float32)`` and ``torch.addmm`` of that kind raise NotImplementedError on a CPU;
- ``torch.mm`` of bfloat16 reaches 370 GFLOP/s, but rounds its results, sums over many rows, to 8 bits;
- ``torch.mm`` of float32 with ``fp32_precision="bf16"`` rounds its input at each product: 195 GFLOP/s;
- ``cblas_gemm_bf16bf16f32`` of MKL, which torch exports too: 160 to 180 GFLOP/s;
- ``jax.lax.dot_general`` with ``preferred_element_type=float32``: 160 to 175 GFLOP/s;
- oneDNN's matmul from bfloat16 to float32: 380 to 405 GFLOP/s.

bfloat16 numbers are held as uint16, the upper halves of float32.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import numpy as np

from chimap._errors import InputError

_CPUINFO = Path("/proc/cpuinfo")
_UNITS = ("amx_bf16", "avx512_bf16")
_WHEEL, _FILE = "onednn-cpu-gomp", "libdnnl.so.3"
# Values of enumerations of dnnl_types.h and dnnl_common_types.h, version 3.
_MAJOR, _SEQUENTIAL, _OPENMP = 3, 1, 2
_CPU, _IN_ORDER, _OF_CALLER = 1, 1, 1
_BFLOAT16, _FLOAT32, _AS_OUTPUT = 2, 3, 0
_SCRATCHPAD_DESCRIPTOR = 136
_SOURCE, _WEIGHTS, _DESTINATION, _SCRATCHPAD = 1, 33, 17, 80
_MOST_SHAPES = 64  # products whose programs, compiled for their shape, are kept
_here = threading.local()
_lock = threading.Lock()
_engines: list[ctypes.c_void_p] = []


class OneDnnError(RuntimeError):
    """A function of oneDNN refused its arguments."""


class _Version(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("major", "minor", "patch")),
        ("commit", ctypes.c_char_p),
        *((name, ctypes.c_uint) for name in ("cpu_runtime", "gpu_runtime")),
    )


class _Argument(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("memory", ctypes.c_void_p))


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """Return oneDNN 3, of the wheel or of the system; None if there is none that can run on the caller's thread."""
    for path in _paths():
        try:
            # Bound to its own OpenMP, whose threads are set here, even if another one is global.
            found = ctypes.CDLL(path, mode=ctypes.DEFAULT_MODE | getattr(os, "RTLD_DEEPBIND", 0))
        except OSError:
            continue
        found.dnnl_version.restype = ctypes.POINTER(_Version)
        version = found.dnnl_version().contents
        if version.major == _MAJOR and version.cpu_runtime in (_SEQUENTIAL, _OPENMP):
            found.dnnl_set_primitive_cache_capacity(_MOST_SHAPES)
            return found
    return None


def has_bfloat16_units() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32, and oneDNN does so."""
    return not processor_flags().isdisjoint(_UNITS) and multiplies()


@lru_cache(maxsize=1)
def processor_flags() -> frozenset[str]:
    """Return the features of this processor by their Linux names; empty on other systems."""
    try:
        lines = _CPUINFO.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


@lru_cache(maxsize=1)
def multiplies() -> bool:
    """Whether oneDNN is there and has a product of bfloat16 for this processor."""
    if library() is None:
        return False
    try:
        _Matmul(2, 2, 2, (2, 1), 2, 2, add=True)
    except OneDnnError:
        return False
    return True


def _paths() -> Iterator[str]:
    try:
        files = metadata.distribution(_WHEEL).files or []
    except metadata.PackageNotFoundError:
        files = []
    yield from (str(file.locate()) for file in files if file.name == _FILE)
    of_system = ctypes.util.find_library("dnnl")
    if of_system is not None:
        yield of_system


def multiply(A: np.ndarray, B: np.ndarray, out: np.ndarray, *, add: bool = False) -> None:
    """Write out = A B on the caller's thread; with ``add``, add that to out.

    A (n, k) and B (k, m) are bfloat16 numbers as uint16: A row by row or column by column, either of which lie side by
    side, and B row by row. ``out`` (n, m) is float32, row by row.
    """
    (n, k), m = A.shape, B.shape[1]
    if B.shape[0] != k or out.shape != (n, m):
        raise InputError(f"A B of {A.shape} and {B.shape} is {(n, m)}; got an array of {out.shape}.")
    steps = tuple(stride // A.itemsize for stride in A.strides)
    matmul = _matmul(n, k, m, steps, B.strides[0] // B.itemsize, out.strides[0] // out.itemsize, add)
    with _one_thread():
        matmul.run(A.ctypes.data, B.ctypes.data, out.ctypes.data)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep products of this thread on it: OpenMP counts threads for each thread that calls."""
    set_threads = getattr(library(), "omp_set_num_threads", None)
    if set_threads is None:
        yield
        return
    before = library().omp_get_max_threads()  # type: ignore[union-attr]
    set_threads(1)
    try:
        yield
    finally:
        set_threads(before)


class _Matmul:
    """The product of A (n, k) and B (k, m) with given steps, in numbers, between entries of A and rows of B and out."""

    def __init__(self, n: int, k: int, m: int, A_steps: tuple[int, ...], B_step: int, out_step: int, add: bool):
        of_A = _descriptor((n, k), A_steps, _BFLOAT16)
        of_B = _descriptor((k, m), (B_step, 1), _BFLOAT16)
        of_out = _descriptor((n, m), (out_step, 1), _FLOAT32)
        sum_of_outputs, attributes = _made("post_ops_create"), _made("primitive_attr_create")
        if add:
            _call("post_ops_append_sum", sum_of_outputs, ctypes.c_float(1), ctypes.c_int32(0), _AS_OUTPUT)
        _call("primitive_attr_set_post_ops", attributes, sum_of_outputs)
        # Threads that run one primitive at a time would share a scratchpad of the library.
        _call("primitive_attr_set_scratchpad_mode", attributes, _OF_CALLER)
        plan = _made("matmul_primitive_desc_create", _engine(), of_A, of_B, None, of_out, attributes)
        self._primitive = _made("primitive_create", plan)
        scratchpad = ctypes.c_void_p(_asked("primitive_desc_query_md", plan, _SCRATCHPAD_DESCRIPTOR, 0))
        self._scratchpad_bytes = _asked("memory_desc_get_size", scratchpad)
        self._descriptors = {_SOURCE: of_A, _WEIGHTS: of_B, _DESTINATION: of_out, _SCRATCHPAD: scratchpad}
        made = [("primitive", self._primitive), ("primitive_desc", plan), ("primitive_attr", attributes)]
        made += [("post_ops", sum_of_outputs), *(("memory_desc", one) for one in (of_A, of_B, of_out))]
        weakref.finalize(self, _destroy, made).atexit = False

    def run(self, *addresses: int) -> None:
        """Multiply the matrices at the addresses of A and B into that of out."""
        places = (*addresses, _scratchpad(self._scratchpad_bytes))
        memories = [
            _made("memory_create", descriptor, _engine(), ctypes.c_void_p(place))
            for descriptor, place in zip(self._descriptors.values(), places, strict=True)
        ]
        pairs = zip(self._descriptors, memories, strict=True)
        arguments = (_Argument * len(memories))(*(_Argument(*pair) for pair in pairs))
        try:
            _call("primitive_execute", self._primitive, _stream(), len(memories), arguments)
            _call("stream_wait", _stream())
        finally:
            _destroy([("memory", memory) for memory in memories])


_matmul = lru_cache(maxsize=_MOST_SHAPES)(_Matmul)


def _engine() -> ctypes.c_void_p:
    """Return the one engine: what one engine makes does not work with what another makes."""
    with _lock:
        if not _engines:
            _engines.append(_made("engine_create", _CPU, ctypes.c_size_t(0)))
    return _engines[0]


def _stream() -> ctypes.c_void_p:
    """Return the stream of this thread."""
    if not hasattr(_here, "stream"):
        _here.stream = _made("stream_create", _engine(), _IN_ORDER)
    stream: ctypes.c_void_p = _here.stream
    return stream


def _scratchpad(size: int) -> int:
    """Return the address of at least so many bytes that belong to this thread."""
    if not hasattr(_here, "scratchpad") or _here.scratchpad.size < size:
        _here.scratchpad = np.empty(size, np.uint8)
    return int(_here.scratchpad.ctypes.data)


def _descriptor(shape: tuple[int, ...], steps: tuple[int, ...], kind: int) -> ctypes.c_void_p:
    pair = ctypes.c_int64 * 2
    return _made("memory_desc_create_with_strides", 2, pair(*shape), kind, pair(*steps))


def _made(name: str, *arguments: object) -> ctypes.c_void_p:
    """Return the object that a function of oneDNN makes."""
    made = ctypes.c_void_p()
    _call(name, ctypes.byref(made), *arguments)
    return made


def _call(name: str, *arguments: object) -> None:
    status = getattr(library(), f"dnnl_{name}")(*arguments)
    if status:
        raise OneDnnError(f"dnnl_{name} of oneDNN ended with status {status}.")


def _destroy(made: list[tuple[str, ctypes.c_void_p]]) -> None:
    """Destroy objects, given the names of their kinds."""
    for kind, one in made:
        _call(f"{kind}_destroy", one)


def _asked(name: str, *arguments: object) -> int:
    """Return the number or address that a function of oneDNN returns."""
    function = getattr(library(), f"dnnl_{name}")
    function.restype = ctypes.c_size_t
    return int(function(*arguments))
