"""The command that a fit ends with can be typed as it stands, on other data of the same kind."""

from __future__ import annotations

import lzma
import shlex

import numpy as np
import pytest
from sklearn.datasets import load_digits

from .terminal import run_many

pytestmark = pytest.mark.slow

FIT = ["--kernel", "chi2", "--features", "additive", "--alpha", "1", "--output", "my.model"]


def write_table(path, X, y, labels):
    head = [labels, *(f"p{i}" for i in range(X.shape[1]))]
    lines = [",".join(map(str, row)) for row in zip(y, *X.T, strict=True)]
    path.write_text("\n".join([",".join(head), *lines]) + "\n")


@pytest.mark.parametrize("where", ["a column", "members", "a file", "found by name", "compressed"])
def test_it_runs_on_other_data(where, tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X.astype(int)
    halves = {"train": slice(0, 300), "OTHER": slice(300, 500)}
    for name, rows in halves.items():
        if where == "members":
            np.savez(tmp_path / f"{name}.npz", pixels=X[rows], digit=y[rows])
        elif where == "a file":
            np.save(tmp_path / f"{name}.npy", X[rows])
            np.save(tmp_path / ("OTHER-LABELS.npy" if name == "OTHER" else "labels.npy"), y[rows])
        else:
            table = tmp_path / f"{name}.csv"
            write_table(table, X[rows], y[rows], "digit" if where == "a column" else "y")
            if where == "compressed":
                (tmp_path / f"{name}.csv.xz").write_bytes(lzma.compress(table.read_bytes()))
    data, labels = {
        "a column": ("train.csv", ["--labels", "digit"]),
        "members": ("train.npz::pixels", ["--labels", "::digit"]),
        "a file": ("train.npy", ["--labels", "labels.npy"]),
        "found by name": ("train.csv", []),
        "compressed": ("train.csv.xz", []),
    }[where]
    [fitted] = run_many([["fit", data, *labels, *FIT]], tmp_path)
    assert fitted.code == 0, fitted.err
    words = shlex.split(fitted.out.splitlines()[-1].removeprefix("next "))
    assert words[:3] == ["chimap", "evaluate", "my.model"]
    [evaluated] = run_many([words[1:]], tmp_path)
    assert evaluated.code == 0, evaluated.err
    assert "200 rows" in evaluated.out


def test_after_a_report_it_explains_and_notes_are_told_once(tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    names = [f"scan {i}" for i in range(300)]
    write_table(tmp_path / "train.csv", np.column_stack([y[:300], X[:300].astype(int)]), names, "scan")
    labels = ["--labels", "p0"]
    flags = ["--test-fraction", "0.3", "--report", "report.html"]
    [fitted] = run_many([["fit", "train.csv", *labels, *FIT, *flags]], tmp_path)
    assert fitted.code == 0, fitted.err
    assert fitted.err.count("names the rows") == 1
    words = shlex.split(fitted.out.splitlines()[-1].removeprefix("next "))
    assert words[:3] == ["chimap", "explain", "my.model"]
    [explained] = run_many([words[1:]], tmp_path)
    assert explained.code == 0, explained.err
    assert (tmp_path / "why.html").stat().st_size > 0
