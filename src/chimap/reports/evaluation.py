"""``Evaluation``: everything that a report shows, as one frozen value, and how a model is scored on a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from chimap._formatting import plain
from chimap._types import JSON
from chimap.reports.insight import Insight
from chimap.reports.measures import (
    Baseline,
    ClassificationMetrics,
    RegressionMetrics,
    Reliability,
    TaskMetrics,
)
from chimap.reports.page import now, package_versions
from chimap.reports.pictures import Examples, examples, images_of
from chimap.reports.ranking import RankingMetrics
from chimap.reports.score import Score
from chimap.reports.selection import ComponentScores, StrengthCurve
from chimap.reports.splits import SplitScores

if TYPE_CHECKING:
    from chimap.data import Source


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The evaluation of a model on some rows. The page depends on this value alone.

    Parameters
    ----------
    title : str
        Title of the page.
    model_name : str
        Name of the estimator, such as "HistogramClassifier".
    data : mapping of str to object
        Facts about the rows by name: file, rows, bins, which rows ("held-out 20 %").
    metrics : ClassificationMetrics, RegressionMetrics or TaskMetrics
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
    insight : Insight or None, default=None
        Linear baseline, learning curve, most important bins and worst mistakes.
    reliability : Reliability or None, default=None
        Calibration of the class probabilities.
    created : datetime, optional
        Time of the evaluation, with its time zone; by default now.
    """

    title: str
    model_name: str
    data: Mapping[str, object]
    metrics: ClassificationMetrics | RegressionMetrics | TaskMetrics
    baseline: Baseline | None = None
    curve: StrengthCurve | None = None
    components: ComponentScores | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=package_versions)
    ranking: RankingMetrics | None = None
    examples: Examples | None = None
    splits: SplitScores | None = None
    insight: Insight | None = None
    reliability: Reliability | None = None
    created: datetime = field(default_factory=now)

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
            "insight": self.insight and self.insight.as_dict(),
            "reliability": self.reliability and self.reliability.as_dict(),
            "baseline": self.baseline and self.baseline.as_dict(),
            "curve": self.curve and self.curve.as_dict(),
            "components": self.components and self.components.as_dict(),
            "stages": plain(self.stages),
            "settings": plain(self.settings),
            "versions": plain(self.versions),
        }


def evaluation_of(
    model: Any,
    source: Source,
    score: Score,
    which: str,
    *,
    splits: SplitScores | None = None,
    insight: Insight | None = None,
) -> Evaluation:
    """Return everything that the page of an evaluation shows.

    Parameters
    ----------
    model : estimator
        Fitted model.
    source : Source
        Rows that the model was scored on.
    score : Score
        Its score on them; see ``score_of``.
    which : str
        Which rows these are, in words.
    splits : SplitScores or None, default=None
        Scores of the model retrained on random splits.
    insight : Insight or None, default=None
        What is known besides the score; see ``insight_of``.

    Returns
    -------
    Evaluation
    """
    # for a compiled model: the model that it was made from, if it was kept
    fitted = getattr(model, "exact_", model)
    training = getattr(model, "training_", None) or {}
    seconds = {f"fit: {name}": time for name, time in getattr(fitted, "stage_seconds_", {}).items()}
    data = {
        "file": source.name.partition(",")[0],
        "rows": source.n_rows,
        "which rows": which,
        "rows left out, without a label": source.n_left_out or None,
        "bins": source.n_features,
        "rows trained on": getattr(fitted, "n_rows_", None),
        "trained on": training.get("file"),
        "trained at": training.get("date"),
    }
    selection = None if fitted is None else fitted.selection_
    return Evaluation(
        title=f"{model.describe()['kernel']} on {data['file']}",
        model_name=type(model).__name__,
        data={name: value for name, value in data.items() if value is not None},
        metrics=score.metrics,
        baseline=score.baseline,
        curve=StrengthCurve.of(selection, fitted is not None and isinstance(fitted.alpha, str)),
        components=ComponentScores.of(selection),
        stages=seconds | {"predict": score.seconds},
        settings=model.get_params(deep=False) if fitted is None else _settings(fitted),
        ranking=score.ranking,
        examples=_examples(source, score),
        splits=splits,
        insight=insight,
        reliability=score.reliability,
    )


def _examples(source: Source, score: Score) -> Examples | None:
    """Return the most confused images and the top-ranked images of each class, or None if the rows are not images."""
    images = images_of(source)
    if not isinstance(score.metrics, ClassificationMetrics) or score.ranking is None or score.outcome is None:
        return None
    return (
        None if images is None else examples(score.metrics, score.ranking, *score.outcome, read=images.read)
    )


def _settings(model: Any) -> dict[str, Any]:
    """Return the parameters of the estimator, with learned values in place of instructions such as "auto"."""
    parameters = model.get_params(deep=False)
    left_out = ("verbose", "kernel", "gamma", "alpha", "map")
    learned = {
        "kernel": model.kernel_.name,
        "gamma": getattr(model.kernel_, "gamma", None),
        "alpha": model.alpha_,
        "features": model.coef_.shape[1],
    }
    return learned | {name: value for name, value in parameters.items() if name not in left_out}
