"""Explicit maps of additive kernels: ``n_terms`` features for each bin whose dot product is the kernel.

``CATALOGUE`` lists the maps, and the tests of the laws of maps run over it. A new map takes one file and one line here.
``DirichletMap`` and ``SignStableProjection`` mix the bins, so they are not in the catalogue.
"""

from __future__ import annotations

from chimap.features.additive.anchors import AnchorMap
from chimap.features.additive.base import CATALOGUE, AdditiveMap, check_map
from chimap.features.additive.chebyshev import ChebyshevMap
from chimap.features.additive.compressed import CompressedMap
from chimap.features.additive.direct import DirectMap
from chimap.features.additive.dirichlet import DirichletMap
from chimap.features.additive.homogeneous import HomogeneousMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.additive.kpca import AdditiveKPCA
from chimap.features.additive.optimal import OptimalMap
from chimap.features.additive.sign_stable import SignStableProjection
from chimap.features.additive.staircase import StaircaseMap
from chimap.features.additive.stationary import StationaryMap
from chimap.model_files import register

CATALOGUE |= {
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
    "StationaryMap",
    "check_map",
]

register(*CATALOGUE.values(), DirichletMap, IdentityMap, StationaryMap, SignStableProjection)
