"""The race told in full, and kernels beside their features.

``entrants`` lists what runs: every kernel that suits the rows, or one with all its features. ``full_race`` races them
on one sample and fits the best as all rows will be fitted, for its score and its time. ``kernel_errors`` measures how
far maps and features of one kernel are from the exact one; ``feature_candidates`` lists them. What comes out are a
``chimap.report.Comparison``, which recommends, and ``chimap.report.KernelErrors``.
"""

from chimap.comparison.full_race import compare
from chimap.comparison.kernel_errors import kernel_errors

__all__ = ["compare", "kernel_errors"]
