"""Groups of rows and parts of a split that a column names."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from chimap import load
from tests.histograms import tracks

from .terminal import run_many

pytestmark = pytest.mark.slow

KERNEL = ["--kernel", "exp-chi2"]
X, y, FILMS = tracks(24, 6, 8)
KINDS = np.array(["stop", "yield", "limit"])[y]
PARTS = np.where(FILMS % 4 == 0, "Test", "train")


@pytest.fixture(scope="module")
def signs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signs")
    bins = pd.DataFrame(X, columns=[f"b{i}" for i in range(8)])
    ids = np.array([f"s{i}" for i in range(y.size)])
    film = np.array([f"f{g:02d}" for g in FILMS])
    table = bins.assign(kind=KINDS, film=film, part=PARTS)
    table.to_csv(folder / "signs.csv", index=False)
    table.assign(film="f00").to_csv(folder / "one.csv", index=False)
    table.assign(film=np.where(FILMS < 12, "f1", "f2")).to_csv(folder / "two.csv", index=False)
    table.assign(film=np.where(np.arange(y.size) == 9, "", film)).to_csv(folder / "gap.csv", index=False)
    table.assign(part="train").to_csv(folder / "whole.csv", index=False)
    table.assign(part=np.where(np.arange(y.size) == 5, "val", PARTS)).to_csv(folder / "val.csv", index=False)
    truths = table.drop(columns="part").assign(is_train=PARTS == "train")
    truths.to_csv(folder / "truths.csv", index=False)
    bins.assign(kind=KINDS, name=ids).to_csv(folder / "bare.csv", index=False)
    pd.DataFrame({"name": ids[::-1], "film": film[::-1], "part": PARTS[::-1]}).to_csv(
        folder / "about.tsv", sep="\t", index=False
    )
    np.savez(folder / "signs.npz", X=X, y=y, film=FILMS, is_train=PARTS == "train")
    return folder


def fit(data, *flags, output="a.model"):
    labels = [] if data.endswith(".npz") else ["--labels", "kind"]
    return ["fit", data, *labels, *KERNEL, *flags, "-o", output, "--overwrite"]


def test_the_test_rows_of_a_split_are_held_out_and_evaluated(signs):
    fitted, evaluated, elsewhere, everything = run_many(
        [
            fit("signs.csv", "--exclude", "film", "--split", "part", "--json"),
            ["evaluate", "a.model", "signs.csv", "--labels", "kind", "--json"],
            ["evaluate", "a.model", "val.csv", "--labels", "kind", "--json"],
            ["evaluate", "a.model", "signs.csv", "--labels", "kind", "--all-rows", "--json"],
        ],
        signs,
    )
    n_test = int((PARTS == "Test").sum())
    assert fitted.code == 0, fitted.err
    assert (fitted.json["rows"], fitted.json["rows_held_out"]) == (y.size - n_test, n_test)
    assert evaluated.json["data"]["rows"] == n_test
    assert evaluated.json["metrics"]["accuracy"] == fitted.json["held_out"]["accuracy"]
    assert elsewhere.json["data"]["rows"] == y.size
    assert everything.json["data"]["rows"] == y.size
    assert load(signs / "a.model").n_features_in_ == 8


@pytest.mark.parametrize(
    ("data", "split", "films"),
    [
        ("bare.csv", "about.tsv::part", "about.tsv::film"),
        ("signs.npz", "is_train", "film"),
        ("truths.csv", "is_train", "film"),
    ],
)
def test_a_table_joined_by_id_and_arrays_say_the_same(signs, data, split, films):
    id = ["--id", "name"] if data == "bare.csv" else []
    fitted, evaluated = run_many(
        [
            fit(data, *id, "--split", split, "--groups", films, "--json", output="b.model"),
            [
                "evaluate",
                "b.model",
                data,
                "--labels",
                "y" if data.endswith("npz") else "kind",
                *id,
                "--split",
                split,
                "--json",
            ],
        ],
        signs,
    )
    assert fitted.code == 0, fitted.err
    assert fitted.json["rows_held_out"] == (PARTS == "Test").sum()
    assert evaluated.json["data"]["rows"] == (PARTS == "Test").sum()
    assert "are test in" in evaluated.json["data"]["which rows"]


def test_whole_groups_are_held_out_and_again_when_evaluated(signs):
    flags = ["--groups", "film", "--test-fraction", "0.3", "--seed", "1"]
    alone, together, evaluated = run_many(
        [
            fit("signs.csv", "--exclude", "film,part", *flags[2:], "--json"),
            fit("signs.csv", "--exclude", "part", *flags, "--json", "--report", "page.html"),
            ["evaluate", "a.model", "signs.csv", "--labels", "kind", "--json"],
        ],
        signs,
    )
    assert together.code == 0, together.err
    assert together.json["rows_held_out"] % 6 == 0
    assert together.json["held_out"]["accuracy"] < alone.json["held_out"]["accuracy"] - 0.1
    assert evaluated.json["data"]["rows"] == together.json["rows_held_out"]
    assert (
        evaluated.json["metrics"]["groups"] == together.json["held_out"]["groups"] == together.json["rows_held_out"] / 6
    )
    assert (signs / "page.html").exists()


def test_the_race_and_the_strength_hold_groups_out(signs):
    [fitted] = run_many(
        [["fit", "signs.csv", "--labels", "kind", "--groups", "film", "--exclude", "part", "-o", "r.model"]], signs
    )
    assert fitted.code == 0, fitted.err
    model = load(signs / "r.model")
    assert model.race_.trials[0].score < 0.95  # rows of a film that was learned from would all be right
    plain = load(signs / "r.model").set_params(kernel="auto").fit(X, y)
    assert plain.race_.trials[0].score > 0.97


def test_repeated_splits_keep_groups_on_one_side(signs):
    splits = ["--labels", "kind", "--splits", "3", "--json"]
    _, alone, together = run_many(
        [
            fit("signs.csv", "--exclude", "film,part"),
            ["evaluate", "a.model", "signs.csv", *splits],
            ["evaluate", "a.model", "signs.csv", *splits, "--groups", "film"],
        ],
        signs,
    )
    assert together.code == 0, together.err
    scores = [r.json["splits"]["accuracy"]["mean"] for r in (alone, together)]
    assert scores[1] < scores[0] - 0.1
    assert [r.json["metrics"]["groups"] for r in (alone, together)] == [None, 24]


BAD = {
    "one group": (fit("one.csv", "--groups", "film"), r"all rows are in one group, f00.*leave --groups out"),
    "two groups": (
        fit("two.csv", "--groups", "film", "--test-fraction", "0.3"),
        r"2 groups \(f1, f2\), but holding one out must leave two",
    ),
    "no group": (fit("gap.csv", "--groups", "film"), r"gap\.csv, row 9: no value in 'film'\. Every row needs"),
    "no column": (fit("signs.csv", "--groups", "track"), r"track"),
    "another part": (fit("val.csv", "--split", "part"), r"val\.csv, row 5: val in 'part'; --split needs"),
    "one part": (fit("whole.csv", "--split", "part"), r"--split part: every row is train"),
    "both": (
        fit("signs.csv", "--split", "part", "--test-fraction", "0.2"),
        "--split names the held-out rows, but --test-fraction draws them",
    ),
    "report": (fit("signs.csv", "--exclude", "film,part", "--report", "p.html"), "--test-fraction 0.2 or --split"),
    "per class": (
        ["evaluate", "e.model", "signs.csv", "--splits", "2", "--per-class", "3", "--groups", "film"],
        "--per-class draws rows of each class, but --groups keeps groups whole",
    ),
    "all rows": (
        ["evaluate", "e.model", "signs.csv", "--split", "part", "--all-rows"],
        "--split selects the test rows, but --all-rows takes every row",
    ),
    "groups of one class each": (
        ["evaluate", "e.model", "two.csv", "--labels", "kind", "--splits", "2", "--groups", "kind"],
        "a split has all rows of class",
    ),
}


def test_bad_input(signs):
    [made] = run_many([fit("signs.csv", "--exclude", "film,part", output="e.model")], signs)
    assert made.code == 0, made.err
    before = {p: p.stat().st_mtime_ns for p in signs.iterdir()}
    commands = [
        [word.replace("a.model", "new.model") if word == "a.model" else word for word in command]
        for command, _ in BAD.values()
    ]
    for (name, (_, text)), result in zip(BAD.items(), run_many(commands, signs), strict=True):
        assert result.code != 0, name
        assert re.search(text, result.err), (name, result.err)
        assert "Traceback" not in result.err
    assert {p: p.stat().st_mtime_ns for p in signs.iterdir()} == before


def test_images_have_no_such_columns(signs):
    from PIL import Image

    for kind in "ab":
        (signs / "photos" / kind).mkdir(parents=True)
        for i in range(3):
            Image.fromarray(np.full((32, 32), 40 * i, np.uint8)).save(signs / "photos" / kind / f"{i}.png")
    [refused] = run_many([["fit", "photos", "--groups", "film", "-o", "p.model"]], signs)
    assert "--groups, --split, --time, --sample-weight and --covariates name columns of tables" in refused.err


def test_a_column_that_looks_like_a_group_is_told_of_where_none_is_named(signs):
    told = (
        "column 'film' looks like a group: rows that share its value are nearly equal. Name it with --groups "
        "film, or scores will be too optimistic."
    )
    splits = ["--labels", "kind", "--exclude", "film,part", "--splits", "2", "--json"]
    warned, named, compared, array, evaluated = run_many(
        [
            fit("signs.csv", "--exclude", "film,part"),
            fit("signs.csv", "--exclude", "part", "--groups", "film"),
            ["compare", "signs.csv", "--labels", "kind", "--exclude", "film,part", "--normalization", "l1"],
            fit("signs.npz", output="n.model"),
            ["evaluate", "a.model", "signs.csv", *splits],
        ],
        signs,
    )
    for result in (warned, compared, array, evaluated):
        assert result.code == 0, result.err
        assert told in result.err.replace("\n", " ")
    assert "looks like a group" not in named.err
