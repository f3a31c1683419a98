"""The value behind the page: plain as JSON, checked at the door."""

from __future__ import annotations

import json

import numpy as np
import pytest

from chimap.reports import StrengthCurve


def test_as_dict_is_plain_json(evaluation):
    plain = evaluation.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["data"]["rows"] == 12_000
    assert list(plain["stages"]) == list(evaluation.stages)


def test_curve_is_sorted_by_alpha():
    curve = StrengthCurve([1.0, 0.01, 0.1], [3.0, 1.0, 2.0], [0.3, 0.1, 0.2], chosen=0.01)
    np.testing.assert_array_equal(curve.alphas, [0.01, 0.1, 1.0])
    np.testing.assert_array_equal(curve.errors, [1.0, 2.0, 3.0])
    assert curve.at_border
    assert curve.error_at_chosen == 1.0


def test_a_search_has_no_border():
    """It has seen both sides of the best by the slope, whatever strengths it was scored at."""
    searched = StrengthCurve([0.01, 0.1, 1.0], [3.0, 2.0, 1.0], np.zeros(3), chosen=1.0, is_searched=True)
    assert not searched.at_border


@pytest.mark.parametrize(
    ("alphas", "errors", "message"),
    [([1.0, 2.0], [1.0], "one shape"), ([], [], "n >= 1"), ([0.0, 1.0], [1.0, 1.0], "positive")],
)
def test_bad_curves_are_refused(alphas, errors, message):
    with pytest.raises(ValueError, match=message):
        StrengthCurve(alphas, errors, errors, chosen=1.0)
