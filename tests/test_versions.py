"""One version, wherever it is written, and one list of the Pythons that are served."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import chimap

TOP = Path(__file__).parents[1]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))


def found(file: str, pattern: str) -> str:
    match = re.search(pattern, (TOP / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert match, f"{file} has no {pattern}"
    return match[1]


def test_the_version_is_the_same_everywhere():
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/chimap/_version.py"
    assert found("CITATION.cff", r"^version: (\S+)$") == chimap.__version__
    assert found("CHANGELOG.md", r"^## (\S+)") == chimap.__version__  # the last entry


def test_every_python_that_is_served_is_tested():
    served = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if "Python :: 3." in c]
    tested = re.findall(r"\d\.\d+", found(".github/workflows/ci.yml", r"python-version: \[(.*)\]"))
    assert tested == served
    assert PROJECT["project"]["requires-python"] == f">={served[0]}"
    assert PROJECT["tool"]["mypy"]["python_version"] == served[0]
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{served[0].replace('.', '')}"
