"""The k-th highest scores, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.estimators.histogram import kth_highest


@pytest.mark.parametrize(("k", "expected"), [(1, [4.0, -1.0]), (2, [3.0, -5.0]), (4, [-2.0, -9.0])])
def test_kth_highest_is_one_of_the_scores(k, expected):
    scores = np.array([[3.0, -9.0], [-2.0, -1.0], [4.0, -7.0], [0.5, -5.0]])
    np.testing.assert_array_equal(kth_highest(scores, k), expected)
