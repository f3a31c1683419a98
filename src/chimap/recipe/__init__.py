"""What is asked of a fit: its settings (``recipe``)."""

from __future__ import annotations

from chimap._validation import AUTO, is_auto
from chimap.recipe.recipe import Learner, Recipe

__all__ = ["AUTO", "Learner", "Recipe", "is_auto"]
