"""What a design is told of its fit, which the type checker sees."""

from __future__ import annotations

from typing import get_type_hints

from chimap.kernel_learning.joint import ChannelDesign
from chimap.kernel_learning.widths import WidthDesign
from chimap.machines.method import Design, Method
from chimap.machines.rows import PreparedRows


def test_every_design_is_told_the_same():
    for design in (Design, WidthDesign, ChannelDesign):
        hints = get_type_hints(design.learn)
        assert hints["method"] is Method
        assert hints["rows"] is PreparedRows
