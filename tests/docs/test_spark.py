"""The guide's snippet for Spark prints what the page shows."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs pyspark, and a Java runtime")

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "clusters-and-gpus.md"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="needs a Java runtime")
def test_sums_of_partitions_merge_to_those_of_the_frame(capsys):
    section = PAGE.read_text(encoding="utf-8").partition("## Another engine")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["python", "python", "text"]
    names: dict = {"__name__": "__main__"}  # so that Spark sends the functions themselves
    exec("".join(example.source for example in doctest.DocTestParser().get_examples(blocks[0][1])), names)
    try:
        exec(blocks[1][1], names)
    finally:
        if "spark" in names:
            names["spark"].stop()
    assert capsys.readouterr().out == blocks[2][1]
