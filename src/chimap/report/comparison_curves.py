"""The figures of a comparison: score over training rows, and score over prediction time.

A finalist has the same colour and marker in all figures; models that did not reach the last round are grey.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import Parameters
from chimap.report._figure import INK, LINES, MUTED, RULE, house_style, new_figure, to_svg
from chimap.report._plain import number, one_line, percent
from chimap.report.comparison import Comparison
from chimap.report.curves import log_axis
from chimap.report.entrants import Entrant, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MARKERS = "osD^vPX*"
SIZE = (380, 250)
_NARROW = 30  # longest label, in characters, for a legend of two columns
_MOST = 8  # largest number of finalists that are drawn in colour


def score_by_rows(comparison: Comparison) -> str:
    """Draw the score over the number of training rows, round by round."""
    from matplotlib.ticker import NullLocator

    with house_style():
        figure = new_figure(*SIZE)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xscale("log")
        coloured = styled(comparison)
        names = {entrant.name for entrant, _ in coloured}
        others = [e for e in comparison.ranked if e.name not in names]
        for i, entrant in enumerate(others):
            label = "others" if i == 0 else None
            x, y = _points(entrant.runs, _rows)
            axes.plot(x, y, color=RULE, marker=".", linewidth=1.2, zorder=1, label=label)
        for entrant, style in coloured:
            x, y = _points(entrant.runs, _rows)
            axes.plot(x, y, label=one_line(entrant.words, 60), **style)
            error = entrant.last.standard_error
            if np.isfinite(error):
                axes.errorbar(x[-1:], y[-1:], error, fmt="none", ecolor=style["color"], elinewidth=1)
        rounds = sorted({run.n_rows for e in comparison.ranked for run in e.runs})
        _wide(axes, rounds)
        axes.set_xticks(rounds, [f"{n:,}" for n in rounds])
        axes.xaxis.set_minor_locator(NullLocator())
        return _finished(figure, axes, comparison, "rows", "training rows")


def score_by_prediction(comparison: Comparison) -> str:
    """Draw the score of the finalists over their prediction time, with the Pareto front of both."""
    with house_style():
        figure = new_figure(*SIZE)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xscale("log")
        for entrant, style in styled(comparison):
            x, y = _points([entrant.last], lambda run: 1e6 * run.predict_seconds)
            axes.plot(x, y, label=one_line(entrant.words, 60), **(style | {"linestyle": "none"}))
        front = pareto_front(comparison.finalists)
        x, y = _points([e.last for e in front], lambda run: 1e6 * run.predict_seconds)
        axes.plot(x, y, color=MUTED, linewidth=1.2, zorder=1, drawstyle="steps-post")
        chosen = comparison.recommendation.chosen.last
        axes.plot(
            [1e6 * max(chosen.predict_seconds, 1e-9)], [chosen.score], "o", markersize=15, markerfacecolor="none",
            markeredgecolor=INK, markeredgewidth=1.6, label="recommended",
        )  # fmt: skip
        log_axis(axes.xaxis, *_wide(axes, [1e6 * e.last.predict_seconds for e in comparison.finalists]))
        return _finished(figure, axes, comparison, "prediction", "prediction time per row (µs)")


def pareto_front(entrants: Sequence[Entrant]) -> list[Entrant]:
    """Return the entrants that no other beats in both score and prediction time, fastest first."""
    front: list[Entrant] = []
    for e in sorted(entrants, key=lambda e: (e.last.predict_seconds, -e.last.score)):
        if not front or e.last.score > front[-1].last.score:
            front.append(e)
    return front


def styled(comparison: Comparison) -> list[tuple[Entrant, Parameters]]:
    """Return the best finalists with their colour and marker."""
    return [
        (entrant, {
            "color": LINES[i % len(LINES)], "marker": MARKERS[i % len(MARKERS)], "markersize": 6, "linewidth": 1.7,
            "linestyle": ":" if entrant.is_linear else "-",
        })
        for i, entrant in enumerate(comparison.finalists[:_MOST])
    ]  # fmt: skip


def _rows(run: Run) -> float:
    return run.n_rows


def _points(runs: Sequence[Run], x_of: Callable[[Run], float]) -> tuple[list[float], list[float]]:
    return [max(x_of(run), 1e-6) for run in runs], [run.score for run in runs]


def _wide(axes: Axes, values: Sequence[float]) -> tuple[float, float]:
    """Set the limits of the horizontal axis slightly beyond the values, and return them."""
    low, high = max(min(values), 1e-6), max(max(values), 1e-6)
    margin = max(1.2, (high / low) ** 0.06)
    axes.set_xlim(low / margin, high * margin)
    return low / margin, high * margin


def _finished(figure: Figure, axes: Axes, comparison: Comparison, name: str, x_label: str) -> str:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    is_share = comparison.measure == "accuracy"
    low, high = axes.get_ylim()
    digits = 0 if high - low > 0.05 else 1
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: percent(value, digits) if is_share else number(value, 4))
    )
    axes.grid(axis="y")
    y_label = f"{comparison.metric} on held-out rows"
    axes.set_xlabel(x_label, labelpad=8)
    axes.set_ylabel(y_label, labelpad=8)
    legend_below(axes)
    listed = ", ".join(one_line(e.words) for e in comparison.ranked)
    return to_svg(figure, f"comparison-{name}", f"{y_label} over {x_label}: {listed}.")


def legend_below(axes: Axes) -> None:
    """Place the legend below the axes, in two columns if there are many short names."""
    labels = axes.get_legend_handles_labels()[1]
    is_long = len(labels) > 6 and max(map(len, labels)) <= _NARROW
    axes.legend(
        loc="upper left", bbox_to_anchor=(-0.02, -0.2), borderaxespad=0, fontsize=11.5, handlelength=2.2,
        labelspacing=0.45, ncols=2 if is_long else 1,
    )  # fmt: skip
