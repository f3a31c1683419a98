"""The machine on the kernel matrix between all rows: no approximation, n^2 numbers, n^3/3 operations."""

from __future__ import annotations

from typing import ClassVar

from chimap.machines.base import Cost, Facts
from chimap.machines.block_plan import FEWEST_BLOCK_ROWS, choice_seconds
from chimap.machines.keeps_rows import KeepsRows, against_blocks, bytes_of_exact, holds_matrix, is_cheapest
from chimap.recipe import Recipe
from chimap.solvers.base import Needs
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.kernel_matrix import is_iterated


class WholeMatrix(KeepsRows):
    """Factorise the kernel matrix of all rows."""

    name = "kernel matrix"
    needs: ClassVar[tuple[Needs, ...]] = ("kernel",)

    def against(self, recipe: Recipe, facts: Facts, asked: Recipe) -> str:
        if not (recipe.is_exact or recipe.leaves_open("features")):
            return "other features are named"
        can_be_blocks = RidgeSolver().supports(recipe.loss) and recipe.learner is None
        if not asked.leaves_open("features"):
            if can_be_blocks and facts.request.is_batch:
                return "rows to come are blocks of their own"
            is_large = facts.n_rows > FEWEST_BLOCK_ROWS and bytes_of_exact(recipe, facts) > recipe.room
            return "memory does not hold it" if can_be_blocks and is_large else ""
        if not facts.request.may_keep_rows:
            return "the fit does not keep rows"
        is_open, declined = recipe.leaves_open("features"), self.declined(recipe)
        is_ridge = RidgeSolver().supports(recipe.loss) or is_iterated(recipe.loss)
        if is_open and (declined or not is_ridge):
            return declined or "its margins take longer than passes over features"
        if holds_matrix(recipe, facts):
            if not is_open or is_cheapest(recipe, facts) or not against_blocks(recipe, facts, declined):
                return ""
            return "explicit features take less work"
        if facts.n_rows <= FEWEST_BLOCK_ROWS and not against_blocks(recipe, facts, declined):
            return ""
        return "it does not fit memory or time, or has too many rows"

    def cost(self, recipe: Recipe, facts: Facts) -> Cost:
        n = facts.n_rows
        return Cost(bytes_of_exact(recipe, facts), choice_seconds(n), n)
