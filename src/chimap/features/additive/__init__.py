"""Explicit maps of additive kernels: ``n_terms`` features for each bin whose dot product is the kernel.

``CATALOGUE`` lists the maps, and the tests of the laws of maps run over it. A new map takes one file and one line in
``base.py``. Maps that no default takes are in ``papers/``.
"""

from __future__ import annotations

from chimap.features.additive.base import CATALOGUE, AdditiveMap, check_map
from chimap.features.additive.direct import DirectMap
from chimap.features.additive.homogeneous import HomogeneousMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.additive.optimal import OptimalMap
from chimap.model_files import register, register_addresses

__all__ = ["AdditiveMap", "CATALOGUE", "DirectMap", "HomogeneousMap", "OptimalMap", "check_map"]

register_addresses(CATALOGUE.addresses)
register(OptimalMap, DirectMap, HomogeneousMap, IdentityMap)
