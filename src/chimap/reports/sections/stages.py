"""Seconds of the stages of a fit and of a prediction."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chimap._formatting import one_line, percent, seconds
from chimap.reports.evaluation import Evaluation
from chimap.reports.figures import drawing, horizontal_bars, to_svg
from chimap.reports.measures import Metrics
from chimap.reports.section import Figure, Section, Table


def section(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return the seconds of each stage, with a table of them behind a click."""
    stages = {name: float(time) for name, time in evaluation.stages.items()}
    if not stages:
        return None
    total = sum(stages.values())
    rows = [(name, f"{time:.3f}", percent(time / total if total else 0)) for name, time in stages.items()]
    rows.append(("Total", f"{total:.3f}", percent(1, 0)))
    return Section(
        "Time",
        f"{seconds(total)} in total.",
        (Figure(lambda: stage_times(stages)),),
        (Table(("Stage", "Seconds", "Share"), rows, fold="Show as table"),),
        is_half=True,
    )


def stage_times(stages: Mapping[str, float]) -> str:
    """Draw the seconds of each stage and their share of the total as horizontal bars, in the given order."""
    names, times = list(stages), np.asarray(list(stages.values()), np.float64)
    total = times.sum()
    shares = times / total if total > 0 else np.zeros(len(names))
    with drawing(200, 28 * len(names)) as (figure, axes):
        told = [f"{seconds(t)} · {percent(p, 0 if p >= 0.1 else 1)}" for t, p in zip(times, shares, strict=True)]
        horizontal_bars(axes, names, shares, told)
        listed = ", ".join(f"{one_line(n)} {seconds(t)}" for n, t in zip(names, times, strict=True))
        return to_svg(figure, "stages", f"Time per stage: {listed}; {seconds(total)} in total.")
