"""What a design is told of its fit, which the type checker sees."""

from __future__ import annotations

from typing import get_type_hints

from chimap.fit.designing import Conditions, Design
from chimap.fit.recipe import Recipe
from chimap.fit.rows import PreparedRows
from chimap.kernel_learning.joint import ChannelDesign
from chimap.kernel_learning.widths import WidthDesign


def test_a_recipe_has_what_designs_may_know():
    known = {name for name, value in vars(Conditions).items() if isinstance(value, property)}
    assert known == {"seed", "dtype", "budget", "changes_rows"}
    assert known <= {*Recipe.__dataclass_fields__, *vars(Recipe)}


def test_every_design_is_told_the_same():
    for design in (Design, WidthDesign, ChannelDesign):
        hints = get_type_hints(design.learn)
        assert hints["conditions"] is Conditions
        assert hints["rows"] is PreparedRows
