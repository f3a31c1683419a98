"""The machine in blocks of rows: as exact as the memory allows, for kernels of more rows than a matrix."""

from __future__ import annotations

from typing import ClassVar

from chimap.machines import block_plan as sizes
from chimap.machines.base import Facts, Plan
from chimap.machines.block_plan import BLOCK_TERMS, FEWEST_BLOCK_ROWS, BlockPlan, block_plan
from chimap.machines.explicit import SHARE_OF_IMPROVING, landmarks_in, landmarks_within, room_for, takes_landmarks
from chimap.machines.keeps_rows import KeepsRows, against_blocks, bytes_of_exact, holds_matrix
from chimap.recipe import Recipe
from chimap.solvers.base import Needs
from chimap.solvers.block_problem import BlockSolver
from chimap.solvers.from_moments import RidgeSolver


class Blocks(KeepsRows):
    """Solve block after block of the kernel matrix, and keep the weights of all rows."""

    name = "blocks of rows"
    needs: ClassVar[tuple[Needs, ...]] = ("blocks",)

    def against(self, recipe: Recipe, facts: Facts, asked: Recipe) -> str:
        if not (recipe.is_exact or recipe.leaves_open("features")):
            return "other features are named"
        is_ridge, n_rows = RidgeSolver().supports(recipe.loss) and recipe.learner is None, facts.n_rows
        if not asked.leaves_open("features"):
            is_large = n_rows > FEWEST_BLOCK_ROWS and bytes_of_exact(recipe, facts) > recipe.room
            return "" if is_ridge and (facts.request.is_batch or is_large) else "a matrix of all rows is solved at once"
        if not facts.request.may_keep_rows:
            return "the fit does not keep rows"
        if n_rows <= FEWEST_BLOCK_ROWS or holds_matrix(recipe, facts):
            return "a matrix of all rows is solved at once"
        return against_blocks(recipe, facts, self.declined(recipe))

    def resolved_recipe(self, recipe: Recipe, facts: Facts) -> Recipe:
        """See ``Machine``: one feature a bin, as a second gains nothing at many rows."""
        recipe = super().resolved_recipe(recipe, facts).with_values(solver=BlockSolver.name)
        return recipe.with_values(n_terms=BLOCK_TERMS) if recipe.leaves_open("n_terms") else recipe

    def larger(self, plan: Plan, facts: Facts, n_features: int, gamma: float | None) -> Recipe | None:
        """See ``Machine``: landmarks for all rows, where the work let it learn from some of them only.

        The machine stands where the user named the features, or a time limit.
        """
        learns_all, asked = facts.n_rows == plan.facts.n_rows, plan.asked
        if learns_all or not asked.leaves_open("features") or asked.time_limit is not None:
            return None
        recipe = plan.raced.without_raced("alpha", of=asked)
        recipe = recipe.with_raced(features="landmarks", gamma="mean" if gamma is None else gamma)
        most, n = landmarks_in(SHARE_OF_IMPROVING * sizes.USUAL_SECONDS, plan.facts.n_rows), recipe.n_components
        if recipe.leaves_open("n_components") and takes_landmarks(recipe):
            n = landmarks_within(facts.n_rows, room_for(recipe, facts))
        return recipe.with_values(n_components=most if isinstance(n, str) else min(n, most))

    def cost(self, recipe: Recipe, facts: Facts) -> BlockPlan:
        return block_plan(recipe, facts)
