"""What an evaluation shows besides the score: learning curve, important bins, worst mistakes."""

from __future__ import annotations

from chimap._formatting import measure_in_words, number, words
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import GOOD, drawing, log_axis, to_svg
from chimap.reports.measures import Metrics
from chimap.reports.section import Figure, Section, Table
from chimap.selection.learning_curve import LearningCurve


def more_rows(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the learning curve."""
    curve = evaluation.insight and evaluation.insight.curve
    if not curve:
        return None
    measure = measure_in_words(curve.measure)
    rows = [(f"{n:,}", number(score, 3, zeros=True)) for n, score in zip(curve.rows, curve.scores, strict=True)]
    return Section(
        "Would more rows help?",
        f"The {measure} on held-out rows of models fitted on more and more of the training rows. The last step, from "
        f"{curve.rows[-2]:,} to {curve.rows[-1]:,} rows, changed it by {number(curve.last_gain, 2)}.",
        (Figure(lambda: learning_curve(curve)),),
        (Table(("Training rows", measure[0].upper() + measure[1:]), rows, ("number", "number")),),
    )


def top_bins(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the most important bins."""
    ranked = evaluation.insight and evaluation.insight.importance
    if not ranked:
        return None
    return Section(
        "Most important bins",
        "The command ‘chimap explain’ shows how each of them changes the scores.",
        tables=(Table(("Bin", "Importance"), [(name, number(value, 3, zeros=True)) for name, value in ranked]),),
        is_half=True,
    )


def mistakes(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the misclassified rows with the largest margins."""
    summary = (
        "The misclassified rows with the largest margins. Some of their labels may be wrong. The margin is the score "
        "of the predicted class minus the score of the true class."
    )
    return _mistakes(evaluation, summary, "Margin")


def largest_errors(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the rows with the largest errors."""
    summary = "The rows with the largest errors. Some of their targets may be wrong."
    return _mistakes(evaluation, summary, "Absolute error")


def _mistakes(evaluation: Evaluation[Metrics], summary: str, head: str) -> Section | None:
    worst = evaluation.insight and evaluation.insight.mistakes
    if not worst:
        return None
    rows = [(m.row, words(m.true), words(m.predicted), number(m.margin, 3, zeros=True)) for m in worst]
    table = Table(("Row", "True", "Predicted", head), rows, ("text", "text", "text", "number"))
    return Section("Worst mistakes", summary, tables=(table,), is_half=True)


def learning_curve(curve: LearningCurve) -> str:
    """Draw the held-out score over the number of training rows (logarithmic)."""
    measure = measure_in_words(curve.measure)
    with drawing(330, 210) as (figure, axes):
        axes.plot(curve.rows, curve.scores, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.set(xscale="log", xlim=(curve.rows[0] / 1.1, curve.rows[-1] * 1.1))
        axes.margins(y=0.2)
        log_axis(axes.xaxis, *axes.get_xlim())
        axes.grid(axis="y")
        axes.set(xlabel="training rows", ylabel=measure)
        steps = ", ".join(f"{n:,} rows {number(s, 3)}" for n, s in zip(curve.rows, curve.scores, strict=True))
        return to_svg(figure, "learning", f"Held-out {measure} by number of training rows: {steps}.")
