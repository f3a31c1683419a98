"""--bin-weights and --time-limit: weights are learned, shown by name, and refused where they are misspelt."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from chimap import load

from .terminal import run_many

pytestmark = pytest.mark.slow

FIT = ["fit", "rows.csv", "--labels", "y", "--overwrite"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    X = np.random.default_rng(0).gamma(1.0, size=(300, 12))
    names = ["signal", *(f"noise{i}" for i in range(11))]
    pd.DataFrame(X, columns=names).assign(y=np.sin(2 * X[:, 0])).to_csv(folder / "rows.csv", index=False)
    return folder


def test_weights_are_learned_and_shown_by_name(rows):
    fit = [*FIT, "-o", "a.model", "--kernel", "exp-chi2", "--bin-weights", "learn", "--verbose"]
    fitted, info, told, explained = run_many(
        [fit, ["info", "a.model"], ["info", "a.model", "--json"], ["explain", "a.model", "rows.csv"]], cwd=rows
    )
    assert fitted.code == 0, fitted.err
    for output in (fitted.out, info.out, explained.out):
        assert "bin weights" in output
        assert "signal" in output.split("bin weights")[1]
    weights = json.loads(told.out)["bin_weights"]
    np.testing.assert_allclose(weights, load(rows / "a.model").bin_weights_)
    assert int(np.argmax(weights)) == 0


def test_none_are_learned_where_none_are_asked_for(rows):
    given = [*FIT, "-o", "b.model", "--time-limit", "0.001", "--bin-weights", "none", "--json"]
    (fitted,) = run_many([given], cwd=rows)
    assert fitted.code == 0, fitted.err
    told = json.loads(fitted.out)
    assert told["bin_weights"] is None
    assert len(told["race"]) == 1


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--bin-weights", "learned"], "--bin-weights must be auto, learn or none"),
        (["--time-limit", "0"], "--time-limit must be a time above 0, such as 10m"),
    ],
)
def test_what_will_not_do_is_refused(rows, flags, said):
    (refused,) = run_many([[*FIT, "-o", "c.model", *flags]], cwd=rows)
    assert refused.code != 0
    assert said in refused.err
