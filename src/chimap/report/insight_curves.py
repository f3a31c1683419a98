"""The figures of an evaluation beyond the score: learning curve, ROC curve, calibration."""

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
    """Draw the held-out score over the number of training rows (logarithmic)."""
    measure = measure_in_words(curve.measure)
    with house_style():
        figure = new_figure(330, 210)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.plot(curve.rows, curve.scores, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.set(xscale="log", xlim=(curve.rows[0] / 1.1, curve.rows[-1] * 1.1))
        axes.margins(y=0.2)
        log_axis(axes.xaxis, *axes.get_xlim())
        axes.grid(axis="y")
        axes.set_xlabel("training rows", labelpad=8)
        axes.set_ylabel(measure, labelpad=8)
        steps = ", ".join(f"{n:,} rows {number(s, 3)}" for n, s in zip(curve.rows, curve.scores, strict=True))
        return to_svg(figure, "learning", f"Held-out {measure} by number of training rows: {steps}.")


def roc_figure(two: TwoClasses, auc: float) -> str:
    """Draw the ROC curve: true positive rate over false positive rate, the second class being positive."""
    false_positives, true_positives = two.roc()
    with house_style():
        figure = new_figure(260, 260)
        axes = _square(figure)
        axes.plot(false_positives, true_positives, color=GOOD, linewidth=2)
        axes.annotate(f"AUC {auc:.3f}", (0.95, 0.06), ha="right", color=INK, weight="bold")
        axes.set_xlabel("false positive rate", labelpad=8)
        axes.set_ylabel("true positive rate", labelpad=8)
        return to_svg(figure, "roc", f"ROC curve, with an area of {auc:.3f} below it.")


def reliability_figure(two: TwoClasses) -> str:
    """Draw the share of the second class among the rows of each band of predicted probabilities."""
    x, y = "predicted probability", "share of the second class"
    return _shares(
        two.reliability(), "reliability", x, y, "Share of the second class by predicted probability"
    )


def calibration_figure(reliability: Reliability) -> str:
    """Draw the share of right predictions in each band of predicted probabilities."""
    x, y = "predicted probability", "share of right predictions"
    title = "Share of right predictions by predicted probability"
    return _shares(reliability.bands(), "calibration", x, y, title)


def _shares(bands: Sequence[tuple[float, float, int]], name: str, x: str, y: str, title: str) -> str:
    """Draw shares over probabilities, with larger dots for more rows; ``title`` begins the text alternative."""
    probabilities, shares, rows = (np.array(column) for column in zip(*bands, strict=True))
    with house_style():
        figure = new_figure(260, 260)
        axes = _square(figure)
        axes.plot(probabilities, shares, color=GOOD, linewidth=1.5)
        axes.scatter(probabilities, shares, 12 + 90 * rows / rows.max(), color=GOOD, zorder=3)
        axes.set_xlabel(x, labelpad=8)
        axes.set_ylabel(y, labelpad=8)
        steps = ", ".join(f"{percent(p, 0)}: {percent(t, 0)}" for p, t, _ in bands)
        return to_svg(figure, name, f"{title}: {steps}.")


def _square(figure: Figure) -> Axes:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, dashes=(4, 3))
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.grid()
    return axes
