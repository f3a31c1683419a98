"""``chimap compare`` as a user has it."""

from __future__ import annotations

import os
import re
import signal
import time

import numpy as np
import pytest

from chimap.data import write_histograms

from .terminal import SECONDS, run_many, start

QUICK = ["--rows", "300", "--test-rows", "200", "--exact-rows", "100"]
ADDITIVE = ["--kernel", "chi2", "--maps", "optimal,direct", "--terms", "1,3"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def results(folder, pages):
    commands = {
        "table": ["digits.npz", *ADDITIVE, "-o", pages / "a.html"],
        "json": ["digits.npz", *ADDITIVE, "--json"],
        "features": ["sparse.npz", "--labels", "names.csv", "--components", "32,64", "--json"],
        "unlabelled": ["unlabelled.npz", *ADDITIVE],
        "numbers": ["ink.npz", *ADDITIVE, "--json"],
        "text": ["first.svm", "--kernel", "intersection", "--maps", "homogeneous", "--terms", "2,3"],
        "fit": [
            "digits.npz",
            "--kernel",
            "exp-chi2",
            "--maps",
            "direct",
            "--terms",
            "3",
            "--components",
            "64",
        ],
    }
    names = list(commands)
    found = run_many([["compare", *commands[name], *QUICK] for name in names], folder)
    return dict(zip(names, found, strict=True))


def test_table_page_and_recommendation(results, pages):
    found = results["table"]
    assert found.code == 0, found.err
    for text in (
        "OptimalMap, 3 terms",
        "DirectMap, 1 term",
        "exact chi2 SVM, C = ",
        "linear ridge",
        "accuracy",
    ):
        assert text in found.out, found.out
    assert "\nUse " in found.out
    assert "  chimap fit digits.npz --kernel chi2" in found.out
    page = (pages / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") == 4
    assert [p.name for p in pages.iterdir()] == ["a.html"]


def test_json(results):
    found = results["json"].json
    assert results["json"].code == 0
    assert found["command"] == "compare"
    assert {"page", "fit_command", "measured", "references", "bounds", "recommendation", "left_out"} <= set(
        found
    )
    assert [m["size"] for m in found["measured"] if m["family"] == "OptimalMap"].count(3) == 1
    for m in found["measured"]:
        assert 0 < m["error_mean"] <= m["error_worst"]
        assert m["score"]["interval"][0] <= m["score"]["value"] <= m["score"]["interval"][1]
        assert m["map_seconds"] > 0
    scores = [m["score"]["value"] for m in found["measured"]]
    assert scores == sorted(scores, reverse=True)
    assert found["fit_command"].startswith("chimap fit digits.npz --kernel chi2 ")


def test_labels_of_a_file_and_sparse_rows(results):
    found = results["features"].json
    assert {m["n_features"] for m in found["measured"]} == {32, 64}
    assert " --labels names.csv " in found["fit_command"]
    assert found["task"] == "classify"


def test_without_labels(results):
    found = results["unlabelled"]
    assert found.code == 0, found.err
    assert "accuracy" not in found.out
    assert "--labels LABELS" in found.out


def test_numbers(results):
    found = results["numbers"].json
    assert (found["task"], found["metric"]) == ("regress", "R²")


def test_a_refused_size_is_told_of_and_no_error(results):
    found = results["text"]
    assert found.code == 0, found.err
    assert "HomogeneousMap, 2: n_terms of HomogeneousMap must be odd" in found.out


@pytest.mark.parametrize("name", ["table", "fit"])
def test_the_command_that_it_ends_with_runs(results, folder, tmp_path, name):
    line = next(line for line in results[name].out.splitlines() if line.startswith("  chimap fit"))
    model = tmp_path / "my.model"
    [fitted, described] = run_many([[*line.split()[1:-1], model], ["info", model, "--json"]], folder)
    assert fitted.code == 0, fitted.err
    assert ("DirectMap" if name == "fit" or "--map direct" in line else "OptimalMap") in described.json[
        "made_of"
    ]


BAD = {
    "unknown map": (
        ["--maps", "optimal,best"],
        r"--maps must be among optimal, compressed, direct, chebyshev.*got 'best'",
    ),
    "no map": (["--maps", ","], r"--maps must name at least one"),
    "unknown kernel": (["--kernel", "rbf"], r"--kernel must be one of chi2, .*exp-chi2.*got 'rbf'"),
    "kernel of another map": (
        ["--kernel", "intersection", "--maps", "direct"],
        r"--maps: direct does not approximate intersection\. Maps of it: optimal, compressed, homogeneous",
    ),
    "terms": (["--terms", "0"], r"--terms must be whole numbers of at least 1.*got '0'"),
    "components": (["--components", "64,x"], r"--components must be whole numbers of at least 1.*got '64,x'"),
    "rows": (["--rows", "3"], r"--rows must be a whole number of at least 10; got 3"),
    "fraction": (["--test-fraction", "0"], r"--test-fraction must lie between 0 and 1"),
    "gamma": (["--gamma", "no"], r"--gamma must be 'mean' or a positive number"),
    "memory": (["--memory", "1KiB"], r"--memory 1\.0 KiB is too small: the rows to compare on need .*--rows"),
    "output exists": (["-o", "names.csv"], r"--output names\.csv exists.*--overwrite"),
    "output folder": (["-o", "no/page.html"], r"the folder no does not exist"),
}


def test_bad_input(folder, tmp_path):
    X = np.load(folder / "rows.npy")
    np.savez(tmp_path / "one.npz", X=X, y=np.ones(len(X), int))
    bad = X.astype(float)
    bad[1234, 5] = np.nan
    np.savez(tmp_path / "nan.npz", X=bad, y=np.arange(len(X)) % 3)
    cases = dict(BAD)
    commands = {name: ["compare", "digits.npz", *flags] for name, (flags, _) in cases.items()}
    for name, text in (("one", "one class only"), ("nan", r"nan\.npz, row 1234, column 5: NaN")):
        commands[name], cases[name] = ["compare", tmp_path / f"{name}.npz"], ([], text)
    before = sorted(p.name for p in folder.iterdir())
    for name, result in zip(commands, run_many(list(commands.values()), folder), strict=True):
        assert result.code == 2, (name, result)
        assert result.out == ""
        [line] = result.err.splitlines()
        assert line.startswith("chimap: error: ")
        assert re.search(cases[name][1], line), line
    assert sorted(p.name for p in folder.iterdir()) == before


def test_fit_refuses_maps_and_samplings_that_do_not_exist(folder):
    results = run_many(
        [
            ["fit", "digits.npz", "-o", "x.model", "--map", "best"],
            ["fit", "digits.npz", "-o", "x.model", "--kernel", "intersection", "--map", "direct"],
            ["fit", "digits.npz", "-o", "x.model", "--sampling", "best"],
        ],
        folder,
    )
    for result, text in zip(
        results, ("--map must be among", "--map: direct does not", "--sampling must be"), strict=True
    ):
        assert result.code == 2
        assert text in result.err


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to another process there")
def test_interrupted_it_leaves_nothing(tmp_path):
    write_histograms(tmp_path / "rows.npy", 20_000, 64, seed=0, labels_path=tmp_path / "labels.npy")
    process = start(
        "compare", "rows.npy", "--labels", "labels.npy", "--rows", "12000", "--components", "8192", "--memory", "8GiB",
        "--exact-rows", "0", "-o", "page.html", cwd=tmp_path,
    )  # fmt: skip
    try:
        time.sleep(4)
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "nothing was written" in err
    assert "Traceback" not in err
    assert out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.npy", "rows.npy"]
