"""Units that multiply bfloat16: whether a processor or a device has them, and what precision="auto" is there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from chimap.backends import on_host

_CPUINFO = Path("/proc/cpuinfo")
_LEAST_CAPABILITY = (8, 0)  # of a CUDA device: from Ampere on


def automatic_precision(device: str) -> str:
    """What precision="auto" stands for on a device: "bfloat16" where units multiply it faster, else "float32"."""
    return "bfloat16" if has_bfloat16_units(device) else "float32"


def has_bfloat16_units(device: str = "cpu") -> bool:
    """Whether products of bfloat16 are faster than of float32 on a device, by torch.

    They are on AMX. AVX-512's instructions for bfloat16 were measured: torch reaches 134 GFLOP/s by them where
    BLAS multiplies float32 at 177.
    """
    if importlib.util.find_spec("torch") is None:
        return False
    if on_host(device):
        return "amx_bf16" in processor_flags()
    import torch

    return bool(torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY)


def processor_flags() -> frozenset[str]:
    """What this processor can do, as Linux names it; empty on other systems."""
    try:
        lines = _CPUINFO.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
