"""Features over an additive map: of kernels whose values are products of mapped rows, or depend on their distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap._types import Rows
from chimap.features.additive.base import AdditiveMap, check_map
from chimap.features.additive.identity import IdentityMap
from chimap.features.additive.optimal import OptimalMap
from chimap.features.base import Features, gamma_bytes
from chimap.kernels import Kernel
from chimap.kernels.plain import Linear


class FeaturesOverMap(Features):
    """Base of features of mapped rows, with the map and its terms as settings.

    ``map`` is an unfitted additive map; None is ``OptimalMap(n_terms=n_terms)``.
    """

    if TYPE_CHECKING:
        map: AdditiveMap | None
        n_terms: int

    def mapped_bins(self, n_bins: int) -> int:
        """Return the length of a row of n_bins bins after the map, at most.

        Parameters
        ----------
        n_bins : int
            Bins of a row.
        """
        return int(self.n_terms if self.map is None else self.map._terms_at_most) * n_bins

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """See ``Features``. It is what fitting the map takes, or gamma before it if that takes more."""
        psi = OptimalMap() if self.map is None else self.map
        mapping = psi._fitting_bytes(int(n_rows * row_bytes / itemsize), n_rows, itemsize)
        return max(gamma_bytes(self.exact_kernel, n_rows, row_bytes, itemsize), mapping)


def fitted_map(kernel: Kernel, rows: Rows, n_terms: int, like: AdditiveMap | None = None) -> AdditiveMap | IdentityMap:
    """Return the map of a kernel that has one, fitted on rows: a copy of ``like``, or ``OptimalMap`` with n_terms.

    Raises DataError for entries that the kernel does not take.
    """
    base = kernel.inner
    assert base is not None  # the kernel has a map
    if isinstance(base, Linear):
        return IdentityMap().fit(rows)
    if like is None:
        return OptimalMap(base, n_terms).fit(rows)
    check_map(like)
    return like.changed(kernel=base).fit(rows)
