"""What an evaluation shows besides the score: learning curve, important bins, worst mistakes."""

from __future__ import annotations

from chimap._formatting import is_share, measure_in_words, number, score_in_words, words
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import FEWEST_POINTS, GOOD, at_most_one, drawing, log_axis, to_svg
from chimap.reports.measures import Metrics
from chimap.reports.section import Figure, Section, Table
from chimap.selection.learning_curve import LearningCurve


def more_rows(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the learning curve."""
    insight = evaluation.insight
    if insight is None or insight.curve is None:
        return None
    curve = insight.curve
    measure = measure_in_words(curve.measure)
    rows = [(f"{n:,}", score_in_words(score, curve.measure)) for n, score in zip(curve.rows, curve.scores, strict=True)]
    scored = (
        "on the rows of this page"
        if insight.is_curve_of_rows
        else "on training rows that each left out. The headline is scored on other rows, so that its level differs"
    )
    return Section(
        "Would more rows help?",
        f"The {measure} of models fitted on more and more of the training rows, {scored}.",
        (Figure(lambda: learning_curve(curve)),) if curve.rows.size >= FEWEST_POINTS else (),
        (Table(("Training rows", measure[0].upper() + measure[1:]), rows, ("number", "number")),),
        lead=gain_in_words(curve),
    )


def gain_in_words(curve: LearningCurve) -> str:
    """Return what the last step of a learning curve gained: points of shares of rows, else units of the score.

    >>> import numpy as np
    >>> gain_in_words(LearningCurve("accuracy", np.array([250, 500, 1000]), np.array([0.7, 0.8, 0.82])))
    'Twice the rows gained 2 points.'
    >>> gain_in_words(LearningCurve("r2", np.array([250, 900]), np.array([0.8, 0.8])))
    '900 rows instead of 250 gained nothing.'
    """
    before, after = curve.rows[-2:]
    gain = f"{number(curve.last_gain, 2)} of {measure_in_words(curve.measure)}"
    if "accuracy" in curve.measure:
        points = number(round(100 * curve.last_gain, 1), 3)
        gain = f"{points} {'point' if points == '1' else 'points'}"
    if gain.startswith(("0 ", "−")):
        gain = "nothing"
    if abs(after / before - 2) < 0.1:
        return f"Twice the rows gained {gain}."
    return f"{after:,} rows instead of {before:,} gained {gain}."


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
    from matplotlib.ticker import FuncFormatter

    measure = measure_in_words(curve.measure)
    with drawing(330, 210) as (figure, axes):
        axes.plot(curve.rows, curve.scores, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.set(xscale="log", xlim=(curve.rows[0] / 1.1, curve.rows[-1] * 1.1))
        axes.margins(y=0.2)
        at_most_one(axes)
        log_axis(axes.xaxis, *axes.get_xlim())
        if is_share(curve.measure):
            axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{number(100 * share)} %"))
        axes.grid(axis="y")
        axes.set(xlabel="training rows", ylabel=measure)
        steps = ", ".join(f"{n:,} rows {number(s, 3)}" for n, s in zip(curve.rows, curve.scores, strict=True))
        return to_svg(figure, "learning", f"Held-out {measure} by number of training rows: {steps}.")
