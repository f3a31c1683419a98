"""What is particular to torch: copies to its device beside the work there, and the precision of its products."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_AHEAD = 2  # pieces of work that may wait on the device while the next is made ready


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Multiply float32 within the block as "highest" (float32), "high" (TF32 on a CUDA device) or "medium" (bfloat16),
    whatever the caller's program has set for itself."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Uploads:
    """Copies of numpy arrays on a device, by a stream of their own while the device computes.

    They go through page-locked memory that torch hands out: it takes a buffer back only once the copy out of it has
    finished, so that no copy reads what the next one writes. ``pace``, called after each piece of work, waits for the
    device where more than two pieces are queued there: rows that wait would otherwise fill its memory.
    """

    def __init__(self, device: str | torch.device):
        self.device = torch.device(device)
        self._is_cuda = self.device.type == "cuda"
        self._stream: torch.cuda.Stream | None = torch.cuda.Stream(self.device) if self._is_cuda else None
        self._queued: deque[torch.cuda.Event] = deque()

    def __call__(self, values: np.ndarray) -> torch.Tensor:
        """An array on the device, of the dtype and shape of ``values``."""
        # torch warns of arrays that it must not write to, such as rows of a file that is mapped
        host = torch.from_numpy(np.require(values, requirements=["C", "W"]))
        if not self._is_cuda:
            return host.to(self.device)
        current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self._stream):
            moved = host.pin_memory().to(self.device, non_blocking=True)
        current.wait_stream(self._stream)
        moved.record_stream(
            current
        )  # its memory is used again only after what is queued there now has read it
        return moved

    def pace(self) -> None:
        """See the class."""
        if not self._is_cuda:
            return
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(self.device))
        self._queued.append(done)
        if len(self._queued) > _AHEAD:
            self._queued.popleft().synchronize()
