"""Weights of several kernels: a norm of groups of features in place of that of each."""

from __future__ import annotations

from typing import ClassVar

from chimap.machines.base import Refusals
from chimap.machines.explicit import HOST_ALONE, NO_SCORE, Explicit
from chimap.solvers.base import Needs


class Groups(Explicit):
    """Solve for groups of features, from sums."""

    name = "groups of features"
    needs: ClassVar[tuple[Needs, ...]] = ("moments",)
    refuses: ClassVar[Refusals] = NO_SCORE

    def penalises(self, has_groups: bool) -> bool:
        return has_groups


class GroupPasses(Groups):
    """Solve for groups of features by passes over the rows."""

    name = "groups of features, by passes"
    needs: ClassVar[tuple[Needs, ...]] = ("rows",)
    refuses: ClassVar[Refusals] = HOST_ALONE
