"""Margins of LIBLINEAR, on the features of all rows in memory."""

from __future__ import annotations

from typing import ClassVar

from chimap.machines.base import Refusals
from chimap.machines.explicit import HOST_ALONE, Explicit
from chimap.solvers.base import Needs


class KeepsFeatures(Explicit):
    """Keep the features of all rows in memory, as CSR where that is smaller."""

    name = "kept features"
    needs: ClassVar[tuple[Needs, ...]] = ("features",)
    refuses: ClassVar[Refusals] = HOST_ALONE
