"""Rows that are like none of the classes."""

from __future__ import annotations

from chimap.reports.evaluation import Evaluation
from chimap.reports.measures import Metrics
from chimap.reports.section import Section


def section(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return how many rows are like none of the classes, if they were asked for."""
    found = evaluation.unassigned
    if found is None:
        return None
    return Section("Unassigned rows", f"Like none of the classes: {found}.", lines={"unassigned": str(found)})
