"""Torch's backend under test: on a CUDA device where torch finds one; elsewhere its CPU stands for a device."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from chimap.backends import BACKENDS, DeviceKind


def torch_device() -> str:
    """Return the device that torch computes on in tests."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def compute_cpu_0_by_torch(monkeypatch):
    """Let "cpu:0" be computed by torch, where it is installed; no check lets that name pass."""
    host, torch = BACKENDS["cpu"], BACKENDS["cuda"]

    def backend(device):
        return torch.backend(torch_device()) if ":" in device else host.backend(device)

    monkeypatch.setitem(BACKENDS, "cpu", replace(host, backend=backend))


def compute_by_torch(monkeypatch, piece_rows=700):
    """Let torch's device be that of every fit, in pieces of a few rows; skip where torch is not installed.

    What its units multiply is still asked of the CPU: torch's build for CPUs knows of no device.
    """
    pytest.importorskip("torch", reason="the path of devices is tested where torch is installed")
    torch = BACKENDS["cuda"]
    for module in [m for name, m in sys.modules.items() if name.startswith("chimap.")]:
        if hasattr(module, "on_host") and module.__name__ != "chimap.backends.base":
            monkeypatch.setattr(module, "on_host", lambda name: False)
        if hasattr(module, "check_device"):
            monkeypatch.setattr(module, "check_device", lambda name: None)
    monkeypatch.setitem(BACKENDS, "cpu", DeviceKind(lambda name: torch.backend(torch_device()), lambda name: None))
    monkeypatch.setattr("chimap.backends.torch.PIECE_ROWS", piece_rows)
