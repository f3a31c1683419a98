"""Results as numbers, as JSON and as a single HTML page.

``classification``, ``regression``, ``ranking``, ``segmentation`` and ``tasks`` measure predictions. ``evaluation``
holds everything that a report shows, ``curves`` draws the figures, and ``html`` renders the page. ``comparison`` and
the files named after it do the same for a race of kernels, ``kernel_errors`` for the approximation errors of features,
``kernel`` for a learned kernel, and ``explanation`` for explanations. matplotlib and jinja2 are imported only when a
page is drawn.

>>> metrics = classification_metrics(["cat", "dog", "dog"], ["cat", "dog", "cat"])
>>> page = Evaluation("Pets", "HistogramClassifier", data={"file": "pets.npz"}, metrics=metrics)
>>> write_report(page, "pets.html")  # doctest: +SKIP
PosixPath('pets.html')
"""

from __future__ import annotations

from chimap.report.baselines import Baseline, majority_baseline, mean_baseline
from chimap.report.classification import (
    ClassificationMetrics,
    accuracy,
    classification_metrics,
    most_confused,
)
from chimap.report.comparison import Comparison
from chimap.report.comparison_page import render_comparison, write_comparison
from chimap.report.evaluation import Evaluation, package_versions
from chimap.report.examples import Example, ExampleRow, Examples, examples
from chimap.report.explanation import ExplainedRow, Likeness, ModelExplanation
from chimap.report.explanation_page import render_explanation, write_explanation
from chimap.report.html import render_report, write_report
from chimap.report.insight import Insight, Mistake, TwoClasses, worst_errors, worst_mistakes
from chimap.report.intervals import wilson_interval
from chimap.report.kernel import ChannelPath, ChannelWeights, LearnedKernel, Widths
from chimap.report.kernel_errors import KernelErrors
from chimap.report.kernel_page import render_learned_kernel, write_learned_kernel
from chimap.report.ranking import (
    PrecisionRecall,
    RankingMetrics,
    average_precision,
    precision_recall,
    ranking_metrics,
)
from chimap.report.regression import RegressionMetrics, regression_metrics
from chimap.report.reliability import Reliability
from chimap.report.segmentation import SegmentationMetrics, segmentation_metrics
from chimap.report.selection import write_selection
from chimap.report.selection_scores import ComponentScores, StrengthCurve
from chimap.report.splits import SplitScores, repeated_splits
from chimap.report.tasks import TaskMetrics, task_metrics

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
    "segmentation_metrics",
    "SegmentationMetrics",
    "repeated_splits",
    "SplitScores",
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
    "StrengthCurve",
    "Examples",
    "ExampleRow",
    "Example",
    "examples",
    "package_versions",
    "Comparison",
    "KernelErrors",
    "render_comparison",
    "write_comparison",
    "ChannelPath",
    "ChannelWeights",
    "LearnedKernel",
    "Widths",
    "render_learned_kernel",
    "write_learned_kernel",
    "render_report",
    "write_report",
    "write_selection",
    "Insight",
    "Mistake",
    "TwoClasses",
    "worst_errors",
    "worst_mistakes",
    "ExplainedRow",
    "Likeness",
    "ModelExplanation",
    "render_explanation",
    "write_explanation",
]
