"""Feature families of random Fourier features, for exponential and for skewed kernels."""

from __future__ import annotations

from typing import ClassVar

from chimap.features.additive.families import map_bytes, mapped_bins
from chimap.features.base import Features, FeatureSettings, Footprint, gamma_bytes, median_bytes
from chimap.features.fourier.features import FourierFeatures
from chimap.features.fourier.skewed import SkewedFourierFeatures
from chimap.kernels import AdditiveKernel, Exponential, Kernel
from chimap.kernels.skewed import Skewed


class FourierFamily:
    """``FourierFeatures``, with orthogonal frequencies unless the settings name another sampling."""

    makes: ClassVar[type] = FourierFeatures

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return isinstance(kernel, Exponential)

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``."""
        return FourierFeatures(
            settings.exact, settings.size(2048), map=settings.map, n_terms=settings.terms(),
            sampling=_sampling(settings, "orthogonal"), form=settings.form, random_state=seed,
        )  # fmt: skip

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """See ``Family``."""
        over_map = isinstance(getattr(settings.exact, "kernel", None), AdditiveKernel)
        return _of_waves(settings, mapped_bins(settings, n_bins) if over_map else n_bins)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """See ``Family``."""
        if settings.exact.name == "gaussian":
            return gamma_bytes(settings.exact, n_rows, row_bytes, itemsize)
        return map_bytes(settings, n_rows, row_bytes, itemsize)


class SkewedFourierFamily:
    """``SkewedFourierFeatures``, with independent frequencies unless the settings name another sampling."""

    makes: ClassVar[type] = SkewedFourierFeatures

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return isinstance(kernel, Skewed)

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``."""
        sampling = _sampling(settings, "iid")
        return SkewedFourierFeatures(settings.exact, settings.size(2048), sampling, settings.form, seed)

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """See ``Family``."""
        return _of_waves(settings, n_bins)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """See ``Family``."""
        return median_bytes(settings.exact, n_rows, row_bytes, itemsize)


def _sampling(settings: FeatureSettings, usual: str) -> str:
    return usual if settings.sampling == "auto" else settings.sampling


def _of_waves(settings: FeatureSettings, mapped: int) -> Footprint:
    n_components = settings.size(2048)
    frequencies = (n_components + 1) // 2 if settings.form == "pair" else n_components
    # Structured frequencies store only signs and lengths.
    has_matrix = settings.sampling != "structured"
    return Footprint(n_components, mapped, frequencies if has_matrix else 0, is_random=has_matrix)
