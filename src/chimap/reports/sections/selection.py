"""How the strength and the number of components were chosen."""

from __future__ import annotations

from chimap._formatting import number
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import FEWEST_POINTS
from chimap.reports.measures import Metrics
from chimap.reports.section import Figure, Section, Table
from chimap.reports.selection import components_figure, strength_curve


def strength(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the scores over the strength of the penalty."""
    curve = evaluation.curve
    if curve is None or curve.alphas.size == 1:  # nothing was chosen
        return None
    method = "" if curve.method in curve.measure else f"; {curve.method}"
    band = " The band is one standard error over the folds." if curve.standard_errors.any() else ""
    rows = [
        ("Chosen strength", number(curve.chosen)),
        ("Score at this strength", number(curve.error_at_chosen)),
        ("Strengths tried", f"{curve.alphas.size}, from {number(curve.alphas[0])} to {number(curve.alphas[-1])}"),
    ]
    return Section(
        "Strength of the penalty",
        f"{curve.measure[0].upper()}{curve.measure[1:]}{method}.{band}",
        (Figure(lambda: strength_curve(curve)),) if curve.alphas.size >= FEWEST_POINTS else (),
        (Table((), rows),),
        note="The chosen strength is at the border of the range that was tried. A wider range may give a better one."
        if curve.at_border
        else "",
        layout="stack",
        is_half=True,
    )


def components(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the scores over the number of principal components."""
    scores = evaluation.components
    if scores is None:
        return None
    n_components, alpha = scores.chosen
    return Section(
        "Principal components",
        "Each fold is predicted with weights learned from the other folds. Chosen: "
        f"{n_components:,} components per block at strength {number(alpha)}.",
        (Figure(lambda: components_figure(scores)),),
    )
