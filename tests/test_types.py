"""What a type checker sees of the package in the strict script of a user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np
import chimap

X: np.ndarray = np.ones((4, 3))
y = np.array([0, 1, 0, 1])
reveal_type(chimap.OptimalMap("chi2").fit_transform(X))
reveal_type(chimap.LandmarkFeatures(n_components=2).fit_transform(X, y))
reveal_type(chimap.FourierFeatures("gaussian").fit(X))
model = chimap.HistogramClassifier("chi2").fit(X, y)
reveal_type(model)
reveal_type(model.predict(X))
reveal_type(model.predict_proba(X))
reveal_type(model.predict_set(X, alpha=0.1))
reveal_type(model.classes_)
"""
EXPECTED = [
    "ndarray[",
    "ndarray[",
    "FourierFeatures",
    "HistogramClassifier",
    "ndarray[",
    "ndarray[",
    "ndarray[",
    "ndarray[",
]


@pytest.mark.slow
def test_strict_scripts_see_types(tmp_path):
    pytest.importorskip("mypy")
    script, settings = tmp_path / "script.py", tmp_path / "mypy.ini"
    script.write_text(SCRIPT)
    settings.write_text("[mypy]\nstrict = True\n[mypy-sklearn.*,scipy.*]\nignore_missing_imports = True\n")
    source = str(Path(__file__).parents[1] / "src")
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            str(settings),
            "--follow-imports",
            "silent",
            "--cache-dir",
            os.devnull,  # what is kept of the modules takes time to write
            str(script),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MYPYPATH": source, "PATH": ""},
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    revealed = [line.partition("Revealed type is ")[2] for line in found.stdout.splitlines() if "Revealed" in line]
    assert len(revealed) == len(EXPECTED)
    for line, expected in zip(revealed, EXPECTED, strict=True):
        assert expected in line, found.stdout
