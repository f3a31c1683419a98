"""Results as numbers, as JSON and as a single HTML page.

Three steps, a file each for what they are about:

- measures: ``classification``, ``regression``, ``tasks``, ``ranking``, ``splits`` and ``studies`` compare predictions
  with the truth.
- values: ``Evaluation``, ``ModelExplanation``, ``LearnedKernel`` and ``Comparison`` hold everything
  that a page shows. Each gives its numbers as JSON with ``as_dict``.
- pages: the values are ``Page``s of ``Section``s, that terminals and notebooks show and ``save`` writes. ``contents``
  lists the sections of each page, and ``sections`` holds them. ``figures`` turns figures of matplotlib into SVG, and
  ``templates`` holds the HTML of any section.

matplotlib and jinja2 are imported only when a page is drawn.

>>> metrics = classification_metrics(["cat", "dog", "dog"], ["cat", "dog", "cat"])
>>> page = Evaluation("Pets", "HistogramClassifier", data={"file": "pets.npz"}, metrics=metrics)
>>> page.save("pets.html")  # doctest: +SKIP
PosixPath('pets.html')
"""

from __future__ import annotations

from chimap.reports.calibration import Reliability, TwoClasses
from chimap.reports.classification import ClassificationMetrics, accuracy, classification_metrics, most_confused
from chimap.reports.comparison import Comparison, compare
from chimap.reports.evaluation import Evaluation, report
from chimap.reports.explained_rows import ExplainedRow, Likeness
from chimap.reports.explanation import ModelExplanation
from chimap.reports.insight import Insight, Mistake, worst_errors, worst_mistakes
from chimap.reports.kernel import ChannelPath, ChannelWeights, LearnedKernel, Widths
from chimap.reports.measures import Baseline, majority_baseline, mean_baseline, wilson_interval
from chimap.reports.page import Page, package_versions
from chimap.reports.pictures import Example, ExampleRow, Examples, examples
from chimap.reports.ranking import PrecisionRecall, RankingMetrics, average_precision, precision_recall, ranking_metrics
from chimap.reports.regression import RegressionMetrics, regression_metrics
from chimap.reports.section import Figure, Section, Table
from chimap.reports.selection import ComponentScores, SelectionPage, StrengthCurve
from chimap.reports.splits import SplitScores, repeated_splits
from chimap.reports.studies import PermutationTest, StudyScores, study_scores
from chimap.reports.tasks import TaskMetrics, task_metrics

__all__ = [
    "accuracy",
    "wilson_interval",
    "classification_metrics",
    "ClassificationMetrics",
    "most_confused",
    "average_precision",
    "precision_recall",
    "PrecisionRecall",
    "ranking_metrics",
    "RankingMetrics",
    "repeated_splits",
    "SplitScores",
    "study_scores",
    "StudyScores",
    "PermutationTest",
    "TaskMetrics",
    "task_metrics",
    "regression_metrics",
    "RegressionMetrics",
    "Reliability",
    "Baseline",
    "majority_baseline",
    "mean_baseline",
    "ComponentScores",
    "Evaluation",
    "report",
    "StrengthCurve",
    "Examples",
    "ExampleRow",
    "Example",
    "examples",
    "package_versions",
    "Comparison",
    "compare",
    "ChannelPath",
    "ChannelWeights",
    "LearnedKernel",
    "Widths",
    "SelectionPage",
    "Page",
    "Section",
    "Figure",
    "Table",
    "Insight",
    "Mistake",
    "TwoClasses",
    "worst_errors",
    "worst_mistakes",
    "ExplainedRow",
    "Likeness",
    "ModelExplanation",
]
