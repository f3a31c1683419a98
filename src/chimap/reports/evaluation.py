"""``Evaluation``: everything that a report shows as one frozen value, how it is found for a model, and its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from chimap._errors import InputError
from chimap._formatting import left_out_in_words, measure_in_words, plain
from chimap._types import JSON, ArrayLike, MatrixLike
from chimap.data import Source
from chimap.data.labels import Labels, check_labels
from chimap.engines import Progress
from chimap.estimators.forwarding import doubts_of_new_rows
from chimap.features.covariates import Covariates
from chimap.readers import open_source
from chimap.reports.classification import ClassificationMetrics, Reliability, most_confused
from chimap.reports.evaluation_figures import (
    MOST_CLASSES_NAMED,
    MOST_DOTS,
    calibration_figure,
    classes_a_cell,
    confusion_heat_map,
    learning_curve,
    precision_recall_figure,
    predicted_against_true,
    reliability_figure,
    residual_histogram,
    roc_figure,
    stage_times,
)
from chimap.reports.insight import Insight, insight_of
from chimap.reports.measures import Baseline, Metrics, share_in_words
from chimap.reports.page import ROWS_LISTED, Page, as_markup, date_in_words, now, package_versions, render
from chimap.reports.pictures import Examples, examples
from chimap.reports.ranking import RankingMetrics, ranking_metrics
from chimap.reports.regression import RegressionMetrics
from chimap.reports.score import Score, UnassignedRows, score_of
from chimap.reports.selection import ComponentScores, StrengthCurve, scores_by_components, strength_curve
from chimap.reports.splits import SplitScores
from chimap.reports.studies import StudyScores, permutations_figure, studies_figure
from chimap.reports.tasks import TaskMetrics

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.models.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Page):
    """The evaluation of a model on some rows. The page depends on this value alone.

    Parameters
    ----------
    title : str
        Title of the page.
    model_name : str
        Name of the estimator, such as "HistogramClassifier".
    data : mapping of str to object
        Facts about the rows by name: file, rows, bins, which rows ("held-out 20 %").
    metrics : Metrics
        Measures of the predictions.
    baseline : Baseline or None, default=None
        Score of a prediction that does not use the histograms.
    curve : StrengthCurve or None, default=None
        Scores from which the strength of the penalty was chosen.
    components : ComponentScores or None, default=None
        Scores from which the number of principal components was chosen.
    stages : mapping of str to float, optional
        Seconds of each stage, in the order of the stages; by default empty.
    settings : mapping of str to object, optional
        Parameters of the model by name; by default empty.
    versions : mapping of str to str, optional
        Versions of packages by name; by default ``package_versions()``.
    ranking : RankingMetrics or None, default=None
        Precision and recall of the scores of each class.
    examples : Examples or None, default=None
        Images to show.
    splits : SplitScores or None, default=None
        Scores of the model retrained on random splits.
    studies : StudyScores or None, default=None
        Scores study by study.
    insight : Insight or None, default=None
        Linear baseline, learning curve, most important bins and worst mistakes.
    reliability : Reliability or None, default=None
        Calibration of the class probabilities.
    unassigned : UnassignedRows or None, default=None
        Rows that are like none of the classes, if they were asked for.
    covariates : dict or None, default=None
        What covariates and counts add to each other; see ``Covariates.describe``.
    created : datetime, optional
        Time of the evaluation, with its time zone; by default now.
    """

    title: str
    model_name: str
    data: Mapping[str, Any]
    metrics: Metrics
    baseline: Baseline | None = None
    curve: StrengthCurve | None = None
    components: ComponentScores | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=package_versions)
    ranking: RankingMetrics | None = None
    examples: Examples | None = None
    splits: SplitScores | None = None
    studies: StudyScores | None = None
    insight: Insight | None = None
    reliability: Reliability | None = None
    unassigned: UnassignedRows | None = None
    covariates: JSON | None = None
    created: datetime = field(default_factory=now)

    def summary(self) -> dict[str, str | None]:
        """Return the evaluation in lines of text by name, the most telling first; None for those that do not apply."""
        metrics, n_unreadable = self.metrics, int(self.data.get("rows left out, not readable") or 0)
        left_out = left_out_in_words(int(self.data.get("rows left out") or 0), n_unreadable)
        lines: dict[str, str | None] = {"rows": f"{self.data.get('which rows', metrics.n_rows)}{left_out}"}
        lines |= metrics.lines(self.ranking)
        if self.reliability is not None:
            off = share_in_words(self.reliability.error)
            lines["probabilities"] = f"off by {off} on average (expected calibration error)"
        lines["unassigned"] = None if self.unassigned is None else str(self.unassigned)
        lines["splits"] = None if self.splits is None else self.splits.lines()
        lines |= {} if self.studies is None else self.studies.lines()
        known = self.baseline
        lines["baseline"] = None if known is None else f"{metrics.in_words(known.value)}, {known.name}"
        return lines

    def __repr__(self) -> str:
        shown = {name: line for name, line in self.summary().items() if line is not None}
        width = max(map(len, shown))
        lines = (line.replace("\n", "\n" + " " * (width + 4)) for line in shown.values())
        return "\n".join([self.title, *(f"  {name:<{width}}  {line}" for name, line in zip(shown, lines, strict=True))])

    def to_html(self) -> str:
        """Return the page as text; equal evaluations give equal text."""
        parts = _PARTS[type(self.metrics)](self, self.metrics)
        if self.studies is not None:
            parts |= _study_parts(self.studies)
        if self.insight is not None:
            parts |= _insight_parts(self.insight)
        return render("evaluation.html", evaluation=self, **parts, **_common_parts(self))

    def as_dict(self) -> JSON:
        """Return the evaluation as JSON types, nested like the fields; images are left out."""
        return {
            "title": self.title,
            "model": self.model_name,
            "created": self.created.isoformat(),
            "data": plain(self.data),
            "metrics": self.metrics.as_dict(),
            "ranking": self.ranking and self.ranking.as_dict(),
            "splits": self.splits and self.splits.as_dict(),
            "by_study": self.studies and self.studies.as_dict(),
            "insight": self.insight and self.insight.as_dict(),
            "reliability": self.reliability and self.reliability.as_dict(),
            "unassigned": self.unassigned and plain(self.unassigned._asdict()),
            "covariates": plain(self.covariates),
            "baseline": self.baseline and self.baseline.as_dict(),
            "curve": self.curve and self.curve.as_dict(),
            "components": self.components and self.components.as_dict(),
            "stages": plain(self.stages),
            "settings": plain(self.settings),
            "versions": plain(self.versions),
        }


def report(
    model: BaseEstimator,
    X: object,
    y: Labels = None,
    *,
    training: Source | tuple[MatrixLike, ArrayLike] | None = None,
    which: str | None = None,
    splits: SplitScores | None = None,
    studies: StudyScores | None = None,
    insight: bool = True,
    unassigned: float | None = None,
    groups: ArrayLike | str | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Score a fitted model on rows and labels that it has not seen: the values, and the page of ``chimap evaluate``.

    Notebooks show the page, ``save`` writes it, ``print`` shows the scores, and the values are attributes.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor that predicts sources: ``HistogramClassifier``, ``HistogramRegressor``, a
        compiled model or a kernel learner.
    X : array, sparse matrix, data frame, path or Source of n rows
        The rows: everything that ``open_source`` takes. Columns are matched by name to those of the fit.
    y : array of shape (n,) or (n, t), str or None, default=None
        Labels or targets, or the name of the column that has them; None for those that the rows bring with them.
    training : Source, tuple of rows and labels, or None, default=None
        The rows that the model learned from. With them, the page shows a linear model fitted to the same rows, and the
        learning curve.
    which : str or None, default=None
        Which rows these are, in words, for the page.
    splits : SplitScores or None, default=None
        Scores of copies on random splits, for the page; see ``reports.repeated_splits``.
    studies : StudyScores or None, default=None
        Scores study by study, for the page; see ``reports.study_scores``.
    insight : bool, default=True
        Whether to find what the page shows besides the scores; False takes no longer than a prediction.
    unassigned : float or None, default=None
        Also count the rows that are like none of the classes, see ``HistogramClassifier.predict``.
    groups : array of shape (n,), str or None, default=None
        The group of each row, such as the subject that several samples come from, or the name of their column: the
        intervals of the scores count groups.
    progress : Progress or None, default=None
        Receives the rows predicted.

    Returns
    -------
    Evaluation
        With the scores in ``metrics``.

    Raises
    ------
    DataError
        If rows or labels are invalid, or do not suit the model.
    InputError
        If the model cannot predict a source.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> import chimap
    >>> X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    >>> model = chimap.HistogramClassifier("chi2", alpha=1.0).fit(X, y)
    >>> found = chimap.report(model, X_test, y_test, training=(X, y))
    >>> found.metrics.accuracy > 0.9, found.insight.linear < found.metrics.accuracy
    (True, True)
    >>> found.save("digits.html")  # doctest: +SKIP
    """
    _check_predicts_sources(model)
    source = open_source(X, y, like=model, with_labels=True)
    if training is not None and not isinstance(training, Source):
        training = open_source(*training, like=model)
    progress = progress or Progress()
    groups = source.column(groups) if isinstance(groups, str) else groups
    of_rows = None if groups is None else check_labels(groups, source.n_rows, "groups")
    score, found = score_of(model, source, progress, unassigned, of_rows), None
    if insight:
        with progress:
            progress.stage("explaining", None, "fits")
            found = insight_of(model, source, score, training)
    evaluation = _evaluation(model, source, score, which or f"all {source.n_rows:,} rows", found)
    return replace(evaluation, splits=splits, studies=studies)


def _check_predicts_sources(model: BaseEstimator) -> None:
    if not hasattr(model, "predict_chunks"):
        raise InputError(
            f"a {type(model).__name__} predicts no source: give a HistogramClassifier, a HistogramRegressor, a "
            "compiled model or a kernel learner, or compare its predictions by reports.classification_metrics."
        )


def _evaluation(model: BaseEstimator, source: Source, score: Score, which: str, insight: Insight | None) -> Evaluation:
    fitted = model.exact_  # None for tables that were made of codes
    learned, training = {} if fitted is None else fitted.fitted.learned, model.training_ or {}
    seconds = {f"fit: {name}": time for name, time in learned.get("stage_seconds_", {}).items()}
    ranking = None if score.outcome is None else ranking_metrics(score.outcome[0], score.outcome[2], model.classes_)
    data = {
        "file": source.name.partition(",")[0],
        "rows": source.n_rows,
        "groups": score.metrics.n_groups,
        "which rows": which,
        "rows left out": source.n_left_out or None,
        "rows left out, not readable": source.n_unreadable or None,
        "bins": source.n_features,
        "rows trained on": learned.get("n_rows_"),
        "trained on": training.get("file"),
        "trained at": training.get("date"),
        "rows unassigned": score.unassigned and str(score.unassigned),
        "unlike the training rows": next(iter(doubts_of_new_rows(model, source)), None),
    }
    selection = None if fitted is None else fitted.selection_
    covariates: Covariates | None = learned.get("covariates_")
    return Evaluation(
        title=f"{model.describe()['kernel']} on {data['file']}",
        model_name=type(model).__name__,
        data={name: value for name, value in data.items() if value is not None},
        metrics=score.metrics,
        baseline=score.baseline,
        curve=StrengthCurve.of(selection, fitted is not None and isinstance(fitted.alpha, str)),
        components=ComponentScores.of(selection),
        stages=seconds | {"predict": score.seconds},
        settings=_settings(model),
        ranking=ranking,
        examples=_examples(source, score, ranking),
        insight=insight,
        reliability=None if score.outcome is None else _reliability(model, *score.outcome),
        unassigned=score.unassigned,
        covariates=None if covariates is None else covariates.describe(),
    )


def _reliability(model: BaseEstimator, y: np.ndarray, predicted: np.ndarray, scores: np.ndarray) -> Reliability:
    """Return how reliable the probability of the most probable class of each row is."""
    outputs = scores[:, 1:] if scores.shape[1] == 2 else scores
    probabilities = model.probabilities_of(outputs.astype(np.float64))
    return Reliability(probabilities.max(axis=1), model.classes_[probabilities.argmax(axis=1)] == y)


def _examples(source: Source, score: Score, ranking: RankingMetrics | None) -> Examples | None:
    """Return the most confused images and the top-ranked images of each class, or None if the rows are not images."""
    if source.images is None or ranking is None or score.outcome is None:
        return None
    return examples(cast("ClassificationMetrics", score.metrics), ranking, *score.outcome, read=source.images.read)


def _settings(model: BaseEstimator) -> JSON:
    """Return the settings of the fit, with learned values in place of instructions such as "auto".

    Tables that were made of codes say what they were made by.
    """
    if model.exact_ is None:
        return {"tolerance": model.tolerance, "memory": model.memory}
    fitted: Model = model.exact_.fitted
    learned = {"kernel": fitted.kernel.name, "gamma": fitted.gamma, "alpha": fitted.alpha}
    return fitted.recipe.settings | learned


EXTREME_CLASSES = 8  # best classes, and worst classes, listed by average precision


def _common_parts(evaluation: Evaluation) -> JSON:
    stages = {name: float(time) for name, time in evaluation.stages.items()}
    return {
        "data": plain(evaluation.data),
        "settings": {k: v for k, v in plain(evaluation.settings).items() if v is not None},
        "versions": plain(evaluation.versions),
        "created": date_in_words(evaluation.created),
        "stages": stages,
        "stages_total": sum(stages.values()),
        "stages_svg": as_markup(stage_times(stages)) if stages else None,
        "curve_svg": as_markup(strength_curve(evaluation.curve)) if evaluation.curve else None,
        "components_svg": as_markup(_components_svg(evaluation.components)) if evaluation.components else None,
    }


def _study_parts(studies: StudyScores) -> JSON:
    return {
        "studies_svg": as_markup(studies_figure(studies)),
        "permutations_svg": None
        if studies.test is None
        else as_markup(permutations_figure(studies.test, studies.name)),
    }


def _components_svg(scores: ComponentScores) -> str:
    return scores_by_components(scores.n_components, scores.alphas, scores.r2, "held-out R²", scores.chosen)


def _classification_parts(evaluation: Evaluation, metrics: ClassificationMetrics) -> JSON:
    rows = _class_rows(metrics)
    return {
        "task": "classification",
        "metrics": metrics,
        "digits": 2 if metrics.n_rows >= 10_000 else 1,
        "beats_baseline": evaluation.baseline is None or metrics.interval[0] > evaluation.baseline.value,
        "first_rows": rows[:ROWS_LISTED],
        "further_rows": rows[ROWS_LISTED:],
        "classes_a_cell": classes_a_cell(len(rows)),
        "least": 0.6 if len(rows) <= 12 else 0.85 if len(rows) <= MOST_CLASSES_NAMED else 0.6,
        "numbered": len(rows) > MOST_CLASSES_NAMED,
        "pairs": most_confused(metrics, 20 if len(rows) > MOST_CLASSES_NAMED else 10),
        "confusion_svg": as_markup(confusion_heat_map(metrics)),
        "is_unequal": metrics.is_unequal,
        "ranking": None if _has_roc(evaluation) else evaluation.ranking,
        "examples": evaluation.examples,
        **_calibration_parts(evaluation),
        **(_ranking_parts(evaluation.ranking) if evaluation.ranking else {}),
    }


def _has_roc(evaluation: Evaluation) -> bool:
    """Return whether two classes have a ROC curve in place of a ranking; pages with images always show the ranking."""
    return evaluation.insight is not None and evaluation.insight.two is not None and evaluation.examples is None


def _insight_parts(insight: Insight) -> JSON:
    """Return figures and tables of the ROC curve, the reliability and the learning curve, as far as they are known."""
    two, curve = insight.two, insight.curve
    bands = [] if two is None else two.reliability()
    return {
        "roc_svg": None if two is None else as_markup(roc_figure(two)),
        "reliability": bands,
        "reliability_svg": as_markup(reliability_figure(two)) if two is not None and bands else None,
        "learning_svg": None if curve is None else as_markup(learning_curve(curve)),
        "steps": [] if curve is None else list(zip(curve.rows.tolist(), curve.scores, strict=True)),
    }


def _calibration_parts(evaluation: Evaluation) -> JSON:
    """Return the calibration error, with figure and table unless the section of two classes shows the reliability."""
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
    order = ranking.ordered()
    values = [(ranking.classes[k], float(ranking.average_precision[k])) for k in order]
    all_fit = len(values) <= 2 * EXTREME_CLASSES
    return {
        "precision_svg": as_markup(precision_recall_figure(ranking)),
        "best_found": values if all_fit else values[:EXTREME_CLASSES],
        "worst_found": [] if all_fit else values[: -EXTREME_CLASSES - 1 : -1],
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


def _task_parts(evaluation: Evaluation, metrics: TaskMetrics) -> JSON:
    places = metrics.weakest_first().tolist()
    unmeasured = int(np.isnan(metrics.measures[metrics.first]).sum())
    return {
        "task": "tasks",
        "metrics": metrics,
        "noun": "target" if metrics.n_positive is None else "task",
        "in_words": {name: measure_in_words(name) for name in metrics.measures},
        "first_tasks": places[:ROWS_LISTED],
        "further_tasks": places[ROWS_LISTED:],
        "unmeasured": unmeasured,
        "unknown": (np.nan, np.nan),
    }


def _regression_parts(evaluation: Evaluation, metrics: RegressionMetrics) -> JSON:
    return {
        "task": "regression",
        "metrics": metrics,
        "beats_baseline": evaluation.baseline is None or metrics.rmse_interval[1] < evaluation.baseline.value,
        "dotted": metrics.n_rows <= MOST_DOTS,
        "predicted_svg": as_markup(predicted_against_true(metrics)),
        "residuals_svg": as_markup(residual_histogram(metrics)),
    }


_PARTS: dict[type, Callable[[Evaluation, Any], JSON]] = {
    ClassificationMetrics: _classification_parts,
    RegressionMetrics: _regression_parts,
    TaskMetrics: _task_parts,
}
"""What the page of an evaluation shows, by the kind of its measures."""
