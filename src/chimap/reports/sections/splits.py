"""Scores of a model retrained on random splits."""

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
    return Section(
        "Repeated splits",
        f"The model was retrained on {splits.n_splits} random splits, with {splits.n_train:,} training rows and "
        f"{splits.n_test:,} test rows. {splits.note}".rstrip(),
        tables=(Table(("Score", "Mean", "Standard deviation"), rows),),
        lines={"splits": splits.lines()},
    )
