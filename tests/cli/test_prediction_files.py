"""What a file of predictions holds beside the predictions."""

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap.cli.predictions import writer
from chimap.data import ArraySource, open_source
from chimap.engines import Progress

IDS = [f"sample {i}" for i in range(60)]
KINDS = np.array(["fox", "hen"])[np.arange(60) % 2]
X = np.random.default_rng(0).random((60, 4)) + (KINDS == "fox")[:, None] * [1, 0, 0, 0]


@pytest.fixture(scope="module")
def model():
    return HistogramClassifier("chi2", features="additive", random_state=0).fit(X, KINDS)


def named(ids):
    source = ArraySource(X)
    source.row_ids = np.array(ids, dtype=object)
    return source


@pytest.mark.parametrize("wanted", [(), ("scores",), ("scores", "probabilities")])
def test_arrays_carry_the_ids_of_the_rows(model, wanted, tmp_path):
    writer(tmp_path / "p.npz", model, wanted)(model, named(IDS), Progress())
    with np.load(tmp_path / "p.npz") as saved:
        assert saved["row_ids"].tolist() == IDS
        np.testing.assert_array_equal(saved["predictions"], model.predict(X))
        assert {"row_ids", "predictions", *wanted} <= set(saved)
    writer(tmp_path / "p.csv", model, wanted)(model, named(IDS), Progress())
    lines = [line.split(",")[:2] for line in (tmp_path / "p.csv").read_text().splitlines()]
    assert lines[1:] == [[name, kind] for name, kind in zip(IDS, model.predict(X), strict=True)]


def test_ids_of_scores_are_read_again(model, tmp_path):
    writer(tmp_path / "p.npz", model, ("scores",))(model, named(IDS), Progress())
    assert open_source(f"{tmp_path}/p.npz::scores").row_ids.tolist() == IDS


def test_rows_without_names_have_no_ids(model, tmp_path):
    writer(tmp_path / "p.npz", model)(model, ArraySource(X), Progress())
    with np.load(tmp_path / "p.npz") as saved:
        assert set(saved) == {"predictions"}
