"""Landmark features as a family: of every kernel."""

from __future__ import annotations

from typing import Any, ClassVar

from chimap.features.additive.families import map_bytes
from chimap.features.base import FeatureSettings, Footprint, gamma_bytes, median_bytes
from chimap.features.landmarks.nystroem import NystroemFeatures
from chimap.kernels import AdditiveKernel, Exponential, Kernel


class NystroemFamily:
    """``NystroemFeatures``, whose landmarks are rows of the sample."""

    makes: ClassVar[type] = NystroemFeatures

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return True

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Any:
        """See ``Family``."""
        return NystroemFeatures(settings.exact, settings.n_components, random_state=seed)

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """Kernel values take the place of mapped bins, and the landmarks are rows of the sample."""
        m = settings.n_components
        return Footprint(m, m, m, sample_rows=2 * m)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Kernel values of all rows with the landmarks, and the eigenproblem of these; and the kernel's parameters."""
        kernel, m = settings.exact, settings.n_components
        if kernel.name == "gaussian":
            parameters = gamma_bytes(kernel, n_rows, row_bytes, itemsize)
        elif isinstance(kernel, Exponential | AdditiveKernel):
            parameters = map_bytes(settings, n_rows, row_bytes, itemsize)
        else:
            parameters = max(
                median_bytes(kernel, n_rows, row_bytes, itemsize), int(16 * n_rows * row_bytes / itemsize)
            )
        return max(parameters, 8 * m * (n_rows + 3 * m))
