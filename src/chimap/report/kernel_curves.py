"""The figures of the page of a learned kernel, each as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import JSON
from chimap.report._figure import BAD, GOOD, INK, LINES, MUTED, house_style, new_figure, to_svg
from chimap.report._plain import number, one_line, percent
from chimap.report.curves import log_axis
from chimap.report.kernel import ChannelPath, ChannelWeights, Widths

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BARS = 32  # largest number of widths that are drawn as named bars; more are drawn as lines over the columns


def width_ratios(widths: Widths) -> str:
    """Draw how much narrower or wider the kernel has become in each group of columns (logarithmic)."""
    ratios = widths.ratios
    listed = ", ".join(
        f"{one_line(n)} {number(r, 3)}" for n, r in zip(widths.names, ratios[:BARS], strict=False)
    )
    alt = f"Learned over initial inverse width of {ratios.size} groups of columns: {listed}."
    with house_style():
        if ratios.size > BARS:
            return to_svg(_ratio_line(ratios), "widths", alt)
        figure = new_figure(420, 26 * ratios.size + 10)
        axes = figure.add_axes((0, 0, 1, 1))
        places = np.arange(ratios.size)
        colours = [GOOD if ratio >= 1 else BAD for ratio in ratios]
        axes.barh(places, ratios - 1, left=1, height=0.62, color=colours)
        low, high = min(ratios.min(), 0.5) / 1.5, max(ratios.max(), 2.0) * 1.5
        axes.set(xscale="log", xlim=(low, high), ylim=(ratios.size - 0.5, -0.5))
        log_axis(axes.xaxis, low, high)
        axes.axvline(1, color=INK, linewidth=0.8)
        for place, ratio in zip(places, ratios, strict=True):
            axes.annotate(
                f"{number(ratio, 2)} ×", (ratio, place), xytext=(6 if ratio >= 1 else -6, 0),
                textcoords="offset points", va="center", ha="left" if ratio >= 1 else "right", color=INK,
            )  # fmt: skip
        axes.set_yticks(places, [one_line(name, 28) for name in widths.names])
        axes.grid(axis="x")
        axes.set_xlabel("wider  ←  learned over initial inverse width  →  narrower", labelpad=8)
        return to_svg(figure, "widths", alt)


def _ratio_line(ratios: np.ndarray) -> Figure:
    figure = new_figure(720, 220)
    axes = figure.add_axes((0, 0, 1, 1))
    low, high = min(ratios.min(), 0.5) / 1.3, max(ratios.max(), 2.0) * 1.3
    axes.set(yscale="log", ylim=(low, high), xlim=(-0.5, ratios.size - 0.5))
    log_axis(axes.yaxis, low, high)
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.vlines(np.arange(ratios.size), 1, ratios, color=np.where(ratios >= 1, GOOD, BAD), linewidth=1)
    axes.grid(axis="y")
    axes.set_xlabel("group of columns", labelpad=8)
    axes.set_ylabel("learned / initial inverse width", labelpad=8)
    return figure


def learning_curve(history: Sequence[JSON], metric: str) -> str:
    """Draw the objective and the score on validation rows by iteration, one above the other."""
    iterations = [step["iteration"] for step in history]
    panels = [("objective", GOOD, "objective", [step["objective"] for step in history])]
    scores = [step["validation_score"] for step in history]
    if all(score is not None for score in scores):
        panels.append((f"validation {metric}", LINES[1], "score", scores))
    with house_style():
        figure = new_figure(400, 170 * len(panels) + 40 * (len(panels) - 1))
        height = 1 / (len(panels) + 0.24 * (len(panels) - 1))
        for place, (label, colour, _, values) in enumerate(panels):
            axes = figure.add_axes((0, 1 - height - place * 1.24 * height, 1, height))
            axes.plot(iterations, values, color=colour, linewidth=2, marker="o", markersize=4)
            axes.grid(axis="y")
            axes.set_ylabel(label, labelpad=8)
            _few_ticks(axes, label.endswith("accuracy"))
            if place == len(panels) - 1:
                axes.set_xlabel("iteration", labelpad=8)
        best = scores.index(max(scores)) if len(panels) > 1 else len(history) - 1
        alt = (
            f"Objective from {number(history[0]['objective'])} to {number(history[-1]['objective'])} in "
            f"{iterations[-1]} iterations; the best score is at iteration {best}."
        )
        return to_svg(figure, "learning", alt)


def _few_ticks(axes: Axes, is_share: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: percent(v) if is_share else number(v, 4)))


def channel_weights(channels: ChannelWeights) -> str:
    """Draw the share of each channel in the sum of all kernel weights as bars."""
    shares = channels.shares
    with house_style():
        figure = new_figure(360, 26 * shares.size + 10)
        axes = figure.add_axes((0, 0, 1, 1))
        places = np.arange(shares.size)
        axes.barh(places, shares, height=0.62, color=GOOD)
        for place, share in zip(places, shares, strict=True):
            axes.annotate(
                percent(share) if share > 0 else "not used", (share, place), xytext=(6, 0),
                textcoords="offset points", va="center", color=INK if share > 0 else MUTED,
            )  # fmt: skip
        axes.set(xlim=(0, max(float(shares.max()), 1e-9) * 1.2), ylim=(shares.size - 0.5, -0.5), xticks=[])
        axes.set_yticks(places, [one_line(name, 28) for name in channels.names])
        axes.spines["bottom"].set_visible(False)
        listed = ", ".join(f"{one_line(n)} {percent(s)}" for n, s in zip(channels.names, shares, strict=True))
        return to_svg(figure, "channels", f"Share of each channel in the kernel weights: {listed}.")


def channel_path(path: ChannelPath) -> str:
    """Draw the weight of each channel over descending strength, starting where none is used; the choice is marked."""
    with house_style():
        figure = new_figure(520, 280)
        axes = figure.add_axes((0, 0, 1, 1))
        by_weight = np.argsort(-path.totals.max(axis=0), kind="stable")
        for rank, j in enumerate(by_weight):
            is_named = rank < len(LINES)
            axes.plot(
                path.alphas, path.totals[:, j], color=LINES[rank] if is_named else MUTED,
                linewidth=2 if is_named else 1, label=one_line(path.names[j], 24) if is_named else None,
            )  # fmt: skip
        chosen = path.alphas[path.chosen]
        axes.axvline(chosen, color=BAD, linewidth=1.2, dashes=(4, 3))
        low, high = float(path.alphas.min()), float(path.alphas.max())
        if high > low:
            axes.set(xscale="log", xlim=(high, low))
            log_axis(axes.xaxis, low, high)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1))
        axes.set_xlabel("strength of the penalty (weaker to the right)", labelpad=8)
        axes.set_ylabel("weight of the channel", labelpad=8)
        alt = (
            f"Weights of {len(path.names)} channels at {path.alphas.size} strengths from {number(high)} to "
            f"{number(low)}; the chosen strength is {number(chosen)}."
        )
        return to_svg(figure, "path", alt)
