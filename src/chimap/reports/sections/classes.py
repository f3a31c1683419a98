"""The scores of classes: the leading ones, and a table of all classes."""

from __future__ import annotations

import numpy as np

from chimap._formatting import number, one_line, percent, score_in_words
from chimap.reports.classification import ClassificationMetrics
from chimap.reports.evaluation import Evaluation
from chimap.reports.section import ROWS_LISTED, Headline, ScoreBar, Section, folded

MOST_CLASSES_NAMED = 60  # largest number of classes for which the axes of figures name every class


def headline(evaluation: Evaluation[ClassificationMetrics]) -> Section:
    """Return the leading measures: of classes of unequal size those that do not depend on the sizes."""
    metrics, baseline = evaluation.metrics, evaluation.baseline
    rows, accuracy, balanced = f"{metrics.n_rows:,}", percent(metrics.accuracy), percent(metrics.balanced_accuracy)
    label, score, about = f"Accuracy on {rows} rows", accuracy, ""
    if metrics.leads_with_auc:
        k = metrics.of_interest
        name, support = one_line(metrics.classes[k]), int(metrics.support[k])
        label = f"ROC AUC on {rows} rows, {percent(support / metrics.n_rows)} of class {name}"
        score = f"{metrics.auc:.3f}"
        about = (
            f"The average precision of class {name} is {metrics.average_precision:.3f}. The balanced accuracy is "
            f"{balanced}. {metrics.confusion[k, k]:,} of the {support:,} rows of class {name} are found (recall "
            f"{percent(metrics.recall[k])}), with {metrics.confusion[1 - k, k]:,} false positives (precision "
            f"{percent(metrics.precision[k])}). The bar shows the accuracy, {accuracy}:"
        )
    elif metrics.is_unequal:
        label, score = f"Balanced accuracy on {rows} rows of classes of unequal size", balanced
        about = f"The bar shows the accuracy, {accuracy}:"
    low, high = metrics.interval
    keys = [f"{number(100 * metrics.confidence)} % confidence interval: {percent(low)} to {percent(high)}"]
    linear = evaluation.insight and evaluation.insight.linear_line
    facts = [
        ("Right", f"{metrics.n_correct:,}", f"of {rows} rows"),
        ("Wrong", f"{metrics.n_rows - metrics.n_correct:,}", f"in {len(metrics.classes):,} classes"),
    ]
    if not metrics.is_unequal:
        facts.append(("Balanced accuracy", balanced, "mean recall over the classes (class recognition rate)"))
    ranking = evaluation.shown_ranking
    if ranking is not None:
        mean = percent(ranking.mean_average_precision)
        facts.append(("Mean average precision", mean, f"over the classes, method “{ranking.method}”"))
    if metrics.auc is not None and not metrics.leads_with_auc:
        first, second = (one_line(name) for name in metrics.classes)
        said = f"probability that a row of class {second} scores above one of class {first}"
        facts.append(("ROC AUC", score_in_words(metrics.auc, "roc_auc"), said))
    facts += [(one.name.capitalize(), one.text, one.about) for one in metrics.of_structure]
    facts.append(("Macro F1", percent(metrics.macro_f1), "mean F1 over the classes"))
    is_no_better = baseline is not None and low <= baseline.value
    return Headline(
        "Accuracy",
        label=label,
        score=score,
        about=about,
        scale=ScoreBar(metrics.accuracy, metrics.interval, None if baseline is None else baseline.value),
        keys=(*keys, *([linear] if linear else [])),
        baseline="" if baseline is None else f"Baseline, {one_line(baseline.name)}: {percent(baseline.value)}",
        facts=tuple(facts),
        note=""
        if baseline is None or not is_no_better
        else "The confidence interval of the accuracy is not entirely above the baseline: on these rows, the model is "
        f"not shown to be better than {one_line(baseline.name)}.",
        lines=metrics.lines(evaluation.ranking),
    )


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
