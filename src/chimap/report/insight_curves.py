"""Figures of what an evaluation says beyond the score: learning curve, ROC, reliability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap.report._figure import GOOD, INK, MUTED, house_style, new_figure, to_svg
from chimap.report._plain import measure_in_words, number, percent
from chimap.report.curves import log_axis
from chimap.report.insight import TwoClasses
from chimap.report.reliability import Reliability
from chimap.selection import LearningCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def learning_curve(curve: LearningCurve) -> str:
    """Held-out score over rows to learn from (logarithmic)."""
    measure = measure_in_words(curve.measure)
    with house_style():
        figure = new_figure(330, 210)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.plot(curve.rows, curve.scores, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.set(xscale="log", xlim=(curve.rows[0] / 1.1, curve.rows[-1] * 1.1))
        axes.margins(y=0.2)
        log_axis(axes.xaxis, *axes.get_xlim())
        axes.grid(axis="y")
        axes.set_xlabel("rows to learn from", labelpad=8)
        axes.set_ylabel(measure, labelpad=8)
        steps = ", ".join(f"{n:,} rows {number(s, 3)}" for n, s in zip(curve.rows, curve.scores, strict=True))
        return to_svg(figure, "learning", f"Held-out {measure} over rows to learn from: {steps}.")


def roc_figure(two: TwoClasses, auc: float) -> str:
    """Share of the second class that is found, over the share of the first that is taken for it."""
    wrong, right = two.roc()
    with house_style():
        figure = new_figure(260, 260)
        axes = _square(figure)
        axes.plot(wrong, right, color=GOOD, linewidth=2)
        axes.annotate(f"AUC {auc:.3f}", (0.95, 0.06), ha="right", color=INK, weight="bold")
        axes.set_xlabel("share of the first class taken for it", labelpad=8)
        axes.set_ylabel("share of the second class", labelpad=8)
        return to_svg(figure, "roc", f"ROC curve, with an area of {auc:.3f} below it.")


def reliability_figure(two: TwoClasses) -> str:
    """Share of the second class among rows of about each probability."""
    said, share = "probability that the score says", "share of the second class"
    return _shares(
        two.reliability(), "reliability", said, share, "Share of the second class by what the score says"
    )


def calibration_figure(reliability: Reliability) -> str:
    """Share of right answers among those of about each probability."""
    said, share = "probability of the answer", "share of answers that are right"
    told = "Share of right answers by the probability that they have"
    return _shares(reliability.bands(), "calibration", said, share, told)


def _shares(bands: Sequence[tuple[float, float, int]], name: str, x: str, y: str, told: str) -> str:
    """What is true of rows of about each probability, larger dots for more rows; ``told`` in words."""
    said, true, rows = (np.array(part) for part in zip(*bands, strict=True))
    with house_style():
        figure = new_figure(260, 260)
        axes = _square(figure)
        axes.plot(said, true, color=GOOD, linewidth=1.5)
        axes.scatter(said, true, 12 + 90 * rows / rows.max(), color=GOOD, zorder=3)
        axes.set_xlabel(x, labelpad=8)
        axes.set_ylabel(y, labelpad=8)
        steps = ", ".join(f"{percent(p, 0)}: {percent(t, 0)}" for p, t, _ in bands)
        return to_svg(figure, name, f"{told}: {steps}.")


def _square(figure: Figure) -> Axes:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, dashes=(4, 3))
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.grid()
    return axes
