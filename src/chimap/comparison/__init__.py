"""Comparison of kernels on the user's rows, and of a kernel with its features.

``entrants`` lists what is compared: every kernel that suits the rows, or one kernel with all its features.
``full_race`` races them on one sample and fits the best as all rows will be fitted, for its score and its time.
``kernel_errors`` measures how far maps and features of one kernel are from the exact kernel; ``feature_candidates``
lists them. The results are a ``chimap.report.Comparison``, which recommends a machine, and
``chimap.report.KernelErrors``.
"""

from chimap.comparison.full_race import compare
from chimap.comparison.kernel_errors import kernel_errors

__all__ = ["compare", "kernel_errors"]
