"""Every map with every kernel that it takes."""

from __future__ import annotations

import pytest

from chimap.kernels import CATALOGUE as KERNELS
from chimap.maps import CATALOGUE as MAPS
from chimap.maps import ChebyshevMap, DirectMap, HomogeneousMap

PAIRS = {
    f"{name}, {kernel.name}": (make, kernel)
    for name, make in MAPS.items()
    for kernel in KERNELS.values()
    if make.takes(kernel)
}

every_map = pytest.mark.parametrize(("make", "kernel"), PAIRS.values(), ids=PAIRS)


def terms_of(make):
    """Numbers of terms, so far apart that the error must fall from each to the next."""
    return {HomogeneousMap: (1, 5, 9), DirectMap: (1, 3, 6), ChebyshevMap: (1, 8, 64)}.get(make, (1, 2, 3, 5))
