"""The scores of several tasks or targets: their means, and a table of all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._formatting import interval_in_words, measure_in_words, number, one_line, score_in_words
from chimap.reports.evaluation import Evaluation
from chimap.reports.section import ROWS_LISTED, Headline, ScoreBar, Section, folded
from chimap.reports.tasks import TaskMetrics


def headline(evaluation: Evaluation[TaskMetrics]) -> Section:
    """Return the means of the measures over the tasks."""
    metrics, baseline = evaluation.metrics, evaluation.baseline
    noun, n_tasks, lead = metrics.noun, len(metrics.names), metrics.leading(baseline)
    name = measure_in_words(lead.measure)
    measured = f"Each {noun} is measured on the rows that have a value for it, and has the same weight in the mean."
    facts = [
        (f"Mean {measure_in_words(name)}", number(metrics.mean(name), 3, zeros=True), "")
        for name in metrics.measures
        if name != metrics.first
    ]
    facts.append(("Known values", f"{metrics.n_seen.sum():,}", f"of {metrics.n_rows * n_tasks:,}"))
    unmeasured = int(np.isnan(metrics.measures[metrics.first]).sum())
    lacking = "two rows with a value" if metrics.n_positive is None else "rows of both labels"
    return Headline(
        f"Means over the {noun}s",
        label=f"{name[0].upper()}{name[1:]} over {n_tasks:,} {noun}s, on {metrics.n_rows:,} rows",
        score=score_in_words(lead.value, lead.measure),
        scale=ScoreBar.of(lead),
        keys=(*lead.keys(metrics.confidence), measured),
        baseline=lead.baseline_line("guessing" if baseline is None else one_line(baseline.name)),
        facts=tuple(facts),
        note=f"{unmeasured} of the {n_tasks} {noun}s cannot be measured here, because they lack {lacking}; the means "
        "are over the others."
        if unmeasured
        else "",
        lines=metrics.lines(),
    )


def _ends(metrics: TaskMetrics, ends: Sequence[float] | np.ndarray) -> str:
    low, high = ends
    return interval_in_words((low, high), metrics.first)


def section(evaluation: Evaluation[TaskMetrics]) -> Section:
    """Return the table of all tasks, by ascending leading measure."""
    metrics, noun = evaluation.metrics, evaluation.metrics.noun
    in_words = [measure_in_words(name) for name in metrics.measures]
    first, *others = (name[0].upper() + name[1:] for name in in_words)
    counted = [] if metrics.n_positive is None else ["Label 1"]
    ends = metrics.intervals
    known = [] if ends is None else [f"{number(100 * metrics.confidence)} % interval"]
    heads = [noun.capitalize(), "Rows", *counted, first, *known, "", *others]
    n_numbers = len(counted) + 1 + len(known)
    kinds = ["text", "number", *["number"] * n_numbers, "bar", *["number"] * len(others)]
    rows = []
    for i in metrics.weakest_first():
        score, *further = (values[i] for values in metrics.measures.values())
        positive = [] if metrics.n_positive is None else [f"{metrics.n_positive[i]:,}"]
        bar = np.clip(np.nan_to_num(score), 0, 1)
        shown = [number(value, 3, zeros=True) for value in further]
        said = [] if ends is None else [_ends(metrics, ends[i]) if np.isfinite(ends[i]).all() else "–"]
        leading = [score_in_words(score, metrics.first), *said, bar]
        rows.append([metrics.names[i], f"{metrics.n_seen[i]:,}", *positive, *leading, *shown])
    caption = f"The {ROWS_LISTED} weakest of {len(rows)} {noun}s"
    return Section(
        f"{noun.capitalize()}s",
        f"The {noun}s are sorted by {in_words[0]}, lowest first.",
        tables=folded(heads, rows, f"{noun}s", kinds, caption=caption, whole=f"All {noun}s"),
    )
