"""What the benchmarks of devices share: torch and the device that an option names, and seconds of work there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


class Device:
    """A device of torch, by its name; the program ends with a message where it is not there."""

    def __init__(self, name: str):
        try:
            import torch
        except ImportError:
            sys.exit("skipped: this benchmark needs torch.")
        self.name, self.torch, self.is_host = name, torch, name == "cpu"
        if not self.is_host and not torch.cuda.is_available():
            sys.exit("skipped: this benchmark needs a CUDA device, and torch finds none here.")
        print(name if self.is_host else torch.cuda.get_device_name(), torch.__version__)

    def wait(self) -> None:
        """Wait for the work that calls have left on the device."""
        if not self.is_host:
            self.torch.cuda.synchronize(self.name)

    def seconds(self, work: Callable[[], Any], repeats: int = 5) -> float:
        """Return the median seconds of a call, with the work that it leaves on the device, after calls that do not count."""
        times = []
        for _ in range(repeats + 3):
            self.wait()
            began = time.perf_counter()
            work()
            self.wait()
            times.append(time.perf_counter() - began)
        return float(np.median(times[3:]))

    def print_peak(self) -> None:
        """Print how much of the device's memory was taken at most."""
        if not self.is_host:
            print(f"  {self.torch.cuda.max_memory_allocated() / 2**30:.1f} GiB of the device's memory at most")
