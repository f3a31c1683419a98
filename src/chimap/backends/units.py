"""Detection of units that multiply bfloat16, and the meaning of precision="auto"."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from chimap.backends import on_host

_CPUINFO = Path("/proc/cpuinfo")
_LEAST_CAPABILITY = (8, 0)  # compute capability of a CUDA device: Ampere or later


def automatic_precision(device: str) -> str:
    """Return the meaning of precision="auto" on a device: "bfloat16" if its units make that faster, else "float32"."""
    return "bfloat16" if has_bfloat16_units(device) else "float32"


def has_bfloat16_units(device: str = "cpu") -> bool:
    """Whether torch multiplies bfloat16 faster than float32 on a device.

    It does on AMX. AVX-512's instructions for bfloat16 were measured: with them torch reaches 134 GFLOP/s, whereas BLAS
    multiplies float32 at 177.
    """
    if importlib.util.find_spec("torch") is None:
        return False
    if on_host(device):
        return "amx_bf16" in processor_flags()
    import torch

    return bool(torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY)


def processor_flags() -> frozenset[str]:
    """Return the features of this processor by their Linux names; empty on other systems."""
    try:
        lines = _CPUINFO.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
