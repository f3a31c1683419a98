"""What is asked of a fit: its settings (``recipe``)."""

from __future__ import annotations

from chimap.recipe.recipe import AUTO, Learner, Recipe, is_auto

__all__ = ["AUTO", "Learner", "Recipe", "is_auto"]
