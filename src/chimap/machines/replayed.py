"""Losses that passes over the rows minimise, whitened by the sums of features."""

from __future__ import annotations

from typing import ClassVar

from chimap.machines.base import Refusals
from chimap.machines.explicit import HOST_ALONE, Explicit
from chimap.solvers.base import Needs


class ReplayedPasses(Explicit):
    """Pass over the rows again and again, or over their features where memory keeps them."""

    name = "replayed passes"
    needs: ClassVar[tuple[Needs, ...]] = ("rows",)
    refuses: ClassVar[Refusals] = HOST_ALONE
