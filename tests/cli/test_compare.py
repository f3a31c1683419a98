"""``chimap compare`` as a user has it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time

import numpy as np
import psutil
import pytest

from chimap.data.synthetic import write_histograms

from .terminal import run_many, start

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def small(folder):
    """Few rows of digits, for what does not ask for more."""
    X = np.load(folder / "rows.npy")
    y = np.load(folder / "digits.npz")["y"]
    np.savez(folder / "few.npz", X=X[:240], y=y[:240])
    np.savez(folder / "few-ink.npz", X=X[:240], y=np.sqrt(X[:240, 20:30].sum(axis=1)) + X[:240, 40] / 7)
    np.savez(folder / "rare.npz", X=X[:400], y=(y[:400] == 3).astype(int), film=np.arange(400) // 4)
    return folder


@pytest.fixture(scope="module")
def results(small, pages):
    commands = {
        "all": ["few.npz", "-o", pages / "a.html"],
        "json": ["few.npz", "--normalization", "none,l1", "--json"],
        "numbers": ["few-ink.npz", "--json"],
        "rare": ["rare.npz", "--groups", "film", "--normalization", "l1"],
    }
    found = run_many([["compare", *command] for command in commands.values()], small)
    return dict(zip(commands, found, strict=True))


def test_all_kernels_on_one_table_of_80_columns(results, pages):
    found = results["all"]
    assert found.code == 0, found.err
    table = found.out.partition("\nUse ")[0].splitlines()
    assert max(map(len, table)) <= 80
    names = {line.lstrip("> ").split(",")[0] for line in table}
    assert {"exp-chi2", "gaussian", "linear ridge"} <= names, names
    assert not any("…" in line for line in table)
    assert sum(line.startswith("> ") for line in table) == 1
    page = (pages / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") == 1  # differences from the winner; few rows are scored in one round, without a curve


def test_it_says_what_to_take_and_how_long_that_takes(results):
    out = results["all"].out
    assert re.search(r"^Use \S.*: \d\d\.\d % accuracy", out, re.MULTILINE)
    assert re.search(r"a fit takes +under 1 s and .* for all 240 rows", out)
    assert "(kernel matrix)" in out
    assert "  chimap fit few.npz --kernel " in out


@pytest.mark.parametrize("name", ["all", "rare"])
def test_the_command_that_it_ends_with_fits_what_it_recommends(results, small, tmp_path, name):
    line = next(line for line in results[name].out.splitlines() if line.startswith("  chimap fit"))
    model = tmp_path / "my.model"
    [fitted] = run_many([[*shlex.split(line)[1:-1], model, "--json"]], small)
    assert fitted.code == 0, fitted.err
    words = shlex.split(line)
    assert fitted.json["kernel"] == words[words.index("--kernel") + 1].replace("_", "-") or "kernel" in line
    assert fitted.json["race"] is None
    if name == "rare":
        assert words[words.index("--groups") + 1] == "film"


def test_json(results):
    found = results["json"].json
    assert results["json"].code == 0
    assert found["command"] == "compare"
    assert {"page", "fit_command", "candidates", "sentence", "measure", "n_held_out"} <= set(found)
    assert all(0 < each["score"] <= 1 for each in found["candidates"])
    assert {each["settings"]["normalize"] for each in found["candidates"]} == {None, "l1"}
    assert found["candidates"][0]["fit_seconds"] > 0
    assert found["candidates"][0]["machine"] == "kernel matrix"


def test_numbers(results):
    assert (results["numbers"].json["measure"], results["numbers"].json["metric"]) == ("R2", "R²")


def test_rare_classes_and_groups(results):
    out = results["rare"].out
    assert "ROC AUC on 400 held-out rows of rare.npz" in out
    assert "held out, by 100 groups" in out
    assert "--scoring roc_auc" in out or "linear" in out
    assert "exp-chi2, l1" in out
    assert "raw rows" not in out


BAD = {
    "normalization": (["--normalization", "l3"], r"--normalization must be one of l1, log1p, sqrt"),
    "scoring": (["--scoring", "best"], r"--scoring must be a scorer of scikit-learn.*got 'best'"),
    "seconds": (["--time-limit", "0"], r"--time-limit must be a time above 0, such as 10m.*; got '0'"),
    "groups": (["--groups", "film"], r"film"),
    "output exists": (["-o", "names.csv"], r"--output names\.csv exists.*--overwrite"),
    "output folder": (["-o", "no/page.html"], r"the folder no does not exist"),
}


def test_bad_input(small, tmp_path):
    X = np.load(small / "rows.npy")
    np.savez(tmp_path / "one.npz", X=X, y=np.ones(len(X), int))
    bad = X.astype(float)
    bad[1234, 5] = np.nan
    np.savez(tmp_path / "nan.npz", X=bad, y=np.arange(len(X)) % 3)
    cases = dict(BAD)
    commands = {name: ["compare", "few.npz", *flags] for name, (flags, _) in cases.items()}
    for name, text in (("one", "one class only"), ("nan", r"nan\.npz, row 1234, column 5: NaN")):
        commands[name], cases[name] = ["compare", tmp_path / f"{name}.npz"], ([], text)
    commands["no labels"], cases["no labels"] = (["compare", "unlabelled.npz"], ([], "unlabelled.npz has no labels"))
    before = sorted(p.name for p in small.iterdir())
    for name, result in zip(commands, run_many(list(commands.values()), small), strict=True):
        assert result.code == 2, (name, result)
        assert result.out == ""
        [line] = result.err.splitlines()
        assert line.startswith("chimap: error: ")
        assert re.search(cases[name][1], line), line
    assert sorted(p.name for p in small.iterdir()) == before


def test_fit_refuses_maps_and_samplings_that_do_not_exist(folder):
    results = run_many(
        [
            ["fit", "digits.npz", "-o", "x.model", "--map", "best"],
            ["fit", "digits.npz", "-o", "x.model", "--kernel", "intersection", "--map", "direct"],
            ["fit", "digits.npz", "-o", "x.model", "--sampling", "best"],
            ["fit", "digits.npz", "-o", "x.model", "--normalize", "--normalization", "sqrt"],
        ],
        folder,
    )
    for result, text in zip(
        results,
        ("--map", "--map: direct does not", "--sampling must be", "--normalize means --normalization l1"),
        strict=True,
    ):
        assert result.code == 2
        assert text in result.err


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to another process there")
def test_interrupted_it_leaves_nothing(tmp_path):
    write_histograms(tmp_path / "rows.npy", 6000, 2400, seed=0, labels_path=tmp_path / "labels.npy")
    command = ["compare", "rows.npy", "--labels", "labels.npy", "-o", "page.html", "--jobs", "1"]
    process = start(*command, cwd=tmp_path)
    try:
        while process.is_running() and sum(psutil.Process(process.pid).cpu_times()[:2]) < 2.5:
            time.sleep(0.05)  # past the imports, some of which swallow the signal, into the race
        assert process.is_running(), process.result()
        process.send(signal.SIGINT)
        code, out, err = process.result()
    finally:
        process.send(signal.SIGKILL)
    assert code == 130, err
    assert "nothing was written" in err
    assert "Traceback" not in err
    assert out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.npy", "rows.npy"]
