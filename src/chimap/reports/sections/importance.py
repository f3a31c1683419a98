"""The bins that matter the most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._formatting import number, one_line
from chimap.reports.explanation import ModelExplanation
from chimap.reports.figures import LONGEST_NAME, drawing, horizontal_bars, to_svg
from chimap.reports.section import Figure, Section, Table, image

BINS_LISTED = 20  # bins in the table
BINS_OPEN = 10  # bins shown without unfolding the table
KINDS = {
    "variance": "The importance of a bin is the standard deviation, over the rows, of its contribution to the scores.",
    "gradient": "The importance of a bin is the root mean square slope of the scores times the standard deviation of "
    "the bin.",
    "removal": "The importance of a bin is the root mean square change of the scores when the bin and all bins above "
    "it are emptied.",
    "permutation": "The importance of a bin is the loss in score when its values are shuffled among the rows.",
}


def section(explanation: ModelExplanation) -> Section:
    """Return the most important bins, painted too if they are pixels."""
    importance, painted = explanation.importance, explanation.painted
    top = importance.top(BINS_LISTED)
    rows = [(f"{i}", name, number(value, 3, zeros=True)) for i, (name, value) in enumerate(top, 1)]
    heads, kinds = ("No.", "Bin", "Importance"), ("number", "text", "number")
    first, further = rows[:BINS_OPEN], rows[BINS_OPEN:]
    tables = [Table(heads, first, kinds, f"The first {len(first)} of {explanation.bin_names.size} bins")]
    if further:
        tables.append(Table(heads, further, kinds, "Further bins", f"The next {len(further)}"))
    names, values = [name for name, _ in top], importance.values[:BINS_LISTED]
    figures = [Figure(lambda: importance_bars(names, values))]
    if painted is not None:
        alt = "Importance of each pixel: the stronger the blue, the more important."
        caption = "Stronger blue means a more important pixel."
        figures.append(Figure(lambda: image(painted, alt, "painting"), caption=caption))
    return Section("Bin importance", KINDS[importance.kind], tuple(figures), tuple(tables))


def importance_bars(names: Sequence[str], values: np.ndarray) -> str:
    """Draw the importance of bins as horizontal bars, the first on top."""
    with drawing(250, 22 * len(names)) as (figure, axes):
        horizontal_bars(axes, names, values, height=0.66, longest=LONGEST_NAME)
        listed = ", ".join(f"{one_line(n)} {number(v, 3)}" for n, v in zip(names, values, strict=True))
        return to_svg(figure, "importance", f"Importance of bins: {listed}.")
