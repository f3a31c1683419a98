"""Squared margins on sparse rows: LIBLINEAR's passes over the entries take no sums of products of features."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from chimap.losses import SquaredHinge
from chimap.machines.base import Facts
from chimap.machines.explicit import has_additive_map, with_explicit_features
from chimap.machines.kept import KeepsFeatures
from chimap.recipe import Recipe
from chimap.solvers.liblinear import SquaredHingeSolver

_MOST_FILLED = 0.1  # share of filled bins: passes over rows with more take longer than steps from the ridge solution


class SparseMargins(KeepsFeatures):
    """Keep the features of sparse rows in memory, as LIBLINEAR takes them."""

    name = "sparse margins"
    declines: ClassVar[Collection[str]] = ("learner", "n_principal", "blocks", "kernels", "covariates")

    def against(self, recipe: Recipe, facts: Facts, asked: Recipe) -> str:
        recipe, request = with_explicit_features(recipe, facts, asked, None), facts.request
        if recipe.loss not in (SquaredHinge.name, SquaredHinge()):
            return "the loss is not the squared hinge"
        if not request.may_keep_rows or request.has_checkpoint or facts.has_gaps:
            return "rows cannot be kept, or entries are missing"
        if declined := self.declined(recipe):
            return declined
        is_sparse = has_additive_map(recipe) and facts.filling.shares.mean() < _MOST_FILLED
        return "" if is_sparse else "features are not sparse"

    def resolved_recipe(self, recipe: Recipe, facts: Facts) -> Recipe:
        return super().resolved_recipe(recipe.with_values(solver=SquaredHingeSolver.name), facts)
