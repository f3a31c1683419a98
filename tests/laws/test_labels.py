"""Labels over all readers and commands: text stays text, and what is missing, unknown or of another type is said."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor, load, open_source
from chimap._validation import DataError
from chimap.data.label_kinds import is_text, texts_of

from ..cli.terminal import run_here, run_many_here
from .readers import BINS, FILES, N_ROWS, OBJECTS, counts_of, frame_of

for package in ("pyarrow", "polars", "datasets", "anndata", "biom", "h5py", "zarr"):
    pytest.importorskip(package)

QUICK = ["--kernel", "chi2", "--alpha", "1", "--overwrite"]


def repeated(words):
    return [words[row % len(words)] for row in range(N_ROWS)]


KINDS = {
    "padded": ["01", "1", "1E5", "007"],
    "of one number": ["1.0", "1", "2"],
    "words": ["gut", "skin", "soil"],
    "words and numbers": ["3", "6a", "12", "cat"],
    "beyond 64 bits": ["99999999999999999999", "99999999999999999998"],
    "truth": ["True", "False"],
    "for missing": ["Nan", "not collected", "missing: control sample", "n/a", "gut"],
    "long": ["a" * 1000, "a" * 999 + "b"],
    "accents": ["é", "naïve", "日本"],
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", FILES)
def test_text_stays_text_in_files(tmp_path, reader, kind):
    words = repeated(KINDS[kind])
    source = open_source(*FILES[reader](tmp_path, words))
    assert source.n_features == len(BINS)
    assert is_text(source.labels())
    assert source.labels().tolist() == words


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", OBJECTS)
def test_text_stays_text_in_memory(reader, kind):
    words = repeated(KINDS[kind])
    data = OBJECTS[reader](words)
    source = open_source(data, "site")
    assert source.labels().tolist() == words
    model = HistogramClassifier("chi2", alpha=1.0).fit(data, "site")
    assert sorted(map(str, model.classes_)) == sorted(KINDS[kind])
    answers = model.labels_of(model.predict_source(open_source(data, like=model)))
    assert {*answers.tolist()} <= {*words}
    assert model.score(data, "site") > 0.9


NUMBERS = {
    "whole": (["0", "1", "12"], np.int64),
    "decimals": (["0.50", "1.25", "-0.00"], np.float64),
    "exponents": (["1e-05", "1.5E+03", "2.000000000000000000e+00"], np.float64),
    "whole with a point": (["0.0", "1.0"], np.int64),
    "without a zero": ([".5", "-.25"], np.float64),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_what_programs_print_as_numbers_are_numbers(tmp_path, kind):
    words, dtype = NUMBERS[kind]
    for reader in ("csv", "tsv.gz", "lines of labels", "biom and tsv"):
        data, labels = FILES[reader](tmp_path, repeated(words))
        y = open_source(data, labels).labels()
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, np.array(repeated(words), dtype=np.float64))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A model of each kind of labels, fitted on a CSV."""
    home = tmp_path_factory.mktemp("labels")
    for kind, words in KINDS.items():
        frame_of(repeated(words)).to_csv(home / f"{kind}.csv", index=False)
        command = ["fit", f"{kind}.csv", "--labels", "site", *QUICK, "-o", f"{kind}.model"]
        result = run_here(*command, cwd=home)
        assert result.code == 0, result.err
    return home


# Every reader, and every kind of labels for those that are read by different code.
CROSSED = [(reader, "padded") for reader in FILES] + [
    (reader, kind) for kind in KINDS if kind != "padded" for reader in ("csv", "parquet", "jsonl")
]


@pytest.mark.parametrize(("reader", "kind"), CROSSED)
def test_every_command_keeps_text(home, reader, kind, tmp_path):
    """A model of a CSV is evaluated, explained and asked on other files, and its answers are the words."""
    model, words = home / f"{kind}.model", repeated(KINDS[kind])
    assert sorted(load(model).classes_.tolist()) == sorted(KINDS[kind])
    data, labels = FILES[reader](tmp_path, words)
    shared = [model, data, "--labels", labels]
    commands = [
        ["evaluate", *shared, "--all-rows", "--json"],
        ["explain", *shared, "--json"],
        ["predict", *shared, "-o", "p.csv"],
        ["predict", *shared, "-o", "p.npy"],
        ["predict", *shared, "--scores", "--sets", "-o", "p.npz"],
    ]
    results = run_many_here(commands, tmp_path)
    for command, result in zip(commands, results, strict=True):
        assert result.code == 0, (command, result.err)
    assert results[0].json["metrics"]["accuracy"] > 0.9
    assert {row["truth"] for row in results[1].json["rows"]} <= {*words}
    answers = np.load(tmp_path / "p.npy", allow_pickle=False)
    assert np.mean(answers == np.array(words)) > 0.9
    archive = np.load(tmp_path / "p.npz", allow_pickle=False)
    np.testing.assert_array_equal(archive["predictions"], answers)
    assert sorted(archive["classes"].tolist()) == sorted(KINDS[kind])
    with open(tmp_path / "p.csv", encoding="utf-8", newline="") as file:
        assert [line["prediction"] for line in csv.DictReader(file)] == answers.tolist()


def test_labels_too_wide_for_an_array_go_through_every_command(tmp_path, monkeypatch):
    """Many long labels are kept as references to words, an array of objects."""
    monkeypatch.setattr("chimap.data.labels.WIDE_BYTES", 1)
    words = repeated(KINDS["long"])
    frame_of(words).to_csv(tmp_path / "rows.csv", index=False)
    assert open_source(tmp_path / "rows.csv", "site").labels().dtype == object
    named = ["rows.csv", "--labels", "site"]
    commands = [
        ["info", *named],
        ["fit", *named, *QUICK, "--class-weight", "balanced", "--test-fraction", "0.3", "-o", "a.model"],
        ["evaluate", "a.model", *named, "-o", "page.html"],
        ["explain", "a.model", *named, "--json"],
        ["predict", "a.model", "rows.csv", "-o", "p.npy"],
        ["compare", *named],
        ["export", "a.model", "-o", "a.onnx"],
    ]
    for command, result in zip(commands, run_many_here(commands, tmp_path), strict=True):
        assert result.code == 0, (command, result.err)
    assert np.mean(np.load(tmp_path / "p.npy", allow_pickle=False) == np.array(words)) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_exports_keep_text(home, kind, tmp_path):
    commands = [["export", home / f"{kind}.model", "-o", tmp_path / f"a{ending}"] for ending in (".onnx", ".json")]
    for result in run_many_here(commands, tmp_path):
        assert result.code == 0, result.err
    outputs = json.loads((tmp_path / "a.json").read_text())["outputs"]
    assert outputs == sorted(KINDS[kind])[-len(outputs) :]
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(tmp_path / "a.onnx")
    rows = counts_of(repeated(KINDS[kind])).astype(np.float32)
    labels = session.run(None, {session.get_inputs()[0].name: rows})[0]
    assert labels.tolist() == load(home / f"{kind}.model").predict(rows).tolist()


@pytest.mark.parametrize("reader", FILES)
def test_numbers_meet_text_as_text(tmp_path, reader):
    """Classes 0 and 1 as numbers in one file are "0" and "1" in another, whichever of them was fitted."""
    numbers = HistogramClassifier("chi2", alpha=1.0).fit(frame_of(repeated([0, 1])), "site")
    texts = HistogramClassifier("chi2", alpha=1.0).fit(frame_of(repeated(["0", "1"])), "site")
    numbers.save(tmp_path / "numbers.model")
    texts.save(tmp_path / "texts.model")
    data, labels = FILES[reader](tmp_path, repeated(["0", "1"]))
    commands = [["evaluate", f"{name}.model", data, "--labels", labels, "--json"] for name in ("numbers", "texts")]
    for result in run_many_here(commands, tmp_path):
        assert result.code == 0, result.err
        assert result.json["metrics"]["accuracy"] > 0.9
    source = open_source(data, labels)
    for model in (numbers, texts):
        assert model.score(source, source.labels()) > 0.9


# --- labels that are unknown, missing or of another type


SPOILT = {
    "unknown": repeated(["gut", "skin", "zebra"]),
    "partly missing": repeated(["gut", None, "skin"]),
    "all missing": [None] * N_ROWS,
    "numbers": repeated([1, 2]),
    "fractions": repeated([0.5, 1.5, 2.25]),
    "numbers among text": repeated(["gut", "7"]),
}
NULLS = ("csv", "tsv.gz", "parquet", "feather", "jsonl", "lines of labels", "h5ad", "npz and parquet")


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """A classifier and a regression."""
    folder = tmp_path_factory.mktemp("machines")
    frame_of(repeated(["gut", "skin"])).to_csv(folder / "classes.csv", index=False)
    frame_of(repeated([0.5, 1.5, 2.5])).to_csv(folder / "numbers.csv", index=False)
    commands = [
        ["fit", f"{name}.csv", "--labels", "site", *QUICK, "-o", f"{name}.model"] for name in ("classes", "numbers")
    ]
    for result in run_many_here(commands, folder):
        assert result.code == 0, result.err
    return folder


@pytest.mark.covering(1)
@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize("reader", NULLS)
def test_predictions_need_no_labels(tmp_path, machines, reader, spoilt):
    data, labels = FILES[reader](tmp_path, SPOILT[spoilt])
    commands = [
        ["predict", machines / f"{name}.model", data, *flag, "-o", f"{name}.csv", "--overwrite"]
        for name in ("classes", "numbers")
        for flag in ([], ["--labels", labels])
    ]
    for command, result in zip(commands, run_many_here(commands, tmp_path), strict=True):
        assert result.code == 0, (command, result.err)
        assert f"Wrote {N_ROWS} predictions" in result.out
    model = load(machines / "classes.model")
    assert model.predict_source(open_source(data, like=model)).shape[0] == N_ROWS


# What each command says, by the kind of spoilt labels: the classifier's command, or None where it goes through.
NOT_KNOWN = r"row 2: label zebra is not among the 2 classes"
SAID = {
    "unknown": {"evaluate": NOT_KNOWN, "explain": NOT_KNOWN},
    "partly missing": {},
    "all missing": dict.fromkeys(("fit", "compare", "learn-kernel", "evaluate", "explain"), "every label is missing"),
    "numbers": dict.fromkeys(("evaluate", "explain"), "row 0: label 1.*is not among the 2 classes"),
    "fractions": dict.fromkeys(("evaluate", "explain"), "row 0: label 0.5.*is not among the 2 classes"),
    "numbers among text": dict.fromkeys(("evaluate", "explain"), "row 1: label 7.* is not among the 2 classes"),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_every_command_checks_labels(tmp_path, machines, spoilt):
    data, labels = FILES["parquet"](tmp_path, SPOILT[spoilt])
    named = [data, "--labels", labels]
    commands = {
        "fit": ["fit", *named, *QUICK, "-o", "a.model"],
        "compare": ["compare", *named],
        "learn-kernel": ["learn-kernel", *named, "--blocks", "a=0:3,b=3:6", "--components", "16", "-o", "b.model"],
        "evaluate": ["evaluate", machines / "classes.model", *named],
        "explain": ["explain", machines / "classes.model", *named, "-o", "a.html"],
        "info": ["info", *named],
    }
    results = dict(zip(commands, run_many_here([*commands.values()], tmp_path), strict=True))
    for name, result in results.items():
        said = SAID[spoilt].get(name)
        if name == "info" and spoilt == "all missing":
            said = "every label is missing"
        assert "Traceback" not in result.err, (name, result.err)
        assert result.code == (0 if said is None else 2), (name, result.err)
        if said is not None:
            assert re.search(said, result.err), (name, result.err)


def test_a_regression_takes_text_that_is_numbers_and_names_what_is_none(tmp_path, machines):
    frame_of(repeated(["1e3", "007", "2.5"])).to_parquet(tmp_path / "text.parquet")
    frame_of(repeated(["0.5", "1.5", "cat"])).to_csv(tmp_path / "cat.csv", index=False)
    fitted, evaluated, refused = run_many_here(
        [
            ["fit", "text.parquet", "--labels", "site", "--task", "regress", *QUICK, "-o", "a.model"],
            ["evaluate", "a.model", "text.parquet", "--labels", "site", "--json"],
            ["evaluate", machines / "numbers.model", "cat.csv", "--labels", "site"],
        ],
        tmp_path,
    )
    assert (fitted.code, evaluated.code) == (0, 0), fitted.err + evaluated.err
    assert evaluated.json["metrics"]["r2"] > 0.8
    assert refused.code == 2
    assert "row 2: label 'cat', but a regression needs numbers" in refused.err
    source = open_source(tmp_path / "text.parquet", "site")
    model = HistogramRegressor("chi2", alpha=1.0).fit_source(source)
    expected = HistogramRegressor("chi2", alpha=1.0).fit(source.take(np.arange(N_ROWS)), repeated([1000.0, 7.0, 2.5]))
    np.testing.assert_allclose(model.feature_coef_, expected.feature_coef_)


def test_text_that_is_nearly_all_numbers_is_asked_about(tmp_path):
    words = [f"{row / 7:.3f}" for row in range(N_ROWS)]
    frame = frame_of(words)
    frame["site"] = [*words[:-1], "abc"]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    asked, told = run_many_here(
        [
            ["fit", "rows.csv", "--labels", "site", *QUICK, "-o", "a.model", *task]
            for task in ([], ["--task", "classify"])
        ],
        tmp_path,
    )
    assert asked.code == 2
    assert "'abc' in row 59 is no finite number" in asked.err
    assert "--task regress" in asked.err
    assert told.code == 0, told.err
    assert "60 classes" in told.out


# --- words for missing


@pytest.mark.parametrize("reader", FILES)
def test_words_for_missing_are_classes_until_told(tmp_path, reader):
    words = repeated(KINDS["for missing"])
    data, labels = FILES[reader](tmp_path, words)
    source = open_source(data, labels)
    note = next(note for note in source.notes if "taken for classes" in note)
    for word in ("Nan", "not collected", "missing: control sample", "n/a"):
        assert f"{word!r} (12 rows)" in note
    assert "missing='Nan,missing: control sample,n/a,not collected'" in note
    assert source.n_left_out == 0
    for missing in (
        ["Nan", "n/a", "not collected", "missing: control sample"],
        "Nan,n/a,not collected,missing: control sample",
    ):
        told = open_source(data, labels, missing=missing)
        assert {*told.labels().tolist()} == {"gut"}
        assert told.n_left_out == 48


@pytest.mark.parametrize("reader", NULLS)
def test_nulls_and_blanks_are_missing(tmp_path, reader):
    data, labels = FILES[reader](tmp_path, repeated(["gut", None, "skin", None]))
    source = open_source(data, labels)
    assert source.n_left_out == N_ROWS // 2
    assert {*source.labels().tolist()} == {"gut", "skin"}


@pytest.mark.parametrize("word", ["NA", "?", "unknown", "Not Collected", "inf"])
def test_words_for_missing_among_numbers_are_refused(tmp_path, word):
    data, labels = FILES["csv"](tmp_path, repeated(["0", "1", word]))
    with pytest.raises(DataError, match=r"row 2: .*(among numbers such as '0'|is no finite number)"):
        open_source(data, labels)
    assert open_source(data, labels, missing=word).labels().tolist() == repeated([0, 1])[: N_ROWS * 2 // 3]


def test_the_column_of_the_fit_is_read_or_its_fault_is_told(tmp_path, machines):
    """A column of labels that is there but cannot be used is no missing column."""
    frame_of(repeated(["gut", "skin"])).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "bad.csv").write_text((tmp_path / "rows.csv").read_text().replace(",gut", ",1").replace(",skin", ",?"))
    frame_of(repeated(["gut"]))[BINS].to_csv(tmp_path / "none.csv", index=False)
    told, none = run_many_here(
        [["evaluate", machines / "classes.model", name] for name in ("bad.csv", "none.csv")], tmp_path
    )
    assert (told.code, none.code) == (2, 2)
    assert "'?' among numbers such as '1'" in told.err
    assert "none.csv has no labels. Name them; the model was fitted with --labels site" in none.err


# --- groups and ids


@pytest.mark.parametrize("kind", ["padded", "words and numbers", "beyond 64 bits"])
def test_groups_and_ids_keep_text(tmp_path, kind):
    groups = repeated(KINDS[kind])
    frame = frame_of(repeated(["gut", "skin"])).assign(host=groups, name=[f"{row:03}" for row in range(N_ROWS)])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for path in ("rows.csv", "rows.parquet"):
        source = open_source(tmp_path / path, "site", id="name", aside="host")
        assert texts_of(source.column("host")).tolist() == groups
        assert source.row_ids.tolist() == frame["name"].tolist()


@pytest.mark.parametrize("groups", [["a", None], ["a", "  "], ["a", float("nan")], [1, "a"]])
def test_groups_are_checked_as_labels_are(groups):
    """A group that is missing, and numbers among text, are refused wherever they stand."""
    X, y = counts_of(repeated([0, 1])), repeated([0, 1])
    with pytest.raises(DataError, match=r"groups, row [01]: "):
        HistogramClassifier("chi2", alpha=1.0).fit(X, y, groups=np.array(repeated(groups), dtype=object))
