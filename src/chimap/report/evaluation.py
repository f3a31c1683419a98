"""All that a report shows, as one frozen value."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from chimap._types import JSON
from chimap.report._plain import plain
from chimap.report.baselines import Baseline
from chimap.report.classification import ClassificationMetrics
from chimap.report.examples import Examples
from chimap.report.insight import Insight
from chimap.report.ranking import RankingMetrics
from chimap.report.regression import RegressionMetrics
from chimap.report.reliability import Reliability
from chimap.report.selection_scores import ComponentScores, StrengthCurve
from chimap.report.splits import SplitScores
from chimap.report.tasks import TaskMetrics


def package_versions() -> dict[str, str]:
    """Versions of chimap, Python and the libraries that compute."""
    versions = {}
    for name in ("chimap", "numpy", "scipy", "scikit-learn", "numba"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions | {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def now() -> datetime:
    """This second, UTC."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A model, the rows it was tried on, and what came out. The page is a function of this value alone.

    title: heads the page.
    model_name: the estimator, "HistogramClassifier".
    data: plain values by name: file, rows, bins, which rows ("held-out 20 %").
    metrics: of the predictions; of several tasks those of each.
    baseline: what needs no model, or None.
    curve: how the strength was chosen, or None.
    components: how the number of principal components was chosen, or None.
    stages: seconds by name of stage, in their order.
    settings: plain values by name of parameter.
    versions: by name of package; by default of those installed.
    ranking: precision and recall of the scores of each class, or None.
    examples: images to show, or None.
    splits: scores of the model trained anew on random splits, or None.
    reliability: of the probabilities of classes, or None.
    created: when, with its time zone; by default now.
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
        """Plain JSON types, nested as the fields are."""
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
