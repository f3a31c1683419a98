"""Ridge on the features of all rows in memory: an additive map of sparse rows has too many to sum products of."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from chimap.machines.base import Facts, Winner
from chimap.machines.explicit import MOST_SUMMED, has_additive_map, with_explicit_features
from chimap.machines.keeps_rows import with_strengths
from chimap.machines.kept import KeepsFeatures
from chimap.recipe import Recipe
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.wide_ridge import WideRidgeSolver


class WideRidge(KeepsFeatures):
    """Pass over kept features of sparse rows, whose few entries make passes quick."""

    name = "wide ridge"
    declines: ClassVar[Collection[str]] = ("learner", "n_principal", "blocks", "kernels", "covariates", "selection")

    def against(self, recipe: Recipe, facts: Facts, asked: Recipe) -> str:
        request = facts.request
        recipe = with_explicit_features(recipe, facts, asked, None)
        if not facts.source.is_sparse or not request.may_keep_rows or request.has_checkpoint:
            return "rows are dense, or cannot be kept"
        if declined := self.declined(recipe):
            return declined
        if not RidgeSolver().supports(recipe.loss) or not facts.is_shared:
            return "it solves the square loss of targets that share rows and weights"
        features = recipe.features_of(recipe.exact_kernel)
        is_wide = has_additive_map(recipe) and features.footprint(facts.source.n_features).features > MOST_SUMMED
        return "" if is_wide else "there are few enough features to sum products of"

    def raced(self, recipe: Recipe, facts: Facts, asked: Recipe, winner: Winner | None) -> Recipe:
        """See ``Machine``: strengths of exact machines are its own."""
        explicit = super().raced(recipe, facts, asked, winner)
        is_same = winner is not None and recipe.is_exact
        return with_strengths(explicit, facts, asked, winner) if is_same and winner is not None else explicit

    def resolved_recipe(self, recipe: Recipe, facts: Facts) -> Recipe:
        return super().resolved_recipe(recipe.with_values(solver=WideRidgeSolver.name), facts)
