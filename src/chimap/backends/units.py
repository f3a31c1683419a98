"""Detection of units that multiply bfloat16, and the meaning of precision="auto"."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from chimap import _onednn
from chimap.backends import on_host

_CPUINFO = Path("/proc/cpuinfo")
_UNITS = ("amx_bf16", "avx512_bf16")
_LEAST_CAPABILITY = (8, 0)  # compute capability of a CUDA device: Ampere or later


def automatic_precision(device: str) -> str:
    """Return the meaning of precision="auto" on a device: "bfloat16" if its units make that faster, else "float32"."""
    return "bfloat16" if has_bfloat16_units(device) else "float32"


def has_bfloat16_units(device: str = "cpu") -> bool:
    """Whether bfloat16 is multiplied faster than float32 on a device: by oneDNN on a CPU, and by torch on others."""
    if on_host(device):
        return not processor_flags().isdisjoint(_UNITS) and _onednn.multiplies()
    if device.partition(":")[0] != "cuda":
        return False  # torch's other devices tell no capability
    import torch

    return bool(torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY)


@lru_cache(maxsize=1)
def processor_flags() -> frozenset[str]:
    """Return the features of this processor by their Linux names; empty on other systems."""
    try:
        lines = _CPUINFO.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
