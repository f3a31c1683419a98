"""The catalogue of selection rules: which one serves what a solver needs."""

from __future__ import annotations

from collections.abc import Callable

from chimap.selection.base import Selection
from chimap.selection.folds import Folds
from chimap.selection.holdout import HoldOut
from chimap.solvers.base import Needs

RULES: dict[Needs, Callable[[Callable[[], None]], Selection]] = {
    "moments": Folds,
    "rows": lambda on_score: HoldOut(),
    "features": lambda on_score: HoldOut(),
}
"""What selection="auto", or a number of folds, stands for."""
