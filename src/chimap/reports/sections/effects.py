"""The functions of single bins, as a section of an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._formatting import number, one_line
from chimap.explain.effects import BinEffect
from chimap.reports.explanation import ModelExplanation
from chimap.reports.figures import GOOD, LINES, MUTED, PALETTE, house_style, new_figure, to_svg
from chimap.reports.section import Figure, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_OUTPUTS = 5  # largest number of outputs whose functions are drawn
_FIGURES = 6  # bins whose functions are drawn
_NAMES = {value: name for name, value in PALETTE.items()}


def section(explanation: ModelExplanation) -> Section | None:
    """Return the functions of the most important bins."""
    effects, names = explanation.effects[:_FIGURES], explanation.output_names
    if not effects:
        return None
    title, said = (
        (
            "Functions of single bins",
            "The model is the sum of these functions. Each shows what a bin adds to each score at each of its values",
        )
        if explanation.is_additive
        else ("Effect of single bins", "Each score at each value of the bin, with all other bins as in the mean row")
    )
    drawn = (
        f" Only the {MOST_OUTPUTS} of {len(names)} classes that these bins change the most are drawn."
        if len(names) > MOST_OUTPUTS
        else ""
    )
    shown = shown_outputs(effects)
    return Section(
        title,
        f"{said}; the mean is subtracted. The histogram below shows how many rows have each value.{drawn}",
        tuple(_figure(effect, names, shown, f"effect{i}") for i, effect in enumerate(effects)),
        legend=[(_NAMES[colour], names[c]) for colour, c in zip(LINES, shown, strict=False)],
        layout="plots",
    )


def _figure(effect: BinEffect, names: Sequence[object], shown: np.ndarray, id: str) -> Figure:
    return Figure(lambda: effect_curves(effect, names, shown, id), effect.name)


def shown_outputs(effects: Sequence[BinEffect]) -> np.ndarray:
    """Return the indices of the outputs that these bins change the most, ascending."""
    largest = np.max([effect.spread for effect in effects], axis=0)
    return np.sort(np.argsort(-largest, kind="stable")[:MOST_OUTPUTS])


def effect_curves(effect: BinEffect, output_names: Sequence[object], chosen: np.ndarray, name: str) -> str:
    """Draw the scores over the values of a bin, and below them the histogram of the values."""
    with house_style():
        figure = new_figure(250, 190)
        axes = figure.add_axes((0, 0.22 if effect.counts.size else 0, 1, 0.78 if effect.counts.size else 1))
        axes.axhline(0, color=MUTED, linewidth=0.8)
        for colour, c in zip(LINES, chosen, strict=False):
            axes.plot(effect.values, effect.effects[:, c], color=colour, linewidth=2)
        _plain_axes(axes, effect)
        if effect.counts.size:
            axes.tick_params(labelbottom=False)
            below = figure.add_axes((0, 0, 1, 0.18))
            below.stairs(effect.counts, effect.edges, fill=True, color=GOOD, alpha=0.5)
            _plain_axes(below, effect)
            below.set(yticks=[], ylim=(0, 1.05 * max(1, effect.counts.max())))
            below.spines["left"].set_visible(False)
        changes = ", ".join(
            f"{one_line(output_names[c])} from {number(effect.effects[0, c], 2)} to {number(effect.effects[-1, c], 2)}"
            for c in chosen
        )
        span = f"from {number(effect.values[0], 3)} to {number(effect.values[-1], 3)}"
        return to_svg(figure, name, f"Scores over bin {one_line(effect.name)} {span}: {changes}.")


def _plain_axes(axes: Axes, effect: BinEffect) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlim(effect.values[0], effect.values[-1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 4)))
    axes.grid(axis="y")
