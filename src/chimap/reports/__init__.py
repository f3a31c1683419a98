"""Results as numbers, as JSON and as a single HTML page.

Three steps, a file each for what they are about:

- measures: ``measures``, ``ranking`` and ``splits`` compare predictions with the truth.
- values: ``Evaluation``, ``ModelExplanation``, ``LearnedKernel``, ``Comparison`` and ``KernelErrors`` hold everything
  that a page shows. Each gives its numbers as JSON with ``as_dict``.
- pages: ``render_...`` returns the HTML of a value and ``write_...`` writes it. ``page`` has what all pages share,
  ``figures`` turns figures of matplotlib into SVG, and ``templates`` holds the HTML.

matplotlib and jinja2 are imported only when a page is drawn.

>>> metrics = classification_metrics(["cat", "dog", "dog"], ["cat", "dog", "cat"])
>>> page = Evaluation("Pets", "HistogramClassifier", data={"file": "pets.npz"}, metrics=metrics)
>>> write_report(page, "pets.html")  # doctest: +SKIP
PosixPath('pets.html')
"""

from __future__ import annotations

from chimap.features.kernel_errors import KernelErrors
from chimap.reports.comparison import Comparison, compare, render_comparison, write_comparison
from chimap.reports.evaluation import Evaluation
from chimap.reports.evaluation_page import render_report, write_report
from chimap.reports.explanation import ExplainedRow, Likeness, ModelExplanation
from chimap.reports.explanation_page import render_explanation, write_explanation
from chimap.reports.insight import Insight, Mistake, TwoClasses, worst_errors, worst_mistakes
from chimap.reports.kernel import (
    ChannelPath,
    ChannelWeights,
    LearnedKernel,
    Widths,
    render_learned_kernel,
    write_learned_kernel,
)
from chimap.reports.measures import (
    Baseline,
    ClassificationMetrics,
    RegressionMetrics,
    Reliability,
    TaskMetrics,
    accuracy,
    classification_metrics,
    majority_baseline,
    mean_baseline,
    most_confused,
    regression_metrics,
    task_metrics,
    wilson_interval,
)
from chimap.reports.page import package_versions
from chimap.reports.pictures import Example, ExampleRow, Examples, examples
from chimap.reports.ranking import (
    PrecisionRecall,
    RankingMetrics,
    average_precision,
    precision_recall,
    ranking_metrics,
)
from chimap.reports.selection import ComponentScores, StrengthCurve, write_selection
from chimap.reports.splits import SplitScores, repeated_splits

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
    "compare",
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
