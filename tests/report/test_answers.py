"""What is measured is checked first."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.report import (
    accuracy,
    classification_metrics,
    regression_metrics,
)


@pytest.mark.parametrize("measure", [accuracy, classification_metrics, regression_metrics])
def test_no_rows_and_unequal_lengths_are_refused(measure):
    with pytest.raises(ValueError, match="y_true has 0 rows"):
        measure([], [])
    with pytest.raises(ValueError, match="3 rows and y_pred 2"):
        measure([1, 2, 3], [1, 2])


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="y_pred, row 1: nan"):
        regression_metrics([1.0, 2.0], [1.0, np.nan])
    with pytest.raises(ValueError, match="must hold numbers"):
        regression_metrics(["a", "b"], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        regression_metrics(np.ones((2, 2)), np.ones((2, 2)))
