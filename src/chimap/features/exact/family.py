"""The feature family of kernel values with every training row, for every kernel."""

from __future__ import annotations

from typing import ClassVar

from chimap.features.base import Features, FeatureSettings, Footprint
from chimap.features.exact.blocks import ExactBlocks
from chimap.features.exact.features import ExactFeatures
from chimap.kernels import Kernel

MOST_ROWS = 12_000  # rows whose kernel matrix a usual machine holds, and factorises in seconds


class ExactFamily:
    """``ExactFeatures``: as many features as rows, so that a fit is planned by its rows, not by a sample of them."""

    makes: ClassVar[type] = ExactFeatures
    joins: ClassVar[type] = ExactBlocks

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return True

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``."""
        return ExactFeatures(settings.exact, map=settings.map, n_terms=settings.terms(), random_state=seed)

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """Return the sizes for ``MOST_ROWS`` rows; a fit plans with its actual number of rows."""
        terms = settings.terms() if settings.map is None else settings.map._terms_at_most
        return Footprint(MOST_ROWS, terms * n_bins)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes of the mapped rows."""
        return int(settings.terms() * n_rows * row_bytes)
