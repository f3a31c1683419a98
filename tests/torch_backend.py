"""Torch's backend where no GPU is: its CPU stands for a device."""

from __future__ import annotations

import sys

import pytest

from chimap.backends import BACKENDS


def compute_by_torch(monkeypatch, piece_rows=700):
    """Let the device of every fit be torch's CPU, in pieces of a few rows; skip where torch is not installed.

    What its units multiply is still asked of this machine: torch's build for CPUs knows of no device.
    """
    torch = pytest.importorskip("torch", reason="the path of devices is tested where torch is installed")
    for module in [m for name, m in sys.modules.items() if name.startswith("chimap.")]:
        if hasattr(module, "on_host") and module.__name__ != "chimap.backends.base":
            monkeypatch.setattr(module, "on_host", lambda name: False)
        if hasattr(module, "check_device"):
            monkeypatch.setattr(module, "check_device", lambda name: None)
    monkeypatch.setitem(BACKENDS, "cpu", BACKENDS["cuda"])
    monkeypatch.setattr("chimap.backends.torch.PIECE_ROWS", piece_rows)
    return torch
