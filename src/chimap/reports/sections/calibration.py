"""Calibration of the probabilities, and the ROC curve of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import auc

from chimap._formatting import one_line, percent
from chimap.reports.calibration import Reliability, TwoClasses
from chimap.reports.classification import ClassificationMetrics
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import GOOD, INK, MUTED, house_style, new_figure, to_svg
from chimap.reports.measures import share_in_words
from chimap.reports.section import Figure, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def section(evaluation: Evaluation[ClassificationMetrics]) -> Section | None:
    """Return the calibration, unless the section of two classes shows it."""
    reliability, two = evaluation.reliability, evaluation.insight and evaluation.insight.two
    if reliability is None or (two and two.reliability()):
        return None
    return Section(
        "Calibration of the probabilities",
        "The share of right predictions, by their probability. On the dashed line the two are equal; they differ by "
        f"{percent(reliability.error)} on average (expected calibration error). Larger dots stand for more rows.",
        (Figure(lambda: calibration_figure(reliability)),),
        (_table("Right", reliability.bands()),),
        lines=_lines(evaluation),
    )


def two_classes(evaluation: Evaluation[ClassificationMetrics]) -> Section | None:
    """Return the ROC curve of two classes and, if they have probabilities, their calibration."""
    two = evaluation.insight and evaluation.insight.two
    if not two:
        return None
    metrics, bands, reliability = evaluation.metrics, two.reliability(), evaluation.reliability
    positive = 1 if metrics.positive is None else metrics.positive
    summary = (
        f"The positive class is {one_line(metrics.classes[positive])}, with {metrics.support[positive]:,} of "
        f"{metrics.n_rows:,} rows."
    )
    figures = [Figure(lambda: roc_figure(two))]
    if not bands:
        return Section("ROC curve", summary, tuple(figures), layout="two")
    figures.append(Figure(lambda: reliability_figure(two)))
    summary += (
        " The second figure shows its share among the rows of each predicted probability; on the dashed line the two "
        "are equal."
    )
    if reliability is not None:
        summary += (
            f" The probability of a prediction and the share of right ones differ by {percent(reliability.error)} on "
            "average (expected calibration error)."
        )
    return Section(
        "ROC curve and calibration",
        summary,
        tuple(figures),
        (_table("Share of the positive class", bands, "Show as table"),),
        lines=_lines(evaluation),
        layout="two",
    )


def _lines(evaluation: Evaluation[ClassificationMetrics]) -> dict[str, str | None]:
    if evaluation.reliability is None:
        return {}
    off = share_in_words(evaluation.reliability.error)
    return {"probabilities": f"off by {off} on average (expected calibration error)"}


def _table(share: str, bands: Sequence[tuple[float, float, int]], fold: str = "") -> Table:
    rows = [(percent(probability), percent(is_so), f"{n_rows:,}") for probability, is_so, n_rows in bands]
    return Table(("Mean probability", share, "Rows"), rows, ("number",) * 3, fold=fold)


def roc_figure(two: TwoClasses) -> str:
    """Draw the ROC curve: true positive rate over false positive rate."""
    false_positives, true_positives = two.roc()
    area = auc(false_positives, true_positives)
    with house_style():
        figure = new_figure(260, 260)
        axes = _square(figure)
        axes.plot(false_positives, true_positives, color=GOOD, linewidth=2)
        axes.annotate(f"AUC {area:.3f}", (0.95, 0.06), ha="right", color=INK, weight="bold")
        axes.set(xlabel="false positive rate", ylabel="true positive rate")
        return to_svg(figure, "roc", f"ROC curve, with an area of {area:.3f} below it.")


def reliability_figure(two: TwoClasses) -> str:
    """Draw the share of the positive class among the rows of each band of predicted probabilities."""
    x, y = "predicted probability", "share of the positive class"
    return _shares(two.reliability(), "reliability", x, y, "Share of the positive class by predicted probability")


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
        axes.set(xlabel=x, ylabel=y)
        steps = ", ".join(f"{percent(p, 0)}: {percent(t, 0)}" for p, t, _ in bands)
        return to_svg(figure, name, f"{title}: {steps}.")


def _square(figure: Drawing) -> Axes:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, dashes=(4, 3))
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.grid()
    return axes
