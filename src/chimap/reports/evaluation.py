"""``Evaluation``: everything that a report shows as one frozen value, how it is found for a model, and its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from chimap._errors import InputError
from chimap._formatting import left_out_in_words, plain
from chimap._types import JSON, ArrayLike, MatrixLike
from chimap.data import Source
from chimap.data.labels import Labels, check_labels
from chimap.data.split import name_of_whole
from chimap.engines import Progress
from chimap.models.answers import ClassAnswers
from chimap.readers import open_source
from chimap.reports.calibration import Reliability
from chimap.reports.classification import ClassificationMetrics
from chimap.reports.insight import Insight, insight_of
from chimap.reports.linear import LinearRival
from chimap.reports.measures import Baseline, Metrics
from chimap.reports.page import Page, now, package_versions
from chimap.reports.pictures import Examples, examples
from chimap.reports.ranking import RankingMetrics, ranking_metrics
from chimap.reports.score import Score, UnassignedRows, score_of
from chimap.reports.section import text_of
from chimap.reports.selection import ComponentScores, StrengthCurve
from chimap.reports.splits import SplitScores
from chimap.reports.studies import StudyScores

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.models.predictor import Predictor

M = TypeVar("M", bound=Metrics, covariant=True)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Page, Generic[M]):
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
    linear_of_fit : LinearRival or None, default=None
        The best linear model as the fit found it on the same rows, for evaluations without ``insight``.
    created : datetime, optional
        Time of the evaluation, with its time zone; by default now.
    """

    title: str
    model_name: str
    data: Mapping[str, Any]
    metrics: M
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
    linear_of_fit: LinearRival | None = None
    created: datetime = field(default_factory=now)

    kind: ClassVar[str] = "evaluation"

    @property
    def subject(self) -> str:
        """The name of the estimator."""
        return self.model_name

    @property
    def linear(self) -> LinearRival | None:
        """The best linear model on the same rows, if it is known."""
        return self.linear_of_fit if self.insight is None else self.insight.linear

    @property
    def listed(self) -> str:
        """The name under which ``CONTENTS`` lists the sections, by the kind of measures."""
        return self.metrics.listed

    @property
    def shown_ranking(self) -> RankingMetrics | None:
        """The ranking; None if two classes have a ROC curve in its place, but for images, which are always ranked."""
        has_roc = self.insight is not None and self.insight.two is not None and self.examples is None
        return None if has_roc else self.ranking

    def details(self) -> dict[str, Mapping[str, object]]:
        """Return facts about the rows, the settings of the model, and the versions."""
        settings = {name: value for name, value in self.settings.items() if value is not None}
        return {"Data": self.data, "Settings": settings, "Versions": self.versions}

    def summary(self) -> dict[str, str | None]:
        """Return the evaluation in lines of text by name, the most telling first; None for those that do not apply."""
        metrics, n_unreadable = self.metrics, int(self.data.get("rows left out, not readable") or 0)
        left_out = left_out_in_words(int(self.data.get("rows left out") or 0), n_unreadable)
        lines: dict[str, str | None] = {"rows": f"{self.data.get('which rows', metrics.n_rows)}{left_out}"}
        for section in self.sections():
            lines |= section.lines
        known = self.baseline
        lines["baseline"] = None if known is None else f"{metrics.in_words(known.value)}, {known.name}"
        return lines | {"best linear": None if self.linear is None else self.linear.line}

    def __repr__(self) -> str:
        return text_of(self.title, self.summary())

    def as_dict(self) -> JSON:
        """Return the evaluation as JSON types, nested like the fields; images are left out."""
        return {
            "title": self.title,
            "model": self.model_name,
            "created": self.created.isoformat(),
            "data": plain(self.data),
            "metrics": self.metrics.as_dict(),
            "leading_score": (lead := self.metrics.leading(self.baseline)) and lead.as_dict(),
            "ranking": self.ranking and self.ranking.as_dict(),
            "splits": self.splits and self.splits.as_dict(),
            "by_study": self.studies and self.studies.as_dict(),
            "insight": self.insight and self.insight.as_dict(),
            "reliability": self.reliability and self.reliability.as_dict(),
            "unassigned": self.unassigned and plain(self.unassigned._asdict()),
            "covariates": plain(self.covariates),
            "linear": self.linear and plain(self.linear.as_dict()),
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
) -> Evaluation[Metrics]:
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
    >>> found.metrics.accuracy > 0.9, found.insight.linear.score < found.metrics.accuracy
    (True, True)
    >>> found.save("digits.html")  # doctest: +SKIP
    """
    fitted = _fitted(model)
    source = open_source(X, y, like=model, with_labels=True)
    if training is not None and not isinstance(training, Source):
        training = open_source(*training, like=model)
    progress = progress or Progress()
    groups = source.column(groups) if isinstance(groups, str) else groups
    of_rows = None if groups is None else check_labels(groups, source.n_rows, "groups")
    scoring = getattr(model, "scoring", None)  # tables have none
    score, found = score_of(fitted, source, progress, unassigned, of_rows, scoring), None
    if insight:
        with progress:
            progress.step("explaining the scores")
            progress.stage("explaining", None, "fits")
            found = insight_of(fitted, source, score, model, training, of_rows)
    evaluation = _evaluation(fitted, source, score, which or f"all {source.n_rows:,} rows", found)
    return replace(evaluation, splits=splits, studies=studies)


def _fitted(model: BaseEstimator) -> Predictor:
    """Return the fitted model of an estimator. Raise InputError if it predicts no sources."""
    if not hasattr(model, "predict_chunks"):
        raise InputError(
            f"a {type(model).__name__} predicts no source: give a HistogramClassifier, a HistogramRegressor, a "
            "compiled model or a kernel learner, or compare its predictions by reports.classification_metrics."
        )
    fitted: Predictor = model.fitted
    return fitted


def _evaluation(
    model: Predictor, source: Source, score: Score, which: str, insight: Insight | None
) -> Evaluation[Metrics]:
    exact = model.exact  # None for tables that were made of codes
    learned = None if exact is None else exact.learned
    training, seconds = model.training, (learned and learned.stage_seconds) or {}
    classes, ranking = model.answers.classes, None
    if score.outcome is not None and classes is not None:
        ranking = ranking_metrics(score.outcome[0], score.outcome[2], classes)
    data = {
        "file": name_of_whole(source.name),
        "rows": source.n_rows,
        "groups": score.metrics.n_groups,
        "which rows": which,
        "rows left out": source.n_left_out or None,
        "rows left out, not readable": source.n_unreadable or None,
        "bins": source.n_features,
        "rows trained on": learned and learned.n_rows,
        "trained on": training.get("file"),
        "trained at": training.get("date"),
        "unlike the training rows": next(iter(model.schema.doubts(source)), None),
    }
    selection = None if learned is None else learned.selection
    covariates = None if exact is None else exact.recipe.covariate_columns
    return Evaluation(
        title=f"{model.describe()['kernel']} on {data['file']}",
        model_name=model.schema.owner,
        data={name: value for name, value in data.items() if value is not None},
        metrics=score.metrics,
        baseline=score.baseline,
        curve=StrengthCurve.of(selection, exact is not None and exact.recipe.searches_alpha),
        components=ComponentScores.of(selection),
        stages={f"fit: {name}": time for name, time in seconds.items()} | {"predict": score.seconds},
        settings=model.settings,
        ranking=ranking,
        examples=_examples(source, score, ranking),
        insight=insight,
        reliability=None if score.outcome is None else _reliability(model, *score.outcome),
        unassigned=score.unassigned,
        covariates=None if covariates is None else covariates.describe(),
    )


def _reliability(model: Predictor, y: np.ndarray, predicted: np.ndarray, scores: np.ndarray) -> Reliability:
    """Return how reliable the probability of the most probable class of each row is."""
    outputs, answers = scores[:, 1:] if scores.shape[1] == 2 else scores, model.answers
    assert isinstance(answers, ClassAnswers)
    probabilities = answers.calibration(outputs.astype(np.float64))
    return Reliability(probabilities.max(axis=1), answers.classes[probabilities.argmax(axis=1)] == y)


def _examples(source: Source, score: Score, ranking: RankingMetrics | None) -> Examples | None:
    """Return the most confused images and the top-ranked images of each class, or None if the rows are not images."""
    if source.images is None or ranking is None or score.outcome is None:
        return None
    return examples(cast("ClassificationMetrics", score.metrics), ranking, *score.outcome, read=source.images.read)
