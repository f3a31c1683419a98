"""Scores of a model retrained on splits, at random or forward in time."""

from __future__ import annotations

from chimap._formatting import number, percent
from chimap.reports.evaluation import Evaluation
from chimap.reports.measures import Metrics
from chimap.reports.section import Section, Table


def section(evaluation: Evaluation[Metrics]) -> Section | None:
    """Return mean and standard deviation of each score over the splits."""
    splits = evaluation.splits
    if splits is None:
        return None
    shown = percent if splits.are_shares else number
    rows = [(name, shown(mean), shown(deviation)) for name, mean, deviation in splits.rows()]
    which = (
        f"on the rows before each of {splits.n_splits} cuts in time and scored up to the next cut: at first with"
        if splits.is_forward
        else f"on {splits.n_splits} random splits, with"
    )
    return Section(
        "Forward in time" if splits.is_forward else "Repeated splits",
        f"The model was retrained {which} {splits.n_train:,} training rows and {splits.n_test:,} test rows. "
        f"{splits.note}".rstrip(),
        tables=(Table(("Score", "Mean", "Standard deviation"), rows),),
        lines={"forward" if splits.is_forward else "splits": splits.lines()},
    )
