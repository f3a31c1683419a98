"""Make executed notebooks from some examples of the gallery, and keep them beside this script.

python examples/notebooks.py                        # rewrite examples/notebooks
python examples/notebooks.py FOLDER                 # write them to FOLDER
python examples/notebooks.py FOLDER --only report   # write one

A notebook has the text and the cells of its script. It is run in a new kernel, which needs nbclient and ipykernel.
"""

from __future__ import annotations

import argparse
import ast
import tempfile
from pathlib import Path
from typing import Any

from render import GALLERY, cells_of

KEPT = Path(__file__).resolve().parent / "notebooks"
NOTEBOOKS = {"explanations": "09_explain", "text": "07_text", "report": "13_report"}  # notebook: gallery script


def cells(script: Path) -> list[tuple[str, str]]:
    """Return the kind ("markdown" or "code") and the text of each cell of a script."""
    code = script.read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(code)) or script.stem).partition("\n")
    made = [("markdown", f"# {title.rstrip('.')}\n\n{text.strip()}")]
    for words, source in cells_of(code):
        made += [("markdown", words)] if words else []
        made += [("code", source.strip())] if source.strip() else []
    return made


def executed(script: Path) -> Any:
    """Run the notebook of a script in an empty folder and return it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    kinds = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    book = nbformat.v4.new_notebook(
        cells=[kinds[kind](text, id=f"cell-{i}") for i, (kind, text) in enumerate(cells(script))]
    )
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(book, timeout=300, record_timing=False, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in book.cells:  # values of last lines hold memory addresses, but for those that show themselves as pages
        if cell.cell_type == "code":
            cell.outputs = [
                o for o in cell.outputs if "text/html" in o.get("data", {}) or o.output_type != "execute_result"
            ]
    return book


def main() -> None:
    """Run the command line."""
    import nbformat

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=KEPT)
    parser.add_argument("--only", choices=NOTEBOOKS, help="one of them")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in [given.only] if given.only else NOTEBOOKS:
        script = NOTEBOOKS[name]
        nbformat.write(executed(GALLERY / f"{script}.py"), given.folder / f"{name}.ipynb")


if __name__ == "__main__":
    main()
