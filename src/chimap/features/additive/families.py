"""Feature families of additive kernels, and of other kernels that a map serves exactly."""

from __future__ import annotations

from typing import ClassVar

from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.dirichlet import DirichletMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.additive.optimal import OptimalMap
from chimap.features.base import Features, FeatureSettings, Footprint, gamma_bytes, median_bytes
from chimap.kernels import AdditiveKernel, DirichletKernel, Kernel, Linear


class AdditiveFamily:
    """Additive maps: ``OptimalMap``, unless the settings have another map."""

    makes: ClassVar[type] = AdditiveMap

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return isinstance(kernel, AdditiveKernel)

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``."""
        if settings.map is None:
            return OptimalMap(settings.exact, settings.terms())
        return type(settings.map)(**settings.map.get_params(deep=False)).set_params(kernel=settings.exact)

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """See ``Family``."""
        return Footprint(mapped_bins(settings, n_bins))

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """See ``Family``."""
        return map_bytes(settings, n_rows, row_bytes, itemsize)


class DirichletFamily:
    """The map of the Dirichlet kernel, with as many features as bins."""

    makes: ClassVar[type] = DirichletMap

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return isinstance(kernel, DirichletKernel)

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``."""
        return DirichletMap(settings.exact)

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """See ``Family``."""
        return Footprint(n_bins)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes of proportions, of flags for positive entries, and of logarithms or squares."""
        return 24 * int(n_rows * row_bytes / itemsize)


class LinearFamily:
    """The bins themselves as features."""

    makes: ClassVar[type] = IdentityMap

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return isinstance(kernel, Linear)

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``."""
        return IdentityMap()

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """See ``Family``."""
        return Footprint(n_bins)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """See ``Family``."""
        return median_bytes(settings.exact, n_rows, row_bytes, itemsize)


def mapped_bins(settings: FeatureSettings, n_bins: int, usual_terms: int = 2) -> int:
    """Return the length of a row after the additive map of the settings."""
    return int(settings.terms(usual_terms) if settings.map is None else settings.map._terms_at_most) * n_bins


def map_bytes(settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
    """Return the bytes that fitting this map takes, or gamma before it if that takes more."""
    psi = OptimalMap() if settings.map is None else settings.map
    mapping = psi._fitting_bytes(int(n_rows * row_bytes / itemsize), n_rows, itemsize)
    return max(gamma_bytes(settings.exact, n_rows, row_bytes, itemsize), mapping)
