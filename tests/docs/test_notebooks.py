"""Notebooks: kept executed, and the same as the scripts that they are made of."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def notebooks():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import notebooks
    finally:
        sys.path.remove(str(EXAMPLES))
    return notebooks


@pytest.mark.parametrize("path", sorted((EXAMPLES / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_kept_notebooks_are_their_scripts_executed(notebooks, path):
    kept = json.loads(path.read_text(encoding="utf-8"))["cells"]
    script = notebooks.GALLERY / f"{notebooks.NOTEBOOKS[path.stem]}.py"
    # another text: run examples/notebooks.py again
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in kept] == notebooks.cells(script)
    run = [cell for cell in kept if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in run] == list(range(1, len(run) + 1))
    outputs = [output for cell in run for output in cell["outputs"]]
    values = [output for output in outputs if output["output_type"] == "execute_result"]
    assert all("text/html" in value["data"] for value in values)
    assert len(values) == (path.stem == "report")
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_all_are_kept(notebooks):
    assert {path.stem for path in (EXAMPLES / "notebooks").glob("*.ipynb")} == set(notebooks.NOTEBOOKS)


@pytest.mark.slow
def test_they_run(notebooks):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = notebooks.executed(notebooks.GALLERY / f"{notebooks.NOTEBOOKS['explanations']}.py")
    printed = "".join(o["text"] for c in book.cells for o in c.get("outputs", []) if o.output_type == "stream")
    assert "cells that matter most" in printed
