"""The figures of an explanation: bars of importances and contributions, and functions of single bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._formatting import number, one_line
from chimap.explain.effects import BinEffect
from chimap.reports.figures import (
    BAD,
    GOOD,
    LINES,
    MUTED,
    drawing,
    horizontal_bars,
    house_style,
    new_figure,
    to_svg,
    write_beside,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_OUTPUTS = 5  # largest number of outputs whose functions are drawn


_LONGEST_NAME = 30  # largest number of characters of a name next to its bar


def importance_bars(names: Sequence[str], values: np.ndarray) -> str:
    """Draw the importance of bins as horizontal bars, the first on top."""
    with drawing(250, 22 * len(names)) as (figure, axes):
        horizontal_bars(axes, names, values, height=0.66, longest=_LONGEST_NAME)
        listed = ", ".join(f"{one_line(n)} {number(v, 3)}" for n, v in zip(names, values, strict=True))
        return to_svg(figure, "importance", f"Importance of bins: {listed}.")


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
        axes.set_yticks(places, [one_line(label, _LONGEST_NAME) for label in names])
        for side in ("bottom", "left"):
            axes.spines[side].set_visible(False)
        listed = ", ".join(f"{one_line(n)} {number(v, 2)}" for n, v in zip(names, values, strict=True))
        return to_svg(figure, name, f"Contributions of bins: {listed}.")


def shown_outputs(effect: BinEffect) -> np.ndarray:
    """Return the indices of the outputs that the bin changes the most, ascending."""
    return np.sort(np.argsort(-effect.spread, kind="stable")[:MOST_OUTPUTS])


def effect_curves(effect: BinEffect, output_names: Sequence[object], name: str) -> str:
    """Draw the scores over the values of a bin, and below them the histogram of the values."""
    with house_style():
        figure = new_figure(250, 190)
        axes = figure.add_axes((0, 0.22 if effect.counts.size else 0, 1, 0.78 if effect.counts.size else 1))
        chosen = shown_outputs(effect)
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
