"""All that a report shows, as one frozen value."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from chimap._types import JSON
from chimap.report._plain import measure_in_words, plain
from chimap.report.baselines import Baseline
from chimap.report.classification import ClassificationMetrics
from chimap.report.examples import Examples
from chimap.report.insight import Insight
from chimap.report.ranking import RankingMetrics
from chimap.report.regression import RegressionMetrics
from chimap.report.reliability import Reliability
from chimap.report.splits import SplitScores
from chimap.report.tasks import TaskMetrics
from chimap.selection import SelectionResult

_MEASURES = {"squared error": "mean held-out squared error", "gcv": "generalised cross-validation error"}
_OTHERS = {"n_components", "gamma", "n_rows"}  # settings that are chosen together with the strength


@dataclass(frozen=True, eq=False)
class StrengthCurve:
    """Scores over the strength of the penalty.

    alphas: positive, increasing, (n,).
    errors: mean held-out squared error at each strength, or what ``measure`` names, (n,).
    standard_errors: of ``errors`` over the folds, (n,).
    chosen: the strength that the model uses.
    method: how the scores came about, in words.
    is_searched: whether the strengths are those of a search, which goes on until it has seen both sides of the best.

    Raises ValueError for unequal lengths, no alphas, or alphas that are not positive.
    """

    alphas: np.ndarray
    errors: np.ndarray
    standard_errors: np.ndarray
    chosen: float
    measure: str = "mean held-out squared error"
    method: str = "cross-validated"
    is_searched: bool = False

    def __post_init__(self) -> None:
        arrays = [np.asarray(a, np.float64) for a in (self.alphas, self.errors, self.standard_errors)]
        if arrays[0].ndim != 1 or len({a.shape for a in arrays}) != 1 or arrays[0].size == 0:
            shapes = ", ".join(str(a.shape) for a in arrays)
            raise ValueError(
                f"alphas, errors and standard_errors must have one shape (n,), n >= 1; got {shapes}."
            )
        if not (np.all(arrays[0] > 0) and self.chosen > 0):
            raise ValueError("alphas and chosen must be positive: the curve is drawn over their logarithm.")
        order = np.argsort(arrays[0], kind="stable")
        for name, values in zip(("alphas", "errors", "standard_errors"), arrays, strict=True):
            object.__setattr__(self, name, values[order])

    @property
    def error_at_chosen(self) -> float:
        """Error at the chosen strength, interpolated over log(strength) where it is not among those tried."""
        return float(np.interp(np.log(self.chosen), np.log(self.alphas), self.errors))

    @property
    def at_border(self) -> bool:
        """Whether the chosen strength is the first or the last of three or more that were given."""
        ends = self.alphas[[0, -1]]
        return (
            not self.is_searched
            and self.alphas.size > 2
            and bool(np.any(np.isclose(self.chosen, ends, rtol=1e-6, atol=0)))
        )

    @classmethod
    def of(cls, result: SelectionResult | None, is_searched: bool = False) -> StrengthCurve | None:
        """That of a selection, its other settings being those that it chose; None where there is none."""
        if result is None or (result.measure not in _MEASURES and not result.greater_is_better):
            return None
        for name in _OTHERS & result.settings.keys():
            values = result.settings[name]
            result = result.of(np.flatnonzero(values == values[result.chosen]))
        return cls(
            result.alphas, result.means, result.standard_errors, result.best["alpha"],
            _MEASURES.get(result.measure, f"{measure_in_words(result.measure)} of rows left out"), _chosen_by(result),
            is_searched,
        )  # fmt: skip

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        names = ("alphas", "errors", "standard_errors", "chosen")
        return {name: plain(getattr(self, name)) for name in names}


def _chosen_by(result: SelectionResult) -> str:
    """How strengths were scored, and by which score one was taken where that is another."""
    scores = [name for name in result.settings if name not in {"alpha", "df", *_OTHERS}]
    if result.rule != "gcv" or not scores:
        return result.method
    return f"the strength was chosen by {scores[0].replace('_', ' ')} of rows left out"


@dataclass(frozen=True, eq=False)
class ComponentScores:
    """Cross-validation over the number of principal components and the strength of the penalty.

    n_components: increasing, (P,). alphas: increasing, (S,). r2: held-out R² of each pair, (P, S). chosen: the pair
    that the model uses. Raises ValueError for another shape of r2.
    """

    n_components: np.ndarray
    alphas: np.ndarray
    r2: np.ndarray
    chosen: tuple[int, float]

    @classmethod
    def of(cls, result: SelectionResult | None) -> ComponentScores | None:
        """Those of a selection of components and strength; None for any other."""
        if result is None or "n_components" not in result.settings:
            return None
        n_components, alphas, places = result.grid("n_components", "alpha")
        best = result.best
        return cls(n_components, alphas, result.r2[places], (best["n_components"], best["alpha"]))

    def __post_init__(self) -> None:
        expected = (np.size(self.n_components), np.size(self.alphas))
        if np.shape(self.r2) != expected:
            raise ValueError(
                f"r2 must be of shape {expected}, a row a number of components; got {np.shape(self.r2)}."
            )

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        return {name: plain(getattr(self, name)) for name in ("n_components", "alphas", "r2", "chosen")}


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
