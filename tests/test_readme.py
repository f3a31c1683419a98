"""The README's snippets run as they stand, on small files under the names that it uses."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

from chimap.cli.commands import demo

from .cli.terminal import run_many
from .docs.files import FEW_WORDS, write_all

pytestmark = pytest.mark.slow

TOP = Path(__file__).parents[1]
README = (TOP / "README.md").read_text(encoding="utf-8")
LANGUAGES = {"sh", "python", "text"}
ELSEWHERE = ("--scheduler tcp:", "--device cuda")  # a cluster and a device that a test does not have
SET_UP = ("python3 -m venv", ".venv/bin/")  # .ci/run does these


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> list[list[list[str]]]:
    """The arguments of every command of chimap, in the order of the README, a list for each of its blocks."""
    calls = [[line for line in block.splitlines() if not line.startswith(SET_UP)] for block in blocks("sh")]
    assert all(line.startswith("chimap ") for block in calls for line in block), "a line of another program"
    return [
        [shlex.split(line, comments=True)[1:] for line in block if not any(word in line for word in ELSEWHERE)]
        for block in calls
    ]


def test_fences_name_a_language_that_is_tested():
    assert set(re.findall(r"^```(\S*)$", README, re.MULTILINE)) - {""} == LANGUAGES


def test_the_first_screen_is_short():
    assert len(README.splitlines()) <= 120


def test_scores_are_those_that_were_kept(monkeypatch):
    monkeypatch.syspath_prepend(str(TOP))
    others = importlib.import_module("benchmarks.accuracy.against_others")
    table = others.readme_table(others.kept_lines())
    assert len(table.splitlines()) == 10  # eight data sets
    assert others.with_table(README, others.kept_lines()) == README, "run benchmarks.accuracy.against_others --draw"


def table_commands() -> list[list[str]]:
    """The arguments of the commands that stand in the table of kinds of data."""
    return [shlex.split(line)[1:] for line in re.findall(r"^\| [^|]+ \| `(chimap [^`]+)` \|$", README, re.MULTILINE)]


def test_commands(tmp_path):
    write_all(tmp_path)
    demo.write_plots(tmp_path / "plots.csv", tmp_path / "new-plots.csv")  # the table that the README begins with
    calls = [call for block in commands() for call in block] + table_commands()
    small = ["--kernel", "exp-chi2", "--components", "64", "--overwrite"]
    called = [[*call, *small] if call[0] == "fit" else call for call in calls]
    called = [[*call, *FEW_WORDS] if call[:2] == ["fit", "photos/"] else call for call in called]
    for arguments, result in zip(called, run_many(called, tmp_path), strict=True):
        assert result.code == 0, (arguments, result.err)
    assert {arguments[0] for arguments in calls} == {"fit", "evaluate", "predict"}
    assert len(table_commands()) == 6
    for name in ("plots.model", "my.model", "report.html", "answers.csv"):
        assert (tmp_path / name).stat().st_size > 0


def test_python_prints_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert capsys.readouterr().out.strip() == "\n".join(blocks("text")).strip()
    assert (tmp_path / "digits.model").stat().st_size > 0
