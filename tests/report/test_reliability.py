"""Whether probabilities mean what they say, as a number and on the page."""

import json
import re

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.report import Reliability, render_report

from .cases import CASES


def test_the_error_is_by_tenths_and_by_rows():
    confidence = np.array([0.31, 0.39, 0.9, 0.94, 0.92, 1.0])
    right = np.array([True, False, True, True, False, True])
    found = Reliability(confidence, right)
    bands = found.bands()
    assert [rows for _, _, rows in bands] == [2, 4]  # 1 is of the last tenth
    assert bands[0][:2] == pytest.approx((0.35, 0.5))
    assert bands[1][:2] == pytest.approx((0.94, 0.75))
    assert found.error == pytest.approx((2 * 0.15 + 4 * 0.19) / 6)


def test_probabilities_that_come_true_have_no_error():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.1, 1, 200_000)
    right = rng.random(confidence.size) < confidence
    assert Reliability(confidence, right).error < 0.005
    assert Reliability(confidence, ~right).error > 0.2


@pytest.mark.parametrize(
    ("confidence", "right"), [([], []), ([0.5], [True, False]), ([1.5], [True]), ([np.nan], [True])]
)
def test_what_is_no_probability_is_refused(confidence, right):
    with pytest.raises(DataError, match="probabilit"):
        Reliability(np.array(confidence), np.array(right, dtype=bool))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ten classes", "two unequal classes"])
def test_the_page_and_json_say_the_error(name):
    evaluation = CASES[name]()
    said = json.loads(json.dumps(evaluation.as_dict()))["reliability"]
    assert said["expected_calibration_error"] == pytest.approx(evaluation.reliability.error)
    assert sum(band["rows"] for band in said["bands"]) == evaluation.reliability.right.size
    page = render_report(evaluation)
    off = f"{100 * evaluation.reliability.error:.1f}"
    assert len(re.findall(rf"differ by {off}\s%\son average", page)) == 1
    assert ("Calibration of the probabilities" in page) == (name == "ten classes")
