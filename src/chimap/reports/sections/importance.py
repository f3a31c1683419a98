"""The bins that matter the most, and what they speak for."""

from __future__ import annotations

from chimap._formatting import number
from chimap.reports.explanation import BINS_LISTED, ModelExplanation
from chimap.reports.section import Figure, Section, Table, image

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
    largest = max((value for _, value in top), default=0.0) or 1.0
    said = [(explanation.speaks_for(e), number(e.direction.above, 2)) for e in explanation.effects[: len(top)]]
    said += [("–", "–")] * (len(top) - len(said))
    rows = [
        (name, max(value, 0.0) / largest, number(value, 3, zeros=True), *of)
        for (name, value), of in zip(top, said, strict=True)
    ]
    heads, kinds = ("Bin", "", "Importance", "Speaks for", "Above"), ("text", "bar", "number", "text", "number")
    first, further = rows[:BINS_OPEN], rows[BINS_OPEN:]
    tables = [Table(heads, first, kinds, f"The first {len(first)} of {explanation.bin_names.size} bins")]
    if further:
        tables.append(Table(heads, further, kinds, "Further bins", f"The next {len(further)}"))
    figures = []
    if painted is not None:
        alt = "Importance of each pixel: the stronger the blue, the more important."
        caption = "Stronger blue means a more important pixel."
        figures.append(Figure(lambda: image(painted, alt, "painting"), caption=caption))
    scale = f" Values are {explanation.scale}." if explanation.scale else ""
    return Section(
        "Bin importance",
        f"{KINDS[importance.kind]} A row with more of a bin than the last column says has a score that speaks for what "
        f"stands before it, compared with the mean row.{scale}",
        tuple(figures),
        tuple(tables),
        lead=explanation.sentence,
    )
