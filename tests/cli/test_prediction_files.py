"""What a file of predictions holds besides the predictions."""

import csv

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor
from chimap.cli.predictions import writer
from chimap.data import ArraySource
from chimap.engines import Progress
from chimap.readers import open_source

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
    writer(tmp_path / "p.npz", model.fitted, wanted)(named(IDS), Progress())
    with np.load(tmp_path / "p.npz") as saved:
        assert saved["row_ids"].tolist() == IDS
        np.testing.assert_array_equal(saved["predictions"], model.predict(X))
        assert {"row_ids", "predictions", *wanted} <= set(saved)
    writer(tmp_path / "p.csv", model.fitted, wanted)(named(IDS), Progress())
    lines = [line.split(",")[:2] for line in (tmp_path / "p.csv").read_text().splitlines()]
    assert lines[1:] == [[name, kind] for name, kind in zip(IDS, model.predict(X), strict=True)]


def test_ids_of_scores_are_read_again(model, tmp_path):
    writer(tmp_path / "p.npz", model.fitted, ("scores",))(named(IDS), Progress())
    assert open_source(f"{tmp_path}/p.npz::scores").row_ids.tolist() == IDS


def test_rows_without_names_have_no_ids(model, tmp_path):
    writer(tmp_path / "p.npz", model.fitted)(ArraySource(X), Progress())
    with np.load(tmp_path / "p.npz") as saved:
        assert set(saved) == {"predictions"}


UNREAD = {1: "'xx': not SMILES", 59: "no SMILES"}
NUMBERS = np.arange(60) % 2
TARGETS = {
    "text": (HistogramClassifier, KINDS),
    "numbers": (HistogramClassifier, NUMBERS),
    "three classes": (HistogramClassifier, np.arange(60) % 3),
    "true or false": (HistogramClassifier, NUMBERS == 1),
    "tasks": (HistogramClassifier, np.column_stack([NUMBERS, 1 - NUMBERS])),
    "regression": (HistogramRegressor, X[:, 0]),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_rows_that_could_not_be_read_are_blank_and_have_a_reason(kind, tmp_path):
    """In each kind of file, in their order; the others are what they are without them."""
    estimator, y = TARGETS[kind]
    model = estimator("chi2", features="additive", random_state=0).fit(X, y)
    answers = model.predict(X)
    source = named(IDS)
    source.unread = UNREAD
    extras = ("intervals",) if kind == "regression" else ("scores", "probabilities", "sets")
    for ending in ("csv", "npz"):
        with pytest.warns(match=r"2 of 60 records cannot be read: 'sample 1' \('xx': not SMILES\), 'sample 59' \(no"):
            writer(tmp_path / f"p.{ending}", model.fitted, extras)(source, Progress())
    with pytest.warns(match="They have no prediction"):
        writer(tmp_path / "p.npy", model.fitted)(source, Progress())
    rows = list(csv.reader((tmp_path / "p.csv").read_text().splitlines()))
    assert rows[0][-1] == "reason"
    n_answers = 2 if kind == "tasks" else 1
    for row, (name, *fields, reason) in enumerate(rows[1:]):
        assert name == IDS[row]
        assert reason == UNREAD.get(row, "")
        expected = ["" for _ in fields] if row in UNREAD else [*map(str, np.ravel(answers[row]))]
        assert fields[:n_answers] == expected[:n_answers]
        assert row not in UNREAD or not any(fields)
    others = np.setdiff1d(np.arange(60), [*UNREAD])
    with np.load(tmp_path / "p.npz") as saved:
        assert saved["reason"].tolist() == [UNREAD.get(row, "") for row in range(60)]
        for stored in (saved["predictions"], np.load(tmp_path / "p.npy")):
            np.testing.assert_array_equal(stored[others], answers[others])
            blank = stored[[*UNREAD]]
            assert (blank == "").all() if kind == "text" else np.isnan(blank).all()


def test_without_such_rows_there_is_no_reason(model, tmp_path):
    writer(tmp_path / "p.csv", model.fitted)(named(IDS), Progress())
    assert (tmp_path / "p.csv").read_text().splitlines()[0] == "id,prediction"


@pytest.mark.parametrize("kind", ["csv", "npz", "npy"])
@pytest.mark.parametrize("texts", [True, False], ids=["text", "numbers"])
def test_rows_like_none_of_the_classes_are_unassigned(texts, kind, tmp_path):
    """The files hold what ``predict`` returns, as text, and the number of such rows is counted."""
    y = KINDS if texts else (KINDS == "fox").astype(int)
    rows = np.concatenate([X, np.zeros((2, X.shape[1]))])
    model = HistogramClassifier("exp-chi2", features="exact", random_state=0).fit(X, y)
    expected = model.predict(rows, unassigned=0.1).astype(str).tolist()
    path = tmp_path / f"p.{kind}"
    counted = writer(path, model.fitted, unassigned=0.1)(ArraySource(rows), Progress())
    assert counted == expected.count("unassigned") >= 2
    if kind == "csv":
        found = path.read_text().splitlines()[1:]
    else:
        saved = np.load(path)
        found = (saved["predictions"] if kind == "npz" else saved).tolist()
    assert found == expected


def test_models_that_assign_every_row(tmp_path):
    compiled = HistogramClassifier("chi2").fit(X, KINDS).compile()
    with pytest.raises(ValueError, match="which a CompiledClassifier does not keep"):
        writer(tmp_path / "p.csv", compiled.fitted, unassigned=0.1)
    regressor = HistogramRegressor("chi2").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="a regression has no classes that a row could lack"):
        writer(tmp_path / "p.csv", regressor.fitted, unassigned=0.1)
