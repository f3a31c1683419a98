"""Several descriptors and principal components from the command line."""

from __future__ import annotations

import re

import pytest

from .terminal import run_many

pytestmark = pytest.mark.slow

FIT = ["fit", "digits.npz", "--kernel", "exp-chi2", "--components", "64", "--test-fraction", "0.3", "--overwrite"]
BLOCKS = ["--blocks", "top=0:32,bottom=32:64"]

BAD = {
    "no columns": (["--blocks", "top=5:5"], r"--blocks must be different names with their columns.*got 'top=5:5'"),
    "no name": (["--blocks", "0:32"], r"--blocks must be.*got '0:32'"),
    "beyond": (["--blocks", "top=0:100"], r"block 'top' names columns that are not there.*0 to 63"),
    "kernels": (["--kernel", "chi2,hellinger"], r"--kernel names 2 kernels: --blocks must then name as many blocks"),
    "map": (["--kernel", "gaussian", "--map", "direct"], r"--map is for additive kernels.*got 'gaussian'"),
    "components": (["--principal", "0"], r"--principal must be whole numbers of at least 1.*got .0."),
    "too many components": (["--principal", "20,99"], r"--principal 99, but there are 64 features"),
    "unlabelled": (["--unlabelled", "digits.npz"], r"give --principal"),
}


def test_blocks_and_components(folder):
    commands = [
        [*FIT, *BLOCKS, "--kernel", "exp-chi2,chi2", "--output", "two.model", "--json"],
        [*FIT, *BLOCKS, "--principal", "10,40", "--unlabelled", "digits.npz", "--output", "pca.model", "--json"],
        [*FIT, "--kernel", "chi2+pq", "--output", "sum.model", "--json"],
        [*FIT, "--kernel", "gaussian", "--output", "gauss.model", "--json"],
    ]
    fitted = run_many(commands, folder)
    names = [result.json["kernel"] for result in fitted]
    assert names == ["exp-chi2[32 bins]+chi2[32 bins]", "exp-chi2[32 bins]+exp-chi2[32 bins]", "chi2+pq", "gaussian"]
    assert all(result.json["held_out"]["accuracy"] > 0.8 for result in fitted)
    [described, evaluated] = run_many(
        [["info", "two.model"], ["evaluate", "pca.model", "digits.npz", "--output", "pca.html", "--json"]], folder
    )
    scores = evaluated.json["components"]
    assert scores["n_components"] == [10, 40]
    assert scores["chosen"][0] in (10, 40)
    assert "Chosen: " + str(scores["chosen"][0]) + " components" in (folder / "pca.html").read_text()
    assert "top: 64 landmarks, kmeans" in " ".join(described.out.split())


def test_bad_input(folder):
    commands = [[*FIT, *flags, "--output", "bad.model"] for flags, _ in BAD.values()]
    for name, result in zip(BAD, run_many(commands, folder), strict=True):
        assert result.code == 2, (name, result)
        assert re.search(BAD[name][1], result.err), result.err
    assert not (folder / "bad.model").exists()
