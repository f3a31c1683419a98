"""Backends: the CPU of this machine, or a torch device."""

from __future__ import annotations

import importlib.util
import re

from chimap._validation import ParameterError
from chimap.backends.base import Backend
from chimap.backends.host import HOST


def on_host(device: str) -> bool:
    """Whether the compiled loops and BLAS do the work, which is the case for device "cpu"."""
    return device == "cpu"


def backend_of(device: str) -> Backend:
    """Return the backend for a device."""
    if on_host(device):
        return HOST
    from chimap.backends.torch import Torch

    return Torch(device)


def check_device(device: object) -> None:
    """Check that ``device`` names a device of this machine.

    Raises ValueError for any other value, and ImportError if torch is needed but missing.
    """
    if not isinstance(device, str):
        raise ParameterError("device", device, "'cpu', 'cuda' or 'cuda:1'")
    if on_host(device):
        return
    if not re.fullmatch(r"cuda(:\d+)?", device):
        raise ParameterError("device", device, "'cpu', 'cuda' or 'cuda:1'")
    if importlib.util.find_spec("torch") is None:
        raise ImportError(f"device={device!r} needs torch: pip install 'chimap[torch]', or use device='cpu'.")
    import torch

    if not torch.cuda.is_available() or torch.device(device).index not in (
        None,
        *range(torch.cuda.device_count()),
    ):
        n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise ValueError(
            f"device={device!r}: torch {torch.__version__} finds {n_devices} CUDA device(s) here. Use device='cpu', "
            "or a build of torch for this machine's device."
        )
