"""Why single rows get their predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._formatting import number, one_line, words
from chimap.models.counterfactuals import Counterfactual
from chimap.reports.explained_rows import ExplainedRow
from chimap.reports.explanation import ModelExplanation
from chimap.reports.figures import BAD, GOOD, LONGEST_NAME, MUTED, drawing, to_svg, write_beside
from chimap.reports.section import Figure, Section, Table, image


def section(explanation: ModelExplanation) -> Section | None:
    """Return the explanation of each row."""
    if not explanation.rows:
        return None
    return Section(
        "Explanations of single rows",
        f"{explanation.which_rows} The score is the sum of the contributions and the score of the mean row.",
        parts=tuple(_part(row, explanation.bin_names, f"row{i}") for i, row in enumerate(explanation.rows)),
    )


def _part(row: ExplainedRow, bin_names: np.ndarray, id: str) -> Section:
    """Return the explanation of a row: its pictures, and what its bins and the rows like it contribute."""
    predicted, truth = words(row.predicted), words(row.truth)
    told = "" if row.truth is None else ", correct" if row.truth == row.predicted else f", true {truth}"
    said = "Contributions that raise (blue) and lower (orange) the prediction, which"
    if row.rival is not None:
        said = (
            f"Contributions in favour of {predicted} (blue) and of {words(row.rival)} (orange). The score in favour of "
            f"{predicted}"
        )
    top = row.top()
    names, added = [str(bin_names[i]) for i in top], row.contributions[top]
    bins = [
        (name, number(row.values[i], 3), number(row.contributions[i], 3)) for name, i in zip(names, top, strict=True)
    ]
    bins.append(("all other bins", "", number(row.score - row.base - added.sum(), 3)))
    tables = [Table(("Bin", "Value", "Contribution"), bins, fold="Show as table")]
    if row.likenesses:
        alike = [
            (one.name, words(one.answer), number(one.similarity, 2), number(one.contribution, 2))
            for one in row.likenesses
        ]
        heads, kinds = (
            ("Landmark or row", "Predicted", "Similarity", "Contribution"),
            ("text", "text", "number", "number"),
        )
        tables.append(Table(heads, alike, kinds, "Landmarks or rows that contribute the most"))
    if row.counterfactual is not None:
        tables.append(_changes(row.counterfactual))
    figures = [*_paintings(row, predicted), *_of_drawing(row, predicted)]
    if top.size:
        figures.append(Figure(lambda: contribution_bars(names, added, id)))
    return Section(
        f"Row {row.name}: predicted {predicted}{told}",
        f"{said} is {number(row.score, 3)}; {number(row.base, 3)} of it comes from the mean row.",
        tuple(figures),
        tuple(tables),
    )


def _changes(least: Counterfactual) -> Table:
    """Return the least change that flips the prediction."""
    listed = zip(least.names, least.values, least.values + least.changes, strict=True)
    told = f"The least change for {words(least.after)}: {number(least.size, 3)} in sum"
    if least.nearest is not None:
        told += f"; the nearest row with this prediction is {least.nearest}, {number(least.distance, 3)} away"
    rows = [(str(name), number(value, 3), number(changed, 3)) for name, value, changed in listed]
    return Table(("Bin", "Value", "Changed to"), rows, caption=told)


def _paintings(row: ExplainedRow, predicted: str) -> list[Figure]:
    """Return the row as a picture, beside the contributions painted over it."""
    pictures = [(row.picture, f"Row {one_line(row.name)} as a picture.")]
    pictures.append((row.painted, f"Contributions of the pixels: blue in favour of {predicted}, orange against it."))
    shown = [image(address, alt, "painting") for address, alt in pictures if address is not None]
    return [Figure(lambda: "".join(shown), kind="paintings")] if shown else []


def _of_drawing(row: ExplainedRow, predicted: str) -> list[Figure]:
    """Return the drawing of the row, such as that of a molecule, with what its parts add."""
    picture = row.drawing
    if picture is None:
        return []
    effect = "raises the prediction, orange lowers it"
    if row.rival is not None:
        effect = f"in favour of {predicted}, orange against it"
    alt = f"Contributions of the atoms of row {one_line(row.name)}: blue {effect}."
    caption = (
        f"What the atoms add, {number(row.score - picture.base, 3)} together, to the {number(picture.base, 3)} of an "
        "empty row: each bin is divided among the atoms that it counts."
    )
    figures = [Figure(lambda: image(picture.image, alt, "drawing"), caption=caption)]
    if picture.blocks:
        shown = [
            image(address, f"{alt} Bins of {one_line(name)} alone.", "drawing") for name, address, _ in picture.blocks
        ]
        sums = "; ".join(f"{one_line(name)}, {number(added, 3)}" for name, _, added in picture.blocks)
        figures.append(Figure(lambda: "".join(shown), caption=f"The same for the bins of each block: {sums}."))
    return figures


def contribution_bars(names: Sequence[str], values: np.ndarray, name: str) -> str:
    """Draw positive (blue) and negative (orange) contributions of bins as horizontal bars."""
    with drawing(250, 22 * len(names)) as (figure, axes):
        places = np.arange(len(names))
        axes.barh(places, values, height=0.66, color=[GOOD if v >= 0 else BAD for v in values])
        low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
        for place, value in zip(places, values, strict=True):
            write_beside(axes, place, value, number(value, 2), gap=5 if value >= 0 else -5)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        margin = 0.34 * (high - low)  # space for the numbers
        axes.set(xlim=(low - margin, high + margin), ylim=(len(names) - 0.5, -0.5), xticks=[])
        axes.set_yticks(places, [one_line(label, LONGEST_NAME) for label in names])
        for side in ("bottom", "left"):
            axes.spines[side].set_visible(False)
        listed = ", ".join(f"{one_line(n)} {number(v, 2)}" for n, v in zip(names, values, strict=True))
        return to_svg(figure, name, f"Contributions of bins: {listed}.")
