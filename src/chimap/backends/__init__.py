"""Backends: the CPU of this machine, or a torch device."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from chimap._catalogue import at_address
from chimap._errors import InputError, MissingPackageError
from chimap._messages import Message
from chimap._validation import ParameterError
from chimap.backends.base import Backend
from chimap.backends.host import HOST


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device: how its backend is made, and how it is checked that this machine has the device.

    ``check`` raises ValueError for a device that is not there, and ImportError for a library that is missing.
    """

    backend: Callable[[str], Backend]
    check: Callable[[str], None]


def _host(device: str) -> Backend:
    return HOST


def _torch(device: str) -> Backend:
    return cast(Callable[[str], Backend], at_address("chimap.backends.torch:Torch"))(device)


def _check_host(device: str) -> None:
    if not on_host(device):
        raise ParameterError("device", device, _DEVICES)


def _check_cuda(device: str) -> None:
    if not re.fullmatch(r"cuda(:\d+)?", device):
        raise ParameterError("device", device, _DEVICES)
    if importlib.util.find_spec("torch") is None:
        raise MissingPackageError(
            Message("{device=} needs torch: pip install 'chimap[torch]', or use {device='cpu'}.", device)
        )
    import torch

    if not torch.cuda.is_available() or torch.device(device).index not in (None, *range(torch.cuda.device_count())):
        n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise InputError(
            Message(
                "{device=}: torch {} finds {} CUDA device(s) here. Use {device='cpu'}, or a build of torch for "
                "this machine's device.",
                device,
                torch.__version__,
                n_devices,
            )
        )


BACKENDS: dict[str, DeviceKind] = {"cpu": DeviceKind(_host, _check_host), "cuda": DeviceKind(_torch, _check_cuda)}
"""The kinds of device by what stands before the colon of ``device``."""

_DEVICES = "'cpu', 'cuda' or 'cuda:1'"


def on_host(device: str) -> bool:
    """Whether the compiled loops and BLAS do the work, which is the case for device "cpu"."""
    return device == "cpu"


def backend_of(device: str) -> Backend:
    """Return the backend for a device that ``check_device`` accepts."""
    return BACKENDS[_kind(device)].backend(device)


def check_device(device: object) -> None:
    """Check that ``device`` names a device of this machine.

    Raises ValueError for any other value, and ImportError if torch is needed but missing.
    """
    if not isinstance(device, str) or _kind(device) not in BACKENDS:
        raise ParameterError("device", device, _DEVICES)
    BACKENDS[_kind(device)].check(device)


def _kind(device: str) -> str:
    return device.partition(":")[0]
