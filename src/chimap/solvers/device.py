"""The Cholesky factor of ridge on a device of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from chimap._torch import has_room
from chimap.moments import Moments
from chimap.solvers.ridge import Factor, too_small


class DeviceFactor(Factor):
    """``Factor`` whose factorisation and solutions are made on a device, in float64; for ridge alone."""

    def __init__(self, n_features: int, device: str):
        super().__init__(n_features)
        self._device = torch.device(device)
        self._lower: torch.Tensor | None = None

    @staticmethod
    def fits(n_features: int, device: str) -> bool:
        """Whether the device has room for the matrix, its factor and as much to work in."""
        return has_room(3 * 8 * n_features**2, device)

    def of(self, moments: Moments, alpha: float, less: Any = None) -> None:
        """See ``Factor.of``."""
        self._fill(moments, alpha, less)
        self._lower = None  # let go before there is another
        # of our upper triangle, which is the lower one of the transpose
        self._lower, info = torch.linalg.cholesky_ex(torch.from_numpy(self._square).to(self._device).T)
        if int(info):
            raise too_small(alpha)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """See ``Factor.solve``."""
        right = torch.from_numpy(np.ascontiguousarray(B)).to(self._device)
        return torch.cholesky_solve(right, self._lower).cpu().numpy()
