"""Explicit maps of additive kernels: ``n_terms`` features a bin whose dot product is the kernel.

``CATALOGUE`` lists the maps; the laws of the tests run over it. A new map is one file and one line here.
``DirichletMap`` and ``SignStableProjection`` mix the bins, and stand beside it.
"""

from __future__ import annotations

from chimap.maps.anchors import AnchorMap
from chimap.maps.base import AdditiveMap, check_map
from chimap.maps.chebyshev import ChebyshevMap
from chimap.maps.compressed import CompressedMap
from chimap.maps.direct import DirectMap
from chimap.maps.dirichlet import DirichletMap
from chimap.maps.homogeneous import HomogeneousMap
from chimap.maps.kpca import AdditiveKPCA
from chimap.maps.optimal import OptimalMap
from chimap.maps.sign_stable import SignStableProjection
from chimap.maps.staircase import StaircaseMap

CATALOGUE: dict[str, type[AdditiveMap]] = {
    "optimal": OptimalMap,
    "compressed": CompressedMap,
    "direct": DirectMap,
    "chebyshev": ChebyshevMap,
    "homogeneous": HomogeneousMap,
    "anchors": AnchorMap,
    "staircase": StaircaseMap,
    "kpca": AdditiveKPCA,
}

__all__ = [
    "AdditiveKPCA",
    "AdditiveMap",
    "AnchorMap",
    "CATALOGUE",
    "ChebyshevMap",
    "CompressedMap",
    "DirectMap",
    "DirichletMap",
    "HomogeneousMap",
    "OptimalMap",
    "SignStableProjection",
    "StaircaseMap",
    "check_map",
]
