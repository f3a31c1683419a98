"""Helpers for torch: copies to a device while it works, and the precision of its products."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_AHEAD = 2  # pieces of work that may wait on the device while the next is prepared


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Multiply float32 within the block as "highest" (float32), "high" (TF32 on a CUDA device) or "medium" (bfloat16).

    The setting of the caller's program is restored afterwards.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Uploads:
    """Copies numpy arrays to a device on a separate stream while the device computes.

    The copies go through page-locked memory from torch's cache, which reuses a buffer only after the copy from it has
    finished, so no copy reads what the next one writes. Call ``pace`` after each piece of work: it waits for the device
    if more than two pieces are queued, because rows that wait would otherwise fill its memory.
    """

    def __init__(self, device: str | torch.device):
        self.device = torch.device(device)
        self._is_cuda = self.device.type == "cuda"
        self._stream: torch.cuda.Stream | None = torch.cuda.Stream(self.device) if self._is_cuda else None
        self._queued: deque[torch.cuda.Event] = deque()

    def __call__(self, values: np.ndarray) -> torch.Tensor:
        """Return the array on the device, with the dtype and shape of ``values``."""
        # torch warns about read-only arrays, such as rows of a memory-mapped file, so these are copied.
        host = torch.from_numpy(np.require(values, requirements=["C", "W"]))
        if not self._is_cuda:
            return host.to(self.device)
        current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self._stream):
            moved = host.pin_memory().to(self.device, non_blocking=True)
        current.wait_stream(self._stream)
        # Its memory is reused only after the work that is queued now has read it.
        moved.record_stream(current)
        return moved

    def pace(self) -> None:
        """Wait for the device if more than two pieces of work are queued."""
        if not self._is_cuda:
            return
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(self.device))
        self._queued.append(done)
        if len(self._queued) > _AHEAD:
            self._queued.popleft().synchronize()
