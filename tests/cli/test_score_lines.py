"""Scores on one line, as commands print them; and names of normalisations as flags take them."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.cli.flag_values import normalization_of
from chimap.reports import classification_metrics
from chimap.reports.measures import Baseline
from chimap.reports.score import Score

BASELINE = Baseline("always answering “a”", 0.5)


def test_two_classes_lead_with_the_area_under_the_curve():
    y, scores = np.array(["a", "a", "b", "b"]), np.array([-1.0, 0.4, 0.2, 2.0])
    line = Score(classification_metrics(y, np.where(scores > 0, "b", "a"), scores=scores), BASELINE, 0.1).line
    assert line.startswith("ROC AUC 0.750, accuracy 75.0 % (")
    several = Score(classification_metrics(["a", "b", "c"], ["a", "b", "b"]), BASELINE, 0.1).line
    assert several.startswith("accuracy 66.7 % (")


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("l1", "l1"), ("none", None), ("none,log-cpm", [None, "log-cpm"]), ("l1, sqrt", ["l1", "sqrt"])],
)
def test_normalisations_of_a_flag(text, expected):
    assert normalization_of(text) == expected


def test_unknown_normalisations_are_named():
    with pytest.raises(ValueError, match=r"--normalization must be one of l1, .*none; got 'clr'"):
        normalization_of("l1,clr")
