"""Every map with every kernel that it takes."""

from __future__ import annotations

import pytest

from chimap.features.additive import CATALOGUE as MAPS
from chimap.features.additive import DirectMap, HomogeneousMap
from chimap.kernels import CATALOGUE as KERNELS
from chimap.papers import AnchorMap, ChebyshevMap, StaircaseMap

PAIRS = {
    f"{name}, {kernel.name}": (make, kernel)
    for name, make in MAPS.items()
    for kernel in KERNELS.values()
    if make.takes(kernel)
}

every_map = pytest.mark.parametrize(("make", "kernel"), PAIRS.values(), ids=PAIRS)


# Nystrom's or a projection's features on the sample: K - Z Z' is positive semi-definite
NEVER_ABOVE_THE_KERNEL = tuple(make for make in MAPS.values() if make not in (HomogeneousMap, AnchorMap))


def terms_of(make):
    """Numbers of terms, so far apart that the error must fall from each to the next."""
    terms = {HomogeneousMap: (1, 5, 9), DirectMap: (1, 3, 6), StaircaseMap: (3, 12, 48), ChebyshevMap: (1, 8, 64)}
    return terms.get(make, (1, 2, 3, 5))


def error_limits(make, kernel):
    """What the error comes down to: (where it may stop falling, what the last of ``terms_of`` must reach)."""
    if make is AnchorMap:  # 50 uniform anchors round the many small values, whose roots are not small
        return (0.09, 0.09) if kernel.name == "hellinger" else (0.05, 0.05)
    return 1e-10, 0.06 if kernel.name == "intersection" else 0.01
