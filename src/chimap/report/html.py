"""Render an evaluation as a single self-contained HTML page: no scripts, no fonts, no requests."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chimap._files import check_free, check_writable, replacing
from chimap._types import JSON
from chimap.report import _plain
from chimap.report.classification import ClassificationMetrics, most_confused
from chimap.report.evaluation import Evaluation
from chimap.report.insight import Insight
from chimap.report.ranking import RankingMetrics
from chimap.report.regression import RegressionMetrics
from chimap.report.selection_scores import ComponentScores
from chimap.report.tasks import TaskMetrics

if TYPE_CHECKING:
    from markupsafe import Markup


LISTED = 10  # rows of a table that are shown; the rest is folded
EXTREME = 8  # best classes, and worst classes, listed by average precision


def write_report(evaluation: Evaluation, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write the page of an evaluation to a file.

    The page is drawn before the file is written, so a page that cannot be completed leaves no file behind.

    Parameters
    ----------
    evaluation : Evaluation
        What to show.
    path : path-like
        The file to write.
    overwrite : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    Path
        The path of the page.

    Raises
    ------
    FileExistsError
        If ``path`` exists and ``overwrite`` is False.
    FileNotFoundError
        If the folder of ``path`` does not exist.
    IsADirectoryError
        If ``path`` is a folder.
    """
    return write_page(lambda: render_report(evaluation), path, overwrite)


def write_page(draw: Callable[[], str], path: str | os.PathLike[str], overwrite: bool) -> Path:
    """Draw a page and write it to ``path``, completely or not at all; see ``write_report``."""
    target = Path(path)
    check_writable(target)
    check_free(target, overwrite)
    page = draw()
    with replacing(target) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    return target


def render_report(evaluation: Evaluation) -> str:
    """Return the page of an evaluation as text; equal evaluations give equal text.

    Parameters
    ----------
    evaluation : Evaluation
        What to show.
    """
    metrics = evaluation.metrics
    if isinstance(metrics, ClassificationMetrics):
        parts = _classification_parts(evaluation, metrics)
    elif isinstance(metrics, TaskMetrics):
        parts = _task_parts(metrics)
    else:
        parts = _regression_parts(evaluation, metrics)
    if evaluation.insight is not None:
        parts |= _insight_parts(evaluation.insight, getattr(metrics, "auc", None))
    return render("evaluation.html", evaluation=evaluation, **parts, **_common_parts(evaluation))


def render(template: str, **parts: object) -> str:
    """Render a template of the folder ``templates``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("chimap.report", "templates"),
        autoescape=True,  # names of classes and files come from the user: "<script>" must stay text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in (
        "number",
        "short",
        "one_line",
        "percent",
        "seconds",
        "microseconds",
        "words",
        "measure_in_words",
    ):
        environment.filters[name] = getattr(_plain, name)
    environment.filters["thousands"] = lambda n: (
        f"{n:,}" if isinstance(n, int | np.integer) else _plain.words(n)
    )
    return environment.get_template(template).render(**parts).strip() + "\n"


def _common_parts(evaluation: Evaluation) -> JSON:
    from chimap.report.curves import stage_times, strength_curve

    stages = {name: float(time) for name, time in evaluation.stages.items()}
    return {
        "data": _plain.plain(evaluation.data),
        "settings": {k: v for k, v in _plain.plain(evaluation.settings).items() if v is not None},
        "versions": _plain.plain(evaluation.versions),
        "created": date_in_words(evaluation.created),
        "stages": stages,
        "stages_total": sum(stages.values()),
        "stages_svg": as_markup(stage_times(stages)) if stages else None,
        "curve_svg": as_markup(strength_curve(evaluation.curve)) if evaluation.curve else None,
        "components_svg": as_markup(_components_svg(evaluation.components))
        if evaluation.components
        else None,
    }


def _components_svg(scores: ComponentScores) -> str:
    from chimap.report.selection_curves import scores_by_components

    return scores_by_components(scores.n_components, scores.alphas, scores.r2, "held-out R²", scores.chosen)


def _classification_parts(evaluation: Evaluation, metrics: ClassificationMetrics) -> JSON:
    from chimap.report.confusion import NAMED, classes_a_cell, confusion_heat_map

    rows = _class_rows(metrics)
    folded = len(rows) > LISTED
    return {
        "task": "classification",
        "metrics": metrics,
        "digits": 2 if metrics.n_rows >= 10_000 else 1,
        "beats_baseline": evaluation.baseline is None or metrics.interval[0] > evaluation.baseline.value,
        "first_rows": rows[:LISTED] if folded else rows,
        "folded_rows": rows[LISTED:] if folded else [],
        "classes_a_cell": classes_a_cell(len(rows)),
        "least": 0.6 if len(rows) <= 12 else 0.85 if len(rows) <= NAMED else 0.6,
        "numbered": len(rows) > NAMED,
        "pairs": most_confused(metrics, 20 if len(rows) > NAMED else 10),
        "confusion_svg": as_markup(confusion_heat_map(metrics)),
        "is_unequal": metrics.is_unequal,
        "ranking": None if _has_roc(evaluation) else evaluation.ranking,
        "examples": evaluation.examples,
        **_calibration_parts(evaluation),
        **(_ranking_parts(evaluation.ranking) if evaluation.ranking else {}),
    }


def _has_roc(evaluation: Evaluation) -> bool:
    """Return whether two classes have a ROC curve in place of a ranking; pages with images always show the ranking."""
    return (
        evaluation.insight is not None and evaluation.insight.two is not None and evaluation.examples is None
    )


def _insight_parts(insight: Insight, auc: float | None) -> JSON:
    """Return figures and tables of the ROC curve, the reliability and the learning curve, as far as they are known."""
    from chimap.report.insight_curves import learning_curve, reliability_figure, roc_figure

    two, curve = insight.two, insight.curve
    bands = [] if two is None else two.reliability()
    return {
        "roc_svg": None if two is None or auc is None else as_markup(roc_figure(two, auc)),
        "reliability": bands,
        "reliability_svg": as_markup(reliability_figure(two)) if two is not None and bands else None,
        "learning_svg": None if curve is None else as_markup(learning_curve(curve)),
        "steps": [] if curve is None else list(zip(curve.rows.tolist(), curve.scores, strict=True)),
    }


def _calibration_parts(evaluation: Evaluation) -> JSON:
    """Return the calibration error, with figure and table unless the section of two classes shows the reliability."""
    from chimap.report.insight_curves import calibration_figure

    reliability, insight = evaluation.reliability, evaluation.insight
    is_shown = insight is not None and insight.two is not None and bool(insight.two.reliability())
    drawn = None if is_shown else reliability
    return {
        "calibration": None if reliability is None else reliability.error,
        "calibration_svg": None if drawn is None else as_markup(calibration_figure(drawn)),
        "calibration_bands": [] if drawn is None else drawn.bands(),
    }


def _ranking_parts(ranking: RankingMetrics) -> JSON:
    """Return the figure and the best and worst classes; if there are few, all of them count as best."""
    from chimap.report.ranking_curves import precision_recall_figure

    order = ranking.ordered()
    values = [(ranking.classes[k], float(ranking.average_precision[k])) for k in order]
    all_fit = len(values) <= 2 * EXTREME
    return {
        "precision_svg": as_markup(precision_recall_figure(ranking)),
        "best_found": values if all_fit else values[:EXTREME],
        "worst_found": [] if all_fit else values[: -EXTREME - 1 : -1],
    }


def _class_rows(metrics: ClassificationMetrics) -> list[JSON]:
    """Return a table row per class, by ascending recall; classes without rows come last."""
    recall = np.where(np.isnan(metrics.recall), np.inf, metrics.recall)
    return [
        {
            "number": int(i) + 1,
            "name": metrics.classes[i],
            "recall": float(metrics.recall[i]),
            "precision": float(metrics.precision[i]),
            "f1": float(metrics.f1[i]),
            "support": int(metrics.support[i]),
        }
        for i in np.argsort(recall, kind="stable")
    ]


def _task_parts(metrics: TaskMetrics) -> JSON:
    places = metrics.weakest_first().tolist()
    is_folded = len(places) > LISTED
    unmeasured = int(np.isnan(metrics.measures[metrics.first]).sum())
    return {
        "task": "tasks",
        "metrics": metrics,
        "noun": "target" if metrics.n_positive is None else "task",
        "in_words": {name: _plain.measure_in_words(name) for name in metrics.measures},
        "first_tasks": places[:LISTED] if is_folded else places,
        "folded_tasks": places[LISTED:] if is_folded else [],
        "unmeasured": unmeasured,
        "unknown": (np.nan, np.nan),
    }


def _regression_parts(evaluation: Evaluation, metrics: RegressionMetrics) -> JSON:
    from chimap.report.curves import DOTTED, predicted_against_true, residual_histogram

    return {
        "task": "regression",
        "metrics": metrics,
        "beats_baseline": evaluation.baseline is None or metrics.rmse_interval[1] < evaluation.baseline.value,
        "dotted": metrics.n_rows <= DOTTED,
        "predicted_svg": as_markup(predicted_against_true(metrics)),
        "residuals_svg": as_markup(residual_histogram(metrics)),
    }


def as_markup(text: str) -> Markup:
    """Mark an SVG of this package as safe: ElementTree has escaped its text."""
    from markupsafe import Markup

    return Markup(text)


def date_in_words(moment: datetime) -> str:
    """Return a moment as text: '4 March 2025, 12:30 UTC'."""
    return f"{moment.day} {moment:%B %Y, %H:%M %Z}".strip()
