"""How far the candidates of a race are behind the winner, with the intervals of the differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._formatting import number, one_line
from chimap.reports.comparison import Comparison, RacedCandidate
from chimap.reports.figures import FEWEST_POINTS, GOOD, LONGEST_NAME, MUTED, drawing, to_svg
from chimap.reports.section import Figure, Section
from chimap.selection.jackknife import error_between

_MOST_DRAWN = 12
_STANDARD_ERRORS = 1.96  # to the end of a 95 % interval


def section(comparison: Comparison) -> Section | None:
    """Return the differences from the winner of those that were scored on the same rows, with their intervals."""
    winner = comparison.winner.trial
    others = [r for r in comparison.ranked[1:] if np.isfinite(error_between(r.trial, winner))][:_MOST_DRAWN]
    if len(others) < FEWEST_POINTS:
        return None
    ahead = sum(r.trial.score - winner.score < -_STANDARD_ERRORS * error_between(r.trial, winner) for r in others)
    differ = any(r.trial.score != winner.score or error_between(r.trial, winner) > 0 for r in others)
    if ahead == len(others):
        said = f"is ahead of all {ahead}"
    elif ahead:
        said = f"is ahead of {ahead} of {len(others)}, and ties with the others"
    else:
        said = f"ties with the {len(others)} that were scored on the same rows"
    return Section(
        "Behind the winner",
        "Each score less that of the winner on the same held-out rows, with its 95 % interval: both are wrong on much "
        "the same rows, so that differences are surer than scores. An interval that holds 0 is a tie."
        if differ
        else "They have the same score on these rows.",
        (Figure(lambda: differences(comparison, others)),) if differ else (),
        lead=f"{comparison.winner.name} {said}.",
    )


def differences(comparison: Comparison, others: Sequence[RacedCandidate]) -> str:
    """Draw the differences as dots with intervals, a line a candidate."""
    winner = comparison.winner.trial
    unit, name = (100, "points") if comparison.result.measure == "accuracy" else (1, comparison.metric)
    values = unit * np.array([r.trial.score - winner.score for r in others])
    reach = unit * _STANDARD_ERRORS * np.array([error_between(r.trial, winner) for r in others])
    with drawing(330, 24 * len(others)) as (figure, axes):
        places = np.arange(len(others))
        axes.axvline(0, color=MUTED, linewidth=1, dashes=(4, 3))
        axes.errorbar(values, places, xerr=reach, fmt="o", color=GOOD, markersize=5, linewidth=1.6)
        axes.set_yticks(places, [one_line(r.name, LONGEST_NAME) for r in others])
        axes.set(ylim=(len(others) - 0.5, -0.5), xlabel=f"{name} ahead of {one_line(winner.candidate.name, 40)}")
        axes.grid(axis="x")
        listed = ", ".join(
            f"{one_line(r.name)} {number(v, 2)} ± {number(h, 2)}" for r, v, h in zip(others, values, reach, strict=True)
        )
        return to_svg(figure, "behind", f"Differences from the winner in {name}: {listed}.")
