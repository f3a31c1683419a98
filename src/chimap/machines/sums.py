"""Ridge from sums of features: D^2 numbers, n D^2 operations, one pass over any number of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from chimap.backends import on_host
from chimap.machines.base import Facts, Plan, Refusals
from chimap.machines.block_plan import USUAL_SECONDS
from chimap.machines.explicit import NO_SCORE, SHARE_OF_IMPROVING, Explicit, fits, landmarks_in, room_for
from chimap.recipe import Recipe
from chimap.solvers.base import Needs

_ROWS_OF_A_LANDMARK = 4  # with fewer rows for each landmark, an exact machine takes no longer


class SumsOfFeatures(Explicit):
    """Add up products of the features of all rows, fold by fold, and solve from the sums."""

    name = "sums of features"
    needs: ClassVar[tuple[Needs, ...]] = ("moments",)
    refuses: ClassVar[Refusals] = {"several components' scoring": NO_SCORE["scoring"]}

    def meets_rivals(self, recipe: Recipe, facts: Facts) -> bool:
        """See ``Machine``: where single rows are left out."""
        request = facts.request
        is_plain = not (
            recipe.n_covariates
            or request.has_checkpoint
            or request.has_unlabelled
            or request.has_curve
            or facts.has_gaps
        )
        return is_plain and not facts.has_groups and on_host(recipe.device)

    def larger(self, plan: Plan, facts: Facts, n_features: int, gamma: float | None) -> Recipe | None:
        """See ``Machine``: twice as many landmarks, where their number was left to the fit and rows suffice."""
        recipe, n = plan.recipe, plan.recipe.n_components
        is_open = plan.chosen_by("n_components") == "machine" and not facts.request.has_checkpoint
        has_sums = recipe.learner is None and recipe.n_principal is None and not facts.has_gaps
        if isinstance(n, str) or not is_open or not has_sums or n_features != n:
            return None
        most = landmarks_in(SHARE_OF_IMPROVING * (recipe.time_limit or USUAL_SECONDS), facts.n_rows)
        may_grow = 2 * n <= min(most, facts.n_rows // _ROWS_OF_A_LANDMARK) and fits(2 * n, room_for(recipe, facts))
        return replace(recipe, n_components=2 * n) if may_grow else None
