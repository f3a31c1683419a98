"""The precision of a fit: "auto" is float32, a model says which it was, and what went is refused with what to use."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import HistogramClassifier, load
from chimap.cli import describe
from tests.histograms import classes

X, y = classes(200, 16)
LANDMARKS = {"kernel": "exp-chi2", "features": "landmarks", "n_components": 32, "alpha": 0.1, "random_state": 0}


@pytest.mark.parametrize(("asked", "found"), [("auto", "float32"), ("float32", "float32"), ("float64", "float64")])
def test_a_model_says_its_precision(asked, found, tmp_path):
    model = HistogramClassifier(**LANDMARKS, precision=asked).fit(X, y)
    assert (model.precision, model.precision_) == (asked, found)
    model.save(tmp_path / "m")
    facts, lines = describe.model(tmp_path / "m")
    assert facts["precision"] == found
    assert f"in {found}:" in lines["features"]
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_bfloat16_is_refused_with_what_to_use():
    with pytest.raises(ValueError, match=r"precision='bfloat16' is gone.*precision='float32'"):
        HistogramClassifier(**LANDMARKS, precision="bfloat16").fit(X, y)
