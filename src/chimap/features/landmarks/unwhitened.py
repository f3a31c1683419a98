"""Kernel values with landmarks, less 1, as features that replace whitened ones in prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chimap._types import Rows

if TYPE_CHECKING:
    from chimap.features.landmarks.landmark_features import LandmarkFeatures


class KernelLessOne:
    """K(x, l) - 1 for the landmarks of landmark features; prediction needs no whitening."""

    def __init__(self, features: LandmarkFeatures):
        self.landmark_features = features

    @property
    def _n_features_out(self) -> int:
        return int(self.landmark_features._n_features_out)

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write K(x, l) - 1 minus ``shift`` of checked rows into ``out`` (n, m), of their dtype."""
        for _ in self.landmark_features._kernel_blocks(rows, out):
            pass
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)
