"""The scores of classes: the leading ones, and a table of all classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from chimap._formatting import interval_in_words, number, one_line, percent, score_in_words
from chimap.reports.classification import ClassificationMetrics
from chimap.reports.evaluation import Evaluation
from chimap.reports.measures import Baseline, Interval
from chimap.reports.section import ROWS_LISTED, Headline, ScoreBar, Section, folded

MOST_CLASSES_NAMED = 60  # largest number of classes for which the axes of figures name every class


class _Leading(NamedTuple):
    """The score that leads, with its interval, what guessing would score, and how its values are written."""

    label: str
    value: float
    interval: Interval
    baseline: Baseline | None
    shown: Callable[[float], str]
    about: str = ""


def _leading(evaluation: Evaluation[ClassificationMetrics]) -> _Leading:
    """Return the score that leads: of classes of unequal size one that does not depend on the sizes."""
    metrics, rows = evaluation.metrics, f"{evaluation.metrics.n_rows:,} rows"
    unknown = (np.nan, np.nan)
    if metrics.leads_with_auc:
        assert metrics.auc is not None
        k = metrics.of_interest
        name, support = one_line(metrics.classes[k]), int(metrics.support[k])
        about = (
            f"The average precision of class {name} is {metrics.average_precision:.3f}. The balanced accuracy is "
            f"{percent(metrics.balanced_accuracy)}. {metrics.confusion[k, k]:,} of {support:,} rows of class {name} "
            f"are found (recall {percent(metrics.recall[k])}), with {metrics.confusion[1 - k, k]:,} false positives "
            f"(precision {percent(metrics.precision[k])})."
        )
        label = f"ROC AUC on {rows}, {percent(support / metrics.n_rows)} of class {name}"
        interval = metrics.auc_interval or unknown
        return _Leading(label, metrics.auc, interval, Baseline("guessing", 0.5), "{:.3f}".format, about)
    if metrics.is_unequal:
        label, guess = f"Balanced accuracy on {rows} of classes of unequal size", 1 / np.count_nonzero(metrics.support)
        interval = metrics.balanced_interval or unknown
        return _Leading(label, metrics.balanced_accuracy, interval, Baseline("guessing", guess), percent)
    return _Leading(f"Accuracy on {rows}", metrics.accuracy, metrics.interval, evaluation.baseline, percent)


def headline(evaluation: Evaluation[ClassificationMetrics]) -> Section:
    """Return the leading score with its own interval, and the other measures beside it."""
    metrics = evaluation.metrics
    label, value, interval, baseline, shown, about = _leading(evaluation)
    low, high = interval
    linear = evaluation.insight and evaluation.insight.linear_line
    keys = [f"{number(100 * metrics.confidence)} % confidence interval: {shown(low)} to {shown(high)}"]
    no_better = (
        f"The confidence interval is not entirely above the baseline: on these rows, the model is not shown to be "
        f"better than {one_line(baseline.name)}."
        if baseline is not None and low <= baseline.value
        else ""
    )
    return Headline(
        "Accuracy",
        label=label,
        score=shown(value),
        about=about,
        scale=ScoreBar(value, interval, None if baseline is None else baseline.value),
        keys=(*keys, *([linear] if linear else [])),
        baseline="" if baseline is None else f"Baseline, {one_line(baseline.name)}: {shown(baseline.value)}",
        facts=tuple(_facts(evaluation)),
        note=no_better,
        lines=metrics.lines(evaluation.ranking),
    )


def _facts(evaluation: Evaluation[ClassificationMetrics]) -> list[tuple[str, str, str]]:
    """Return the measures beside the leading one: name, value and explanation."""
    metrics, ranking, always, facts = evaluation.metrics, evaluation.shown_ranking, evaluation.baseline, []
    if metrics.is_unequal or metrics.leads_with_auc:  # accuracy does not lead
        said = " to ".join(percent(end) for end in metrics.interval)
        said += "" if always is None else f"; {one_line(always.name)}: {percent(always.value)}"
        facts.append(("Accuracy", percent(metrics.accuracy), said))
    facts += [
        ("Right", f"{metrics.n_correct:,}", f"of {metrics.n_rows:,} rows"),
        ("Wrong", f"{metrics.n_rows - metrics.n_correct:,}", f"in {len(metrics.classes):,} classes"),
    ]
    if not metrics.is_unequal:
        said = f"{_ends(metrics.balanced_interval, 'accuracy')}mean recall over the classes (class recognition rate)"
        facts.append(("Balanced accuracy", percent(metrics.balanced_accuracy), said))
    if ranking is not None:
        mean = percent(ranking.mean_average_precision)
        method = "" if ranking.method == "area" else f", method “{ranking.method}”"
        facts.append(("Mean average precision", mean, f"over the classes{method}"))
    if metrics.auc is not None and not metrics.leads_with_auc:
        first, second = (one_line(name) for name in metrics.classes)
        ends = _ends(metrics.auc_interval, "roc_auc")
        said = f"{ends}probability that a row of class {second} scores above one of class {first}"
        facts.append(("ROC AUC", score_in_words(metrics.auc, "roc_auc"), said))
    facts += [(one.name.capitalize(), one.text, one.about) for one in metrics.of_structure]
    return [*facts, ("Macro F1", percent(metrics.macro_f1), "mean F1 over the classes")]


def _ends(interval: Interval | None, measure: str) -> str:
    return "" if interval is None else f"95 %: {interval_in_words(interval, measure)}; "


def section(evaluation: Evaluation[ClassificationMetrics]) -> Section:
    """Return the table of all classes, by ascending recall; classes without rows come last."""
    metrics = evaluation.metrics
    recall, n_classes = metrics.recall, len(metrics.classes)
    order = np.argsort(np.where(np.isnan(recall), np.inf, recall), kind="stable")
    heads, kinds = (
        ["Class", "Recall", "", "Precision", "F1", "Rows"],
        ["text", "number", "bar", "number", "extra", "number"],
    )
    rows: list[list[object]] = [
        [
            metrics.classes[i],
            percent(recall[i]),
            np.nan_to_num(recall[i]),
            percent(metrics.precision[i]),
            percent(metrics.f1[i]),
            f"{metrics.support[i]:,}",
        ]
        for i in order
    ]
    if n_classes > MOST_CLASSES_NAMED:  # the confusion matrix shows their numbers
        heads, kinds = ["No.", *heads], ["number", *kinds]
        rows = [[f"{i + 1}", *row] for i, row in zip(order, rows, strict=True)]
    summary = (
        "The classes are sorted by recall, lowest first. Recall is the share of the rows of a class that are predicted "
        "as it; precision is the share of the rows predicted as a class that are of it; F1 is the harmonic mean of the "
        "two."
    )
    caption = f"The {ROWS_LISTED} of {n_classes} classes with the lowest recall"
    return Section(
        "Classes", summary, tables=folded(heads, rows, "classes", kinds, caption=caption, whole="All classes")
    )
