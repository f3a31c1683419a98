"""The page for R runs as it stands where R is installed: base R by the tables, and chimap through reticulate."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import chimap

from ..cli.terminal import run_many
from .files import write_tables

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parents[2] / "docs/guides/r.md").read_text(encoding="utf-8")
COMMANDS = re.search(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1].splitlines()
BASE, RETICULATE = re.findall(r"^```r\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run_in_r(code: str, folder: Path) -> None:
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("no R: apt-get install r-base-core r-cran-reticulate")
    (folder / "page.R").write_text(code)
    paths = {"RETICULATE_PYTHON": sys.executable, "PYTHONPATH": str(Path(chimap.__file__).parents[1])}
    done = subprocess.run(
        [program, "page.R"], cwd=folder, env=os.environ | paths, capture_output=True, text=True, timeout=300
    )
    if "there is no package called ‘reticulate’" in done.stderr:
        pytest.skip("R without reticulate: apt-get install r-cran-reticulate")
    assert done.returncode == 0, done.stderr


def test_base_r_reads_the_tables(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("no R: apt-get install r-base-core")
    write_tables(tmp_path)
    for done in run_many([shlex.split(line)[1:] for line in COMMANDS], tmp_path):
        assert done.code == 0, done.err
    run_in_r(BASE, tmp_path)
    model, rows = chimap.load(tmp_path / "plots.model"), pd.read_csv(tmp_path / "new-plots.csv")
    found = pd.read_csv(tmp_path / "scores.csv")
    assert [*found.columns] == ["meadow"]
    bound = chimap.export_model(model, tmp_path / "again.csv").error
    assert np.abs(found["meadow"] - model.decision_function(rows)).max() <= bound


def test_chimap_through_reticulate(tmp_path):
    write_tables(tmp_path)
    run_in_r(RETICULATE, tmp_path)
    model, found = chimap.load(tmp_path / "from-r.model"), pd.read_csv(tmp_path / "answers.csv")
    rows = pd.read_csv(tmp_path / "new-plots.csv")
    assert found["site"].tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(found[["bog", "meadow"]], model.predict_proba(rows), atol=1e-12)
