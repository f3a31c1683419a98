"""The scores of classes: the leading ones, and a table of all classes."""

from __future__ import annotations

import numpy as np

from chimap._formatting import interval_in_words, measure_in_words, on_page, one_line, percent, score_in_words
from chimap.reports.classification import ClassificationMetrics
from chimap.reports.evaluation import Evaluation
from chimap.reports.measures import Interval
from chimap.reports.section import ROWS_LISTED, Headline, ScoreBar, Section, folded

MOST_CLASSES_NAMED = 60  # largest number of classes for which the axes of figures name every class


def headline(evaluation: Evaluation[ClassificationMetrics]) -> Section:
    """Return the leading score with its own interval, and the other measures beside it."""
    metrics, baseline = evaluation.metrics, evaluation.baseline
    lead = metrics.leading(baseline)
    assert lead is not None  # classes have one always
    guesses = "guessing" if lead.measure != "accuracy" or baseline is None else one_line(baseline.name)
    linear = evaluation.insight and evaluation.insight.linear_line
    no_better = (
        f"The confidence interval is not entirely above the baseline: on these rows, the model is not shown to be "
        f"better than {guesses}."
        if lead.guess is not None and lead.interval[0] <= lead.guess
        else ""
    )
    return Headline(
        "Accuracy",
        label=_label(metrics, lead.measure),
        score=on_page(score_in_words(lead.value, lead.measure)),
        about=_about(metrics) if lead.measure == "roc_auc" and metrics.leads_with_auc else "",
        scale=ScoreBar.of(lead),
        keys=(*lead.keys(metrics.confidence), *([linear] if linear else [])),
        baseline=lead.baseline_line(guesses),
        facts=tuple(_facts(evaluation, lead.measure)),
        note=no_better,
        lines=metrics.lines(evaluation.ranking),
    )


def _label(metrics: ClassificationMetrics, measure: str) -> str:
    """Return the name of the leading score, with the rows that it is of."""
    name, rows = measure_in_words(measure), f"{metrics.n_rows:,} rows"
    if measure == "roc_auc" and metrics.leads_with_auc:
        k = metrics.of_interest
        return (
            f"{name} on {rows}, {percent(metrics.support[k] / metrics.n_rows)} of class {one_line(metrics.classes[k])}"
        )
    unequal = " of classes of unequal size" if measure == "balanced_accuracy" and metrics.is_unequal else ""
    return f"{name[0].upper()}{name[1:]} on {rows}{unequal}"


def _about(metrics: ClassificationMetrics) -> str:
    """Return what else is known of the class that is to be found."""
    k = metrics.of_interest
    name, support = one_line(metrics.classes[k]), int(metrics.support[k])
    return (
        f"The average precision of class {name} is {metrics.average_precision:.3f}. The balanced accuracy is "
        f"{percent(metrics.balanced_accuracy)}. {metrics.confusion[k, k]:,} of {support:,} rows of class {name} "
        f"are found (recall {percent(metrics.recall[k])}), with {metrics.confusion[1 - k, k]:,} false positives "
        f"(precision {percent(metrics.precision[k])})."
    )


def _facts(evaluation: Evaluation[ClassificationMetrics], leading: str) -> list[tuple[str, str, str]]:
    """Return the measures beside the leading one: name, value and explanation."""
    metrics, ranking, always, facts = evaluation.metrics, evaluation.shown_ranking, evaluation.baseline, []
    if leading != "accuracy":
        said = " to ".join(percent(end) for end in metrics.interval)
        said += "" if always is None else f"; {one_line(always.name)}: {percent(always.value)}"
        facts.append(("Accuracy", percent(metrics.accuracy), said))
    facts += [
        ("Right", f"{metrics.n_correct:,}", f"of {metrics.n_rows:,} rows"),
        ("Wrong", f"{metrics.n_rows - metrics.n_correct:,}", f"in {len(metrics.classes):,} classes"),
    ]
    if leading != "balanced_accuracy" and not metrics.leads_with_auc:
        said = f"{_ends(metrics.balanced_interval, 'accuracy')}mean recall over the classes (class recognition rate)"
        facts.append(("Balanced accuracy", percent(metrics.balanced_accuracy), said))
    if ranking is not None:
        mean = percent(ranking.mean_average_precision)
        method = "" if ranking.method == "area" else f", method “{ranking.method}”"
        facts.append(("Mean average precision", mean, f"over the classes{method}"))
    if metrics.auc is not None and leading != "roc_auc":
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
