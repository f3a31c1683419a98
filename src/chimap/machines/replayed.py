"""Losses that passes over the rows minimise, whitened by the sums of features."""

from __future__ import annotations

from typing import ClassVar

from chimap.engines.rates import RATES
from chimap.machines.base import Facts, Refusals
from chimap.machines.explicit import HOST_ALONE, Explicit
from chimap.solvers.base import Needs

_PASSES = 200  # of a search for the strength and the fit


class ReplayedPasses(Explicit):
    """Pass over the rows again and again, or over their features where memory keeps them."""

    name = "replayed passes"
    needs: ClassVar[tuple[Needs, ...]] = ("rows",)
    refuses: ClassVar[Refusals] = HOST_ALONE

    def seconds(self, facts: Facts, n_features: int) -> float:
        """See ``Explicit``: passes come to the sums."""
        passes = 4 * _PASSES * facts.n_rows * n_features * facts.n_targets / RATES.features
        return super().seconds(facts, n_features) + passes
