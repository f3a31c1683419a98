"""Intervals of shares against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from chimap.report import (
    wilson_interval,
)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 30), (30, 30), (7, 10), (9_312, 10_000)])
def test_wilson_interval_is_scipys(successes, n, confidence):
    expected = binomtest(successes, n).proportion_ci(confidence, method="wilson")
    np.testing.assert_allclose(wilson_interval(successes, n, confidence), expected, atol=1e-12)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_wilson_interval_refuses_impossible_counts(successes, n):
    with pytest.raises(ValueError, match="0 <= successes <= n"):
        wilson_interval(successes, n)


def test_wilson_interval_refuses_percentages():
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson_interval(5, 10, confidence=95)
