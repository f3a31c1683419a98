"""``chimap ordinate`` as a user has it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from chimap.diagnostics.ordination import ordinate

from .terminal import run, run_here


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ordinate")
    rng = np.random.default_rng(0)
    site = np.repeat(["gut", "skin"], 20)
    X = rng.poisson(rng.gamma(1, 6, (40, 8)))
    X[site == "skin", 2] += 7
    frame = pd.DataFrame(X, columns=[f"otu_{i}" for i in range(8)], index=[f"s{i}" for i in range(40)])
    frame.assign(site=site).to_csv(folder / "samples.csv", index_label="sample")
    frame.to_csv(folder / "counts.csv", index_label="sample")
    pd.DataFrame({"site": site[::-1]}, index=frame.index[::-1]).to_csv(folder / "meta.csv", index_label="sample")
    return folder, X


@pytest.mark.slow
def test_coordinates_picture_and_page(samples):
    folder, X = samples
    files = ["--output", "axes.csv", "--picture", "axes.png", "--report", "axes.html"]
    found = run("ordinate", "samples.csv", "--colour", "site", "--axes", 3, *files, cwd=folder)
    assert found.code == 0, found.err
    assert "The first two axes show" in found.out
    assert "otu_2 " in found.out
    table = pd.read_csv(folder / "axes.csv")
    np.testing.assert_allclose(table["axis 3"], ordinate(X, n_axes=3).coordinates[:, 2], atol=1e-9)
    assert table["row"][0] == "s0"
    assert (folder / "axes.png").stat().st_size > 10_000
    assert (folder / "axes.html").read_text(encoding="utf-8").count("<svg") == 2


def test_a_table_of_metadata_and_new_rows(samples):
    folder, _ = samples
    asked = ["counts.csv", "--metadata", "meta.csv", "--colour", "site", "--new", "samples.csv", "--json"]
    found = run_here("ordinate", *asked, cwd=folder)
    assert found.code == 0, found.err
    assert found.json["colour"] == ["gut"] * 20 + ["skin"] * 20
    np.testing.assert_allclose(found.json["new"], found.json["coordinates"], atol=1e-9)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--colour", "sight"], "no column 'sight' for --colour: did you mean 'site'?"),
        (["--picture", "axes.svg"], "--picture must end in .png"),
        (["--output", "axes.tsv"], "--output must end in .csv"),
        (["--axes", 0], "--axes must be"),
        (["--kernel", "chi3"], "--kernel must be one of"),
    ],
)
def test_errors_name_flags(samples, asked, message):
    found = run_here("ordinate", "samples.csv", "--exclude", "site", *asked, cwd=samples[0])
    assert found.code == 2
    assert message in found.err
